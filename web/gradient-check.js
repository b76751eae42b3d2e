// gradientCheck(): what attentionBackward() gives beside central differences of the definition in float64, for teaching and for doubt.

import { run } from './attention.js';
import { show, typeError } from './errors.js';
import { computeGradients } from './gradients/compute.js';
import { broadcastAt, perHeadAt, PlainAttention, readInputs } from './gradients/plain-attention.js';
import { refuseResults, withSinks } from './gradients/read-call.js';
import { presentGradients } from './gradients/results.js';
import { layoutCodes } from './frame.js';
import { philox } from './masks/philox.js';
import { Operand, settleAll } from './operand.js';
import { whole, without } from './option-values.js';
import { product } from './tensor.js';
import { lseShape, outShape, readCall } from './validate.js';

/**
 * @typedef {import('./gradients/plain-attention.js').Inputs} Inputs
 * @typedef {import('./gradients/read-call.js').BackwardCall} BackwardCall
 * @typedef {import('./options.js').AttentionCall} AttentionCall
 * @typedef {import('./runtime.js').Runtime} Runtime
 */

/** Largest error that passes. float32 leaves some 1e-6; a wrong factor or a forgotten term some 0.01 and more. */
const checkTolerance = 1e-3;

/** The least that errors are divided by: differences of gradients that are all but 0 mean nothing. */
const leastSize = 1e-3;

/** Step of the differences, of an input that acts on a score as a factor of about 1 does. */
const step = 2 ** -10;

/**
 * Options of attention() that say what it computes, and how much is tried.
 * @typedef {import('./gradients.js').BackwardOptions & { samples?: number, seed?: number }} CheckOptions
 *   `samples`: elements of each tensor that are tried, 24 where absent (all, where a tensor has no more); `seed` of the choice and of the
 *   loss, a whole number, 0 where absent
 */

/**
 * Errors of one tensor, as parts of the largest gradient that was tried in it (of 0.001 where all are smaller). A gradient that is one number,
 * as that of scale, has none beside it: there they are parts of what the query rows add to it, signs aside, whose rounding stays where they
 * cancel.
 * @typedef {{ maxError: number, meanError: number, checked: number }} CheckedTensor
 */

/**
 * What gradientCheck() found, by input.
 * @typedef {{ query: CheckedTensor, key: CheckedTensor, value: CheckedTensor, bias?: CheckedTensor, sinks?: CheckedTensor, alibiSlopes?: CheckedTensor, scale: CheckedTensor, passed: boolean }} GradientCheck
 *   `passed`: no error is larger than 0.001
 */

/**
 * @param {Runtime} runtime
 * @param {unknown} query
 * @param {unknown} key
 * @param {unknown} value
 * @param {unknown} options
 * @returns {GradientCheck}
 */
export function gradientCheck(runtime, query, key, value, options) {
  void runtime.exports; // throws once the instance is disposed of
  const { samples, seed, rest } = readOwn(options);
  const { sinks, rest: forward } = withSinks(rest);
  const call = readCall(runtime, query, key, value, forward);
  refuseResults('gradientCheck', call);
  settleAll(runtime, call);
  const random = (/** @type {number} */ stream, /** @type {number} */ n) =>
    philox(seed % 2 ** 32, Math.floor(seed / 2 ** 32), n % 2 ** 32, Math.floor(n / 2 ** 32), stream, 0) / 2 ** 32;

  // The loss: Σ out·R with R between -1 and 1.
  const shape = outShape(call);
  const weights = Float32Array.from({ length: product('out', shape) }, (_, n) => 2 * random(0, n) - 1);
  call.returnLse = true;
  const { out, lse } = run(runtime, call);
  const operand = (/** @type {Float32Array} */ data, /** @type {number[]} */ of) =>
    new Operand(data, 'float32', of, data.length, 0);
  /** @type {BackwardCall} */
  const backward = {
    call,
    sinks,
    out: operand(out.data, shape),
    lse: operand(/** @type {any} */ (lse).data, lseShape(call)),
    dOut: operand(weights, shape),
    dLse: null,
  };
  const given = presentGradients(backward, computeGradients(runtime, backward));
  const inputs = readInputs(runtime, call, sinks && Float64Array.from(sinks.data));
  const plain = new PlainAttention(runtime, call, inputs);

  /** @type {[keyof Inputs, ArrayLike<number> | undefined, number][]} */
  const tensors = [
    ['query', given.dQuery.data, step],
    ['key', given.dKey.data, step],
    ['value', given.dValue.data, step],
    ['bias', given.dBias?.data, step],
    ['sinks', given.dSinks?.data, step],
    // These act times a distance, or times the product of a query and a key.
    ['alibiSlopes', given.dAlibiSlopes?.data, step / Math.max(1, call.seqlenQ, call.seqlenKv)],
    ['scale', [given.dScale], step / call.headDim],
  ];
  /** @type {any} */
  const result = {};
  let passed = true;
  tensors.forEach(([name, gradient, h], stream) => {
    const values = inputs[name];
    if (!gradient || !values) return;
    const chosen = choose(values.length, samples, (n) => random(stream + 1, n));
    result[name] = compare(chosen, gradient, (n) => {
      const ofRows = rowsOf(call, name, n).map((at) => differentiate(values, n, h, () => rowLoss(plain, at, weights)));
      const sum = ofRows.reduce((a, b) => a + b, 0);
      const size = values.length > 1 ? Math.abs(sum) : ofRows.reduce((a, b) => a + Math.abs(b), 0);
      return { gradient: sum, size };
    });
    passed = passed && result[name].maxError <= checkTolerance; // false for NaN
  });
  return { ...result, passed };
}

