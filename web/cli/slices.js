// One attention call cut into calls of a few query rows each, so that a progress bar moves, Ctrl-C is heard and memory stays low.
//
// A slice is one batch entry and the query rows first … first + rows - 1 of all heads. Keys and values of the batch entry stay in wasm
// memory meanwhile. Rows are independent of each other, and where a row stands is handed over as queryOffset, so the result has the
// same bits as one call.

import { kAlignLowerRight, kAlignOffset } from './call.js';

/** @import { Call } from './call.js' */
/** @import { Sdpa } from '../index.js' */

/** Multiply-adds of one slice: about a tenth of a second in the simd build, and enough rows that packing the keys does not show. */
const kSliceWork = 1e9;
/** Rows come in multiples of this, several tiles of every kernel. */
const kRowStep = 64;

/**
 * @typedef {object} Results
 * @property {Float32Array} out in the layout of the query
 * @property {Float32Array} [lse] (B, Hq, L)
 * @property {Float32Array} [scores] (B, Hq, L, S)
 */

/**
 * @param {Call} call
 * @returns {number} query rows in one slice
 */
export function rowsPerSlice(call) {
  const perRow = call.numHeads * call.seqlenKv * (call.headDim + call.headDimV);
  return kRowStep * Math.max(1, Math.floor(kSliceWork / Math.max(1, perRow) / kRowStep));
}

/**
 * Computes `call`, and yields after each slice the query rows done so far, of batch · L.
 * @param {Sdpa} sdpa
 * @param {Call} call
 * @param {number} rows per slice
 * @param {Results} results filled in
 * @returns {Generator<number, void>}
 */
export function* computeSlices(sdpa, call, rows, results) {
  for (let b = 0; b < call.batch; b++) {
    const key = residentEntry(sdpa, call, 'key', b);
    const value = residentEntry(sdpa, call, 'value', b);
    try {
      for (let first = 0; first < call.seqlenQ; first += rows) {
        const end = Math.min(call.seqlenQ, first + rows);
        computeSlice(sdpa, call, { b, first, end }, key, value, results);
        yield b * call.seqlenQ + end;
      }
    } finally {
      key.dispose();
      value.dispose();
    }
  }
}

/** @typedef {{ b: number, first: number, end: number }} Slice query rows first … end - 1 of batch entry b */

/**
 * @param {Sdpa} sdpa
 * @param {Call} call
 * @param {Slice} slice
 * @param {ReturnType<Sdpa['tensor']>} key
 * @param {ReturnType<Sdpa['tensor']>} value
 * @param {Results} results
 */
function computeSlice(sdpa, call, slice, key, value, results) {
  const { b, first, end } = slice;
  const { numHeads, seqlenQ, seqlenKv, headDim, headDimV } = call;
  const blhd = call.layoutName === 'blhd';
  const count = end - first;
  // (Hq, L, D) is Hq blocks of L rows, (L, Hq, D) one block of L rows that are Hq times as wide
  const blocks = blhd ? 1 : numHeads;
  const heads = blhd ? numHeads : 1;
  const query = {
    data: takeRows(call.query.data, { from: b * blocks, blocks, rows: seqlenQ, width: heads * headDim }, first, end),
    shape: blhd ? [1, count, numHeads, headDim] : [1, numHeads, count, headDim],
    dtype: call.query.dtype,
  };
  const result = sdpa.attention(query, key, value, sliceOptions(call, slice));
  putRows(results.out, result.out.data, { from: b * blocks, blocks, rows: seqlenQ, width: heads * headDimV }, first);
  if (results.lse) {
    putRows(
      results.lse,
      /** @type {any} */ (result.lse).data,
      { from: b * numHeads, blocks: numHeads, rows: seqlenQ, width: 1 },
      first,
    );
  }
  if (results.scores) {
    const where = { from: b * numHeads, blocks: numHeads, rows: seqlenQ, width: seqlenKv };
    putRows(results.scores, /** @type {any} */ (result.scores).data, where, first);
  }
}

/**
 * @param {Call} call
 * @param {Slice} slice
 * @returns {any} AttentionOptions of the slice
 */
