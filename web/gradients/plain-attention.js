// Attention by its definition, in float64 and a row at a time: slow, plain, and with every input a number that can be moved a little.
// What gradientCheck() differentiates.

import { alignCodes, layoutCodes } from '../frame.js';
import { fromBfloat16Bits, fromFloat16Bits } from '../half.js';
import { viewOf } from '../operand.js';
import { dropped } from './dropped.js';

/**
 * @typedef {import('../operand.js').Operand} Operand
 * @typedef {import('../options.js').AttentionCall} AttentionCall
 * @typedef {import('../runtime.js').Runtime} Runtime
 */

/**
 * Inputs of a call as float64.
 * @typedef {object} Inputs
 * @property {Float64Array} query
 * @property {Float64Array} key
 * @property {Float64Array} value
 * @property {Float64Array | null} bias
 * @property {Float64Array | null} sinks
 * @property {Float64Array | null} alibiSlopes
 * @property {Float64Array} scale one number
 */

/**
 * @param {Runtime} runtime
 * @param {AttentionCall} call
 * @param {Float64Array | null} sinks as they were given, smoothSoftmax apart
 * @returns {Inputs}
 */
export function readInputs(runtime, call, sinks) {
  return {
    query: numbersOf(runtime, call.query),
    key: numbersOf(runtime, call.key),
    value: numbersOf(runtime, call.value),
    bias: call.bias && numbersOf(runtime, call.bias),
    sinks,
    alibiSlopes: call.alibiSlopes && Float64Array.from(call.alibiSlopes.data),
    scale: Float64Array.of(call.scale),
  };
}

/**
 * @param {Runtime} runtime
 * @param {Operand} operand of floats
 * @returns {Float64Array}
 */
function numbersOf(runtime, operand) {
  const { dtype } = operand;
  const stored = viewOf(runtime, operand);
  if (dtype === 'float32') return Float64Array.from(stored);
  return Float64Array.from(dtype === 'float16' ? fromFloat16Bits(stored) : fromBfloat16Bits(stored));
}

/** A call whose rows can be computed one by one. */
export class PlainAttention {
  #call;
  #mask;
  #scores;

  /**
   * @param {Runtime} runtime
   * @param {AttentionCall} call with all sizes
   * @param {Inputs} inputs read at each row
   */
  constructor(runtime, call, inputs) {
    this.#call = call;
    this.inputs = inputs;
    const { mask } = call;
    this.#mask = mask && viewOf(runtime, mask).slice();
    this.#scores = new Float64Array(call.seqlenKv);
  }

  /**
   * Σ out·weights of one row.
   * @param {number} b
   * @param {number} h
   * @param {number} i
   * @param {Float32Array | Float64Array} weights
   * @param {number} at of the row's first
   */
  row(b, h, i, weights, at) {
    const call = this.#call;
    const { headDim, headDimV, numHeads, numKvHeads, softcap, dropout, smoothSoftmax } = call;
    const { query, key, value, bias, sinks, alibiSlopes, scale } = this.inputs;
    const g = Math.floor(h / (numHeads / numKvHeads));
    const q = this.at('query', b, h, i);
    const { position, start, end } = place(call, b, i);
    const scores = this.#scores;
    let most = -Infinity;
    for (let j = start; j < end; j++) {
      scores[j] = -Infinity;
      if (!this.#allows(b, h, i, j, position, start)) continue;
      let dot = 0;
      const k = this.at('key', b, g, j);
      for (let d = 0; d < headDim; d++) dot += query[q + d] * key[k + d];
      let t = scale[0] * dot;
      if (softcap > 0) t = softcap * Math.tanh(t / softcap);
      if (bias && call.bias) t += bias[broadcastAt(call.bias.shape, b, h, i, j)];
      if (alibiSlopes) t -= alibiSlopes[perHeadAt(alibiSlopes, b, h, numHeads)] * Math.abs(position - (j - start));
      scores[j] = t;
      if (t > most) most = t;
    }
    const logits = [];
    if (sinks) logits.push(sinks[perHeadAt(sinks, b, h, numHeads)]);
    if (smoothSoftmax) logits.push(0);
    for (const logit of logits) most = Math.max(most, logit);
    if (most === -Infinity) return 0;
    let sum = 0;
    for (const logit of logits) sum += Math.exp(logit - most);
    let dot = 0;
    for (let j = start; j < end; j++) {
      if (scores[j] === -Infinity) continue;
      const weight = Math.exp(scores[j] - most);
      sum += weight;
      if (dropout > 0 && dropped(call, b, h, i, j)) continue;
      const v = this.at('value', b, g, j);
      let one = 0;
      for (let d = 0; d < headDimV; d++) one += value[v + d] * weights[at + d];
      dot += weight * one;
    }
    return dropout === 1 ? 0 : dot / sum / (1 - dropout);
  }

  /**
   * Where row i of a head begins.
   * @param {'query' | 'key' | 'value' | 'out'} name
   * @param {number} b
   * @param {number} h
   * @param {number} i
   */
  at(name, b, h, i) {
    const { numHeads, numKvHeads, seqlenQ, seqlenKv, headDim, headDimV, layout } = this.#call;
    const ofQuery = name === 'query' || name === 'out';
    const heads = ofQuery ? numHeads : numKvHeads;
    const rows = ofQuery ? seqlenQ : seqlenKv;
    const width = name === 'query' || name === 'key' ? headDim : headDimV;
    return (layout === layoutCodes.blhd ? (b * rows + i) * heads + h : (b * heads + h) * rows + i) * width;
  }

  /**
   * Whether a key takes part, a bias of -Infinity apart.
   * @param {number} b
   * @param {number} h
   * @param {number} i
   * @param {number} j
   * @param {number} position of the row
   * @param {number} start key that positions count from
   */
  #allows(b, h, i, j, position, start) {
    const call = this.#call;
    const { seqlenQ, seqlenKv, chunk, mask, blockMask, querySegments, keySegments } = call;
    const own = j - start;
    if (call.causal && own > position) return false;
    if (own > position + call.windowRight) return false;
    if (own >= call.globalKeys) {
      if (own < position - call.windowLeft) return false;
      if (chunk && Math.floor(own / chunk) !== Math.floor(position / chunk)) return false;
    }
    if (querySegments && keySegments && querySegments.data[b * seqlenQ + i] !== keySegments.data[b * seqlenKv + j]) {
      return false;
    }
    if (blockMask && !inBlocks(blockMask, b, h, i, j)) return false;
    return !mask || this.#mask[broadcastAt(mask.shape, b, h, i, j)] !== 0;
  }
}

