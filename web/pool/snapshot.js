// The inputs of an asynchronous call, copied when it is made, and the pieces of them that slices need.

import { outOfMemory } from '../errors.js';
import { alignCodes, layoutCodes } from '../frame.js';
import { viewOf } from '../operand.js';
import { copyRectangle, cutOut, rectangle } from './blocks.js';
import { offsetOf } from './cost.js';

/**
 * @typedef {import('../operand.js').Operand} Operand
 * @typedef {import('../options.js').AttentionCall} AttentionCall
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('./buffers.js').Buffers} Buffers
 * @typedef {import('./deal.js').Slice} Slice
 * @typedef {import('./deal.js').Unit} Unit
 * @typedef {import('./slice-runner.js').Keys} Keys
 * @typedef {import('./slice-runner.js').SliceWork} SliceWork
 * @typedef {import('./slice-runner.js').Piece} Piece
 */

/** @template T @typedef {import('../option-arrays.js').Numbers<T>} Numbers */

/**
 * An operand's elements in an array of their own; 16-bit floats as raw bits, booleans as bytes.
 * @param {Runtime} runtime
 * @param {Operand} operand
 * @param {Buffers} buffers
 * @returns {Float32Array | Uint16Array | Uint8Array}
 */
export function copyOperand(runtime, operand, buffers) {
  const view = viewOf(runtime, operand);
  const copy = buffers.take(view.constructor, operand.count);
  copy.set(view);
  return copy;
}

export class Snapshot {
  /** @type {AttentionCall} */
  #call;
  #query;
  #key;
  #value;
  #mask;
  #bias;
  #buffers;

  /**
   * @param {Runtime} runtime
   * @param {AttentionCall} call whose keys and values may lie elsewhere: then keys() is not to be called
   * @param {Buffers} buffers
   * @throws RangeError `out-of-memory`
   */
  constructor(runtime, call, buffers) {
    this.#call = call;
    this.#buffers = buffers;
    const { query, key, value, mask, bias } = call;
    try {
      this.#query = copyOperand(runtime, query, buffers);
      this.#key = key && copyOperand(runtime, key, buffers);
      this.#value = value && copyOperand(runtime, value, buffers);
      this.#mask = mask && copyOperand(runtime, mask, buffers);
      this.#bias = bias && copyOperand(runtime, bias, buffers);
    } catch (cause) {
      if (!(cause instanceof RangeError)) throw cause;
      const bytes = [query, key, value, mask, bias].reduce((sum, operand) => sum + (operand?.bytes ?? 0), 0);
      throw outOfMemory(bytes, 0, 'a copy of the inputs', cause);
    }
  }