function sliceOptions(call, slice) {
  const { b, first, end } = slice;
  /** @type {Record<string, unknown>} */
  const options = { layout: call.layoutName, scale: call.scale, softcap: call.softcap, returnLse: call.returnLse };
  if (call.scoresName) options.scores = call.scoresName;
  if (call.mask) options.mask = sliceBroadcast(call.mask, slice);
  if (call.bias) options.bias = sliceBroadcast(call.bias, slice);
  const windowed = call.windowLeft !== Infinity || call.windowRight !== Infinity;
  if (call.causal || windowed) {
    options.causal = call.causal;
    options.queryOffset = offsetOf(call, b) + first;
    if (windowed) options.window = [call.windowLeft, call.windowRight];
  }
  if (call.kvLengths) options.kvLengths = call.kvLengths.slice(b, b + 1);
  if (call.queryLengths) {
    options.queryLengths = Int32Array.of(Math.min(end, Math.max(first, call.queryLengths[b])) - first);
  }
  return options;
}

/**
 * @param {Call} call
 * @param {number} b
 * @returns {number} position of query 0 of batch entry b
 */
function offsetOf(call, b) {
  if (call.align === kAlignOffset) return call.queryOffsets ? call.queryOffsets[b] : call.queryOffset;
  if (call.align === kAlignLowerRight) return (call.kvLengths ? call.kvLengths[b] : call.seqlenKv) - call.seqlenQ;
  return 0;
}

/**
 * Keys or values of one batch entry, in wasm memory.
 * @param {Sdpa} sdpa
 * @param {Call} call
 * @param {'key' | 'value'} name
 * @param {number} b
 * @returns {ReturnType<Sdpa['tensor']>}
 */
function residentEntry(sdpa, call, name, b) {
  const { data, dtype } = call[name];
  const { numKvHeads, seqlenKv } = call;
  const width = name === 'key' ? call.headDim : call.headDimV;
  const shape = call.layoutName === 'blhd' ? [1, seqlenKv, numKvHeads, width] : [1, numKvHeads, seqlenKv, width];
  const size = numKvHeads * seqlenKv * width;
  const tensor = sdpa.tensor(shape, dtype);
  tensor.data.set(data.subarray(b * size, (b + 1) * size));
  return tensor;
}

/**
 * @param {{ data: any, dtype: string, shape: number[] }} operand mask or bias, shape of rank 4, each dimension full or 1
 * @param {Slice} slice
 * @returns {{ data: any, dtype: string, shape: number[] }}
 */
function sliceBroadcast({ data, dtype, shape }, { b, first, end }) {
  const [batch, heads, rows, width] = shape;
  const [from, to] = rows === 1 ? [0, 1] : [first, end];
  const where = { from: batch === 1 ? 0 : b * heads, blocks: heads, rows, width };
  return { data: takeRows(data, where, from, to), dtype, shape: [1, heads, to - from, width] };
}

/**
 * Blocks of equal size one after the other, each of `rows` rows of `width` elements; `from` is the first block meant.
 * @typedef {{ from: number, blocks: number, rows: number, width: number }} Blocks
 */

/**
 * @template {Float32Array | Uint16Array | Uint8Array} T
 * @param {T} data
 * @param {Blocks} where
 * @param {number} first
 * @param {number} end
 * @returns {T} rows first … end - 1 of each block; a view where they are contiguous
 */
function takeRows(data, { from, blocks, rows, width }, first, end) {
  if (blocks === 1 || (first === 0 && end === rows)) {
    return /** @type {T} */ (data.subarray((from * rows + first) * width, ((from + blocks - 1) * rows + end) * width));
  }
  const size = (end - first) * width;
  const array = /** @type {new (length: number) => T} */ (data.constructor);
  const taken = new array(blocks * size);
  for (let i = 0; i < blocks; i++) {
    const start = ((from + i) * rows + first) * width;
    taken.set(data.subarray(start, start + size), i * size);
  }
  return taken;
}

/**
 * @param {Float32Array} target
 * @param {Float32Array} data rows of each block, one block after the other
 * @param {Blocks} where
 * @param {number} first row of each block to write
 */
function putRows(target, data, { from, blocks, rows, width }, first) {
  const size = data.length / blocks;
  for (let i = 0; i < blocks; i++)
    target.set(data.subarray(i * size, (i + 1) * size), ((from + i) * rows + first) * width);
}
