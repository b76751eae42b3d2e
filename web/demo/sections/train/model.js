// One head with its projections, a loss, and its gradients: attention() and attentionBackward() with small products around them.

import { normal } from '../../parts/data.js';
import { times, timesTransposed, transposedTimes } from './matrix.js';
import { length, positionDim, sequences, tasks } from './tasks.js';

/** Columns of query, key and value. */
export const headDim = 16;

/** Sequences of one step. */
export const batch = 16;

/** Spread of the first weights. */
const spread = 0.3;

/** Of Adam (Kingma and Ba 2015), which takes the steps. */
const decay = { mean: 0.9, square: 0.99 };
const tiny = 1e-8;

/** @typedef {'query' | 'key' | 'value' | 'output'} WeightName */

/**
 * @typedef {object} Batch
 * @property {Float32Array} x (batch·length, inputDim)
 * @property {number[]} targets (batch·length), -1 = nothing is asked
 */

/**
 * @typedef {object} Forward
 * @property {import('sdpa').Tensor} query (batch, length, headDim)
 * @property {import('sdpa').Tensor} key
 * @property {import('sdpa').Tensor} value
 * @property {import('sdpa').Tensor} out
 * @property {import('sdpa').Tensor} lse
 */

export class Model {
  /** @type {Record<WeightName, Float32Array>} */
  weights;
  steps = 0;
  #sdpa;
  #positions;
  #draw;
  /** @type {Record<WeightName, { mean: Float32Array, square: Float32Array }>} */
  #moments;

  /**
   * @param {import('sdpa').Sdpa} sdpa
   * @param {import('./tasks.js').TaskName} task
   * @param {number} seed of the first weights and of the sequences
   */
  constructor(sdpa, task, seed) {
    this.#sdpa = sdpa;
    this.task = task;
    const { tokenDim, classes } = tasks[task];
    this.inputDim = tokenDim + positionDim;
    this.classes = classes.length;
    this.#positions = sdpa.sinusoidal(length, positionDim).data;
    this.#draw = sequences(task, seed + 1000);
    const next = normal(seed);
    const drawn = (/** @type {number} */ count) => Float32Array.from({ length: count }, () => spread * next());
    this.weights = {
      query: drawn(this.inputDim * headDim),
      key: drawn(this.inputDim * headDim),
      value: drawn(this.inputDim * headDim),
      output: drawn(headDim * this.classes),
    };
    this.#moments = /** @type {any} */ (
      Object.fromEntries(
        Object.entries(this.weights).map(([name, { length: count }]) => [
          name,
          { mean: new Float32Array(count), square: new Float32Array(count) },
        ]),
      )
    );
  }

  /**
   * @param {readonly import('./tasks.js').Sequence[]} drawn
   * @returns {Batch}
   */
  inputs(drawn) {
    const { inputDim } = this;
    const x = new Float32Array(drawn.length * length * inputDim);
    drawn.forEach(({ features }, b) =>
      features.forEach((columns, i) => {
        const at = (b * length + i) * inputDim;
        for (const column of columns) x[at + column] = 1;
        x.set(this.#positions.subarray(i * positionDim, (i + 1) * positionDim), at + inputDim - positionDim);
      }),
    );
    return { x, targets: drawn.flatMap(({ targets }) => targets) };
  }

  /**
   * @param {Float32Array} x
   * @returns {Forward}
   */
  forward(x) {
    const { inputDim, weights } = this;
    const shape = [x.length / inputDim / length, 1, length, headDim];
    const project = (/** @type {WeightName} */ name) => {
      const data = times(x, weights[name], inputDim, headDim);
      return { data, shape, dtype: /** @type {const} */ ('float32') };
    };
    const [query, key, value] = [project('query'), project('key'), project('value')];
    const { out, lse } = this.#sdpa.attention(query, key, value, { causal: true, returnLse: true });
    return { query, key, value, out, lse };
  }

  /**
   * Cross-entropy of the classes, mean over what is asked; and its gradients.
   * @param {Batch} given
   * @returns {{ loss: number, right: number, gradients: Record<WeightName, Float32Array> }} `right`: the share of right answers
   */
  lossAndGradients({ x, targets }) {
    const { inputDim, classes, weights } = this;
    const { query, key, value, out, lse } = this.forward(x);
    const logits = times(out.data, weights.output, headDim, classes);
    const { loss, right, dLogits } = crossEntropy(logits, targets, classes);
    const dOut = { data: timesTransposed(dLogits, weights.output, headDim, classes), shape: out.shape };
    const given = { out, lse, dOut };
    const { dQuery, dKey, dValue } = this.#sdpa.attentionBackward(query, key, value, given, { causal: true });
    const of = (/** @type {{ data: Float32Array }} */ { data }) => transposedTimes(x, data, inputDim, headDim);
    return {
      loss,
      right,
      gradients: {
        query: of(dQuery),
        key: of(dKey),
        value: of(dValue),
        output: transposedTimes(out.data, dLogits, headDim, classes),
      },
    };
  }

  /**
   * One step on new sequences.
   * @param {number} rate of learning
   * @returns {{ loss: number, right: number }} before the step
   */
  step(rate) {
    const { loss, right, gradients } = this.lossAndGradients(
      this.inputs(Array.from({ length: batch }, () => this.#draw())),
    );
    this.steps++;
    const correction = Math.sqrt(1 - decay.square ** this.steps) / (1 - decay.mean ** this.steps);
    for (const name of /** @type {WeightName[]} */ (Object.keys(gradients))) {
      const { mean, square } = this.#moments[name];
      const [weights, gradient] = [this.weights[name], gradients[name]];
      for (let i = 0; i < weights.length; i++) {
        mean[i] += (1 - decay.mean) * (gradient[i] - mean[i]);
        square[i] += (1 - decay.square) * (gradient[i] ** 2 - square[i]);
        weights[i] -= (rate * correction * mean[i]) / (Math.sqrt(square[i]) + tiny);
      }
    }
    return { loss, right };
  }

  /**
   * What the head does with one sequence.
   * @param {import('./tasks.js').Sequence} sequence
   * @returns {{ query: Float32Array, key: Float32Array, weights: Float32Array }} (length, headDim) twice, (length, length)
   */
  look(sequence) {
    const { query, key, lse } = this.forward(this.inputs([sequence]).x);
    const rows = Array.from({ length }, (_, i) => i);
    const { rows: weights } = this.#sdpa.attentionWeights(query, key, { causal: true, lse, rows });
    return { query: query.data, key: key.data, weights: weights.data };
  }
}

/**
 * @param {Float32Array} logits (rows, classes)
 * @param {readonly number[]} targets
 * @param {number} classes
 */
function crossEntropy(logits, targets, classes) {
  const dLogits = new Float32Array(logits.length);
  const asked = targets.filter((target) => target >= 0).length;
  let [loss, right] = [0, 0];
  targets.forEach((target, i) => {
    if (target < 0) return;
    const row = logits.subarray(i * classes, (i + 1) * classes);
    const most = Math.max(...row);
    const powers = Array.from(row, (logit) => Math.exp(logit - most));
    const sum = powers.reduce((a, b) => a + b);
    loss -= Math.log(powers[target] / sum) / asked;
    if (row[target] === most) right += 1 / asked;
    powers.forEach((power, c) => {
      dLogits[i * classes + c] = (power / sum - (c === target ? 1 : 0)) / asked;
    });
  });
  return { loss, right, dLogits };
}
