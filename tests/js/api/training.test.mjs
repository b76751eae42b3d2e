// Training with nothing but this package: a layer of attention with two heads learns induction, to say what followed the last time that
// the present token was seen. And why scores are divided by √D: without it the same layer hardly learns.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';

const sdpa = await loadVariant();

const vocabulary = 16;
const heads = 2;
const headDim = 256;
const batch = 4;
/** A sequence is a random order of all tokens, twice. */
const length = 2 * vocabulary;
const width = heads * headDim;
const steps = 80;
const rate = 0.5;
const momentum = 0.9;

/**
 * Sequences of tokens. What is to be said at position i is the token at i + 1; before the second time round nobody can know.
 * @param {() => number} uniform
 * @param {number} count
 */
function sequences(uniform, count) {
  return Array.from({ length: count }, () => {
    const order = Array.from({ length: vocabulary }, (_, token) => token);
    for (let n = vocabulary - 1; n > 0; n--) {
      const other = Math.floor(uniform() * (n + 1));
      [order[n], order[other]] = [order[other], order[n]];
    }
    return [...order, ...order];
  });
}

/** Positions whose next token has been seen before. */
const asked = Array.from({ length: vocabulary - 1 }, (_, n) => vocabulary + n);

/**
 * Tables of one row per token: of queries; of keys, for the token before; of values. And what is said by what was found.
 * @param {ReturnType<typeof randomSource>} random
 */
function makeModel(random) {
  const table = (/** @type {number} */ rows, /** @type {number} */ columns, deviation = 1) =>
    Float32Array.from({ length: rows * columns }, () => random.normal() * deviation);
  return {
    query: table(vocabulary, width),
    key: table(vocabulary + 1, width), // the last row is for the token before the first
    value: table(vocabulary, width),
    output: table(width, vocabulary, 1 / Math.sqrt(width)),
  };
}

/** @typedef {ReturnType<typeof makeModel>} Model */

/**
 * Rows of a table for each token: (B, L, H, D).
 * @param {Float32Array} table
 * @param {number[][]} tokens
 */
function lookUp(table, tokens) {
  const data = new Float32Array(tokens.length * length * width);
  tokens.flat().forEach((token, at) => data.set(table.subarray(token * width, (token + 1) * width), at * width));
  return { data, shape: [tokens.length, length, heads, headDim] };
}

/**
 * @param {number[][]} tokens
 * @param {{ data: Float32Array }} gradient of what lookUp() gave
 * @param {Float32Array} table
 */
function lookUpBackward(tokens, { data }, table) {
  const sum = new Float32Array(table.length);
  tokens.flat().forEach((token, at) => {
    for (let c = 0; c < width; c++) sum[token * width + c] += data[at * width + c];
  });
  return sum;
}

/**
 * Loss, share of right answers, and gradients.
 * @param {Model} model
 * @param {number[][]} tokens
 * @param {any} options
 */
function run(model, tokens, options) {
  const before = tokens.map((sequence) => [vocabulary, ...sequence.slice(0, -1)]);
  const query = lookUp(model.query, tokens);
  const key = lookUp(model.key, before);
  const value = lookUp(model.value, tokens);
  const all = { ...options, layout: /** @type {const} */ ('blhd'), causal: true };
  const { out, lse } = sdpa.attention(query, key, value, { ...all, returnLse: true });

  const dOut = { data: new Float32Array(out.data.length), shape: out.shape };
  const dOutput = new Float32Array(model.output.length);
  const count = tokens.length * asked.length;
  let loss = 0;
  let right = 0;
  tokens.forEach((sequence, b) => {
    for (const i of asked) {
      const row = (b * length + i) * width;
      const target = sequence[i + 1];
      const logits = new Float64Array(vocabulary);
      for (let c = 0; c < width; c++) {
        for (let n = 0; n < vocabulary; n++) logits[n] += out.data[row + c] * model.output[c * vocabulary + n];
      }
      const most = Math.max(...logits);
      const sum = logits.reduce((total, logit) => total + Math.exp(logit - most), 0);
      loss += (most + Math.log(sum) - logits[target]) / count;
      if (logits[target] === most) right++;
      const dLogits = logits.map((logit, n) => (Math.exp(logit - most) / sum - (n === target ? 1 : 0)) / count);
      for (let c = 0; c < width; c++) {
        for (let n = 0; n < vocabulary; n++) {
          dOut.data[row + c] += dLogits[n] * model.output[c * vocabulary + n];
          dOutput[c * vocabulary + n] += dLogits[n] * out.data[row + c];
        }
      }
    }
  });
  const { dQuery, dKey, dValue } = sdpa.attentionBackward(query, key, value, { out, lse, dOut }, all);
  const gradients = {
    query: lookUpBackward(tokens, dQuery, model.query),
    key: lookUpBackward(before, dKey, model.key),
    value: lookUpBackward(tokens, dValue, model.value),
    output: dOutput,
  };
  return { loss, accuracy: right / count, gradients };
}

/**
 * Trains by gradient descent with momentum.
 * @param {any} options of attention()
 * @returns the share of right answers on sequences that were not trained on, and the losses of the steps
 */
function train(options) {
  const random = randomSource(2024);
  const model = makeModel(random);
  const names = /** @type {(keyof Model)[]} */ (Object.keys(model));
  const speed = Object.fromEntries(names.map((name) => [name, new Float32Array(model[name].length)]));
  const losses = [];
  for (let step = 0; step < steps; step++) {
    const { loss, gradients } = run(model, sequences(random.uniform, batch), options);
    losses.push(loss);
    for (const name of names) {
      for (let n = 0; n < model[name].length; n++) {
        speed[name][n] = momentum * speed[name][n] - rate * gradients[name][n];
        model[name][n] += speed[name][n];
      }
    }
  }
  return { accuracy: run(model, sequences(randomSource(7).uniform, 64), options).accuracy, losses };
}

test('a layer of two heads learns to find the matching key: 99 of 100 answers are right', () => {
  const { accuracy, losses } = train({});
  assert.ok(losses[0] > Math.log(vocabulary) - 0.5, `it should know nothing at first, but its loss is ${losses[0]}`);
  assert.ok(accuracy >= 0.99, `${accuracy} of the answers are right; the losses were ${losses}`);
});

test('with scale 1 scores have a deviation of √D = 16, the softmax is saturated, and the same steps teach far less', () => {
  const { accuracy, losses } = train({ scale: 1 });
  assert.ok(accuracy < 0.5, `${accuracy} of the answers are right; the losses were ${losses}`);
  assert.ok(losses[steps - 1] > 1, `the last loss is ${losses[steps - 1]}`);
});