/**
 * @param {any} options
 * @returns {{ samples: number, seed: number, rest: unknown }}
 */
function readOwn(options) {
  if (options === undefined) return { samples: 24, seed: 0, rest: undefined };
  if (Object.prototype.toString.call(options) !== '[object Object]') {
    throw typeError('type', `options must be an object, got ${show(options)}`);
  }
  const { samples = 24, seed = 0 } = options;
  return {
    samples: whole('samples', samples, 1),
    seed: whole('seed', seed, 0),
    rest: without(options, ['samples', 'seed']),
  };
}

/**
 * @param {number} count
 * @param {number} samples
 * @param {(n: number) => number} random
 * @returns {number[]} indices, ascending
 */
function choose(count, samples, random) {
  if (count <= samples) return Array.from({ length: count }, (_, n) => n);
  /** @type {Set<number>} */
  const chosen = new Set();
  for (let n = 0; chosen.size < samples; n++) chosen.add(Math.floor(random(n) * count));
  return [...chosen].sort((a, b) => a - b);
}

/**
 * @param {readonly number[]} chosen
 * @param {ArrayLike<number>} gradient
 * @param {(n: number) => { gradient: number, size: number }} difference what it is, and what errors of it are parts of
 * @returns {CheckedTensor}
 */
function compare(chosen, gradient, difference) {
  const truth = chosen.map(difference);
  const size = truth.reduce((most, d) => Math.max(most, d.size), leastSize);
  const errors = chosen.map((n, at) => Math.abs(gradient[n] - truth[at].gradient) / size);
  return {
    maxError: errors.reduce((most, error) => Math.max(most, error), 0), // NaN where one is
    meanError: errors.length === 0 ? 0 : errors.reduce((sum, error) => sum + error, 0) / errors.length,
    checked: chosen.length,
  };
}

/**
 * Derivative by four points: its error is of order h^4.
 * @param {Float64Array} values
 * @param {number} n element that is moved
 * @param {number} h
 * @param {() => number} loss
 */
function differentiate(values, n, h, loss) {
  const start = values[n];
  const at = (/** @type {number} */ x) => {
    values[n] = start + x;
    return loss();
  };
  const near = at(h) - at(-h);
  const far = at(2 * h) - at(-2 * h);
  values[n] = start;
  return (8 * near - far) / (12 * h);
}

/**
 * @param {PlainAttention} plain
 * @param {readonly [number, number, number]} row
 * @param {Float32Array} weights
 */
const rowLoss = (plain, [b, h, i], weights) => plain.row(b, h, i, weights, plain.at('out', b, h, i));

/**
 * Rows (b, h, i) that element n of an input acts on.
 * @param {AttentionCall} call
 * @param {keyof Inputs} name
 * @param {number} n
 * @returns {[number, number, number][]}
 */
function rowsOf(call, name, n) {
  const acts = actsOn(call, name, n);
  /** @type {[number, number, number][]} */
  const rows = [];
  for (let b = 0; b < call.batch; b++) {
    for (let h = 0; h < call.numHeads; h++) {
      for (let i = 0; i < call.seqlenQ; i++) if (acts(b, h, i)) rows.push([b, h, i]);
    }
  }
  return rows;
}

/**
 * @param {AttentionCall} call
 * @param {keyof Inputs} name
 * @param {number} n
 * @returns {(b: number, h: number, i: number) => boolean}
 */
function actsOn(call, name, n) {
  const { numHeads, numKvHeads, bias, headDim, headDimV } = call;
  if (name === 'scale') return () => true;
  if (name === 'bias' && bias) {
    const columns = bias.shape[3];
    return (b, h, i) => Math.floor(broadcastAt(bias.shape, b, h, i, 0) / columns) === Math.floor(n / columns);
  }
  if (name === 'sinks' || name === 'alibiSlopes') {
    const numbers = name === 'sinks' ? call.sinks : call.alibiSlopes;
    return (b, h) => !!numbers && perHeadAt(numbers.data, b, h, numHeads) === n;
  }
  const ofQuery = name === 'query';
  const width = name === 'value' ? headDimV : headDim;
  const place = placeOf(call, ofQuery, Math.floor(n / width));
  const group = numHeads / numKvHeads;
  return (b, h, i) => b === place.b && (ofQuery ? h === place.h && i === place.i : Math.floor(h / group) === place.h);
}

/**
 * Batch entry, head and row of row number n of a tensor.
 * @param {AttentionCall} call
 * @param {boolean} ofQuery
 * @param {number} n
 */
function placeOf({ numHeads, numKvHeads, seqlenQ, seqlenKv, layout }, ofQuery, n) {
  const heads = ofQuery ? numHeads : numKvHeads;
  const rows = ofQuery ? seqlenQ : seqlenKv;
  const b = Math.floor(n / (heads * rows));
  const inside = n % (heads * rows);
  return layout === layoutCodes.blhd
    ? { b, h: inside % heads, i: Math.floor(inside / heads) }
    : { b, h: Math.floor(inside / rows), i: inside % rows };
}