/**
 * Where query row i stands among the keys start … end - 1 that may be its own.
 * @param {AttentionCall} call
 * @param {number} b
 * @param {number} i
 */
function place(call, b, i) {
  const { queryStarts, keyStarts, seqlenQ, align } = call;
  const keys = call.kvLengths ? call.kvLengths[b] : call.seqlenKv;
  const rows = call.queryLengths ? call.queryLengths[b] : seqlenQ;
  const given = call.queryOffsets ? call.queryOffsets[b] : call.queryOffset;
  /** @param {number} lowerRight @param {boolean} unset */
  const offset = (lowerRight, unset) =>
    align === alignCodes.offset ? given : align === alignCodes['lower-right'] || unset ? lowerRight : 0;
  const nothing = { position: 0, start: 0, end: 0 };
  if (i >= rows) return nothing;
  if (!queryStarts || !keyStarts) return { position: i + offset(keys - seqlenQ, false), start: 0, end: keys };
  for (let s = 0; s + 1 < queryStarts.length; s++) {
    if (i < queryStarts[s] || i >= queryStarts[s + 1]) continue;
    const [start, end] = [keyStarts[s], keyStarts[s + 1]];
    const lowerRight = end - start - (queryStarts[s + 1] - queryStarts[s]);
    const position = i - queryStarts[s] + offset(lowerRight, align === alignCodes.none);
    return { position, start, end: Math.min(end, keys) };
  }
  return nothing;
}

/**
 * @param {ArrayLike<number>} shape of rank 4, each size 1 or full
 * @param {number} b
 * @param {number} h
 * @param {number} i
 * @param {number} j
 */
export function broadcastAt(shape, b, h, i, j) {
  const at = (/** @type {number} */ d, /** @type {number} */ index) => (shape[d] === 1 ? 0 : index);
  return ((at(0, b) * shape[1] + at(1, h)) * shape[2] + at(2, i)) * shape[3] + at(3, j);
}

/**
 * @param {ArrayLike<number>} numbers (Hq) or (B, Hq)
 * @param {number} b
 * @param {number} h
 * @param {number} numHeads
 */
export const perHeadAt = ({ length }, b, h, numHeads) => (length === numHeads ? h : b * numHeads + h);

/**
 * @param {import('../options.js').Blocks} mask
 * @param {number} b
 * @param {number} h
 * @param {number} i
 * @param {number} j
 */
function inBlocks({ rows, columns, batch, heads, tiles, bits }, b, h, i, j) {
  const across = Math.ceil(columns / 64);
  const plane = (batch === 1 ? 0 : b) * heads + (heads === 1 ? 0 : h);
  const tile = tiles[(plane * Math.ceil(rows / 64) + (i >> 6)) * across + (j >> 6)];
  if (tile < 2) return tile === 1;
  return ((bits[((tile - 2) * 64 + (i & 63)) * 2 + ((j & 63) >> 5)] >>> (j & 31)) & 1) === 1;
}