  /** Gives the copies back: no piece is wanted any more. */
  release() {
    for (const array of [this.#query, this.#key, this.#value, this.#mask, this.#bias])
      this.#buffers.give(array?.buffer);
  }

  /**
   * Keys and values of a unit, (batch, heads, keys, size) whatever the layout.
   * @param {Unit} unit
   * @param {boolean} own whether the arrays must be their own, to be sent away
   * @returns {Keys}
   */
  keys({ b, batch, g, kvHeads }, own) {
    const { key, value, layout, numKvHeads, seqlenKv, headDim, headDimV } = this.#call;
    const { keySegments, queryStarts, keyStarts } = this.#call;
    /** @param {any} data @param {number} width */
    const cut = (data, width) =>
      cutOut(
        rectangle(data, layout === layoutCodes.blhd, [numKvHeads, seqlenKv, width], [b, g, 0]),
        [batch, kvHeads, seqlenKv, width],
        own ? this.#buffers : null,
      );
    return {
      key: cut(this.#key, headDim),
      keyDtype: key.dtype,
      value: cut(this.#value, headDimV),
      valueDtype: value.dtype,
      batch,
      heads: kvHeads,
      seqlen: seqlenKv,
      headDim,
      headDimV,
      // Sent as copies: none is long beside the keys.
      segments: keySegments && keySegments.data.slice(b * seqlenKv, (b + batch) * seqlenKv),
      queryStarts,
      keyStarts,
    };
  }

  /**
   * The call's block mask, whole: slices find their cells in it. Nobody changes it, so that it was not copied.
   * @param {boolean} own as for keys()
   * @returns {import('../options.js').Blocks | null}
   */
  blocks(own) {
    const { blockMask } = this.#call;
    if (!blockMask) return null;
    const { rows, columns, batch, heads, tiles, bits } = blockMask;
    return { rows, columns, batch, heads, tiles: own ? tiles.slice() : tiles, bits: own ? bits.slice() : bits };
  }

  /**
   * A slice as a call of its own: where its rows stand is said by offsets, so that the result has the same bits.
   * @param {Slice} slice
   * @param {boolean} own as for keys()
   * @returns {SliceWork}
   */
  work({ unit, head, heads, row, rows }, own) {
    const call = this.#call;
    const { b, batch } = unit;
    const h = unit.g * (call.numHeads / call.numKvHeads) + head;
    const { scale, softcap, causal, windowLeft, windowRight, chunk, globalKeys, returnLse, scores, layout } = call;
    const { queryLengths, kvLengths, queryStarts, headDim, dropout, seedLow, seedHigh } = call;
    const query = rectangle(
      this.#query,
      layout === layoutCodes.blhd,
      [call.numHeads, call.seqlenQ, headDim],
      [b, h, row],
    );
    const entries = Array.from({ length: batch }, (_, i) => b + i);
    // Rows of packed sequences find their place by the row that the slice begins with.
    const packed = queryStarts !== null;
    const offsets = packed ? [offsetOf(call, b)] : entries.map((entry) => offsetOf(call, entry) + row);
    const from = [b, h, row];
    const sizes = [batch, heads, rows];
    const buffers = own ? this.#buffers : null;
    return {
      heads,
      rows,
      query: cutOut(query, [batch, heads, rows, headDim], buffers),
      queryDtype: call.query.dtype,
      mask: piece(call.mask, this.#mask, from, sizes, buffers),
      bias: piece(call.bias, this.#bias, from, sizes, buffers),
      align: packed ? call.align : alignCodes.offset,
      offsets,
      queryLengths: queryLengths && entries.map((entry) => Math.min(rows, Math.max(0, queryLengths[entry] - row))),
      kvLengths: kvLengths && entries.map((entry) => kvLengths[entry]),
      scale,
      softcap,
      causal,
      windowLeft,
      windowRight,
      chunk,
      globalKeys,
      alibiSlopes: perHead(call, call.alibiSlopes, from, sizes),
      sinks: perHead(call, call.sinks, from, sizes),
      segments: segments(call, from, sizes),
      blocks: call.blockMask !== null,
      dropout,
      seedLow,
      seedHigh,
      cellBatch: b,
      cellHead: h,
      cellRow: row,
      returnLse,
      scores,
    };
  }
}

/**
 * The numbers of a slice's heads, of each batch entry where they differ.
 * @param {AttentionCall} call
 * @param {Numbers<Float32Array> | null} numbers
 * @param {readonly number[]} from batch entry, head, row
 * @param {readonly number[]} sizes
 * @returns {Numbers<Float32Array> | null}
 */
function perHead({ numHeads }, numbers, [b, h], [batch, heads]) {
  if (!numbers) return null;
  const { data, shape } = numbers;
  if (shape.length === 1 || shape[0] === 1) return { data: data.slice(h, h + heads), shape: [heads] };
  const own = new Float32Array(batch * heads);
  copyRectangle(rectangle(data, false, [1, numHeads, 1], [b, 0, h]), rectangle(own, false, [1, heads, 1]), [
    batch,
    1,
    heads,
    1,
  ]);
  return { data: own, shape: [batch, heads] };
}

/**
 * The ids of a slice's rows, (batch, rows).
 * @param {AttentionCall} call
 * @param {readonly number[]} from batch entry, head, row
 * @param {readonly number[]} sizes
 * @returns {Int32Array | null}
 */
function segments({ querySegments, seqlenQ }, [b, , row], [batch, , rows]) {
  if (!querySegments) return null;
  const ids = new Int32Array(batch * rows);
  for (let i = 0; i < batch; i++) {
    const first = (b + i) * seqlenQ + row;
    ids.set(querySegments.data.subarray(first, first + rows), i * rows);
  }
  return ids;
}

/**
 * The piece of a mask or bias that a slice needs; dimensions of size 1 stay so.
 * @param {Operand | null} operand
 * @param {any} data
 * @param {readonly number[]} from batch entry, head, row
 * @param {readonly number[]} sizes
 * @param {Buffers | null} buffers as for cutOut()
 * @returns {Piece | null}
 */
function piece(operand, data, from, sizes, buffers) {
  if (!operand) return null;
  const [batch, heads, rows, columns] = operand.shape;
  /** @param {number} d */
  const start = (d) => (operand.shape[d] === 1 ? 0 : from[d]);
  /** @param {number} d */
  const size = (d) => (operand.shape[d] === 1 ? 1 : sizes[d]);
  /** @type {[number, number, number, number]} */
  const shape = [size(0), size(1), size(2), columns];
  // A dimension of size 1 stays where it is; batch only tells how far apart the entries are.
  const where = rectangle(data, false, [heads, rows, columns], [start(0), start(1), start(2)]);
  return { data: cutOut(batch === 1 ? { ...where, batch: 0 } : where, shape, buffers), dtype: operand.dtype, shape };
}
