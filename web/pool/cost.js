// What query rows cost, in multiply-adds: rows that see many keys take longer than those that see few.

import { alignCodes } from '../frame.js';

/** @typedef {import('../options.js').AttentionCall} AttentionCall */

/** Rows that the kernels work on together. */
const blockRows = 48;

/** Rows of the smallest part of a block that costs less than the block. */
const panelRows = 8;

/** Keys that a row costs as much as besides those that it sees: reading it, writing its result. */
const rowKeys = 8;

/**
 * Position of query 0 of one batch entry.
 * @param {AttentionCall} call
 * @param {number} b
 */
export function offsetOf(call, b) {
  if (call.align === alignCodes.offset) return call.queryOffsets ? call.queryOffsets[b] : call.queryOffset;
  if (call.align === alignCodes['lower-right']) return keysOf(call, b) - call.seqlenQ;
  return 0;
}

/**
 * @param {AttentionCall} call
 * @param {number} b
 */
const keysOf = (call, b) => (call.kvLengths ? call.kvLengths[b] : call.seqlenKv);

/** Costs of the rows of one head of one batch entry. */
export class RowCost {
  #offset;
  #keys;
  #queries;
  #left;
  #right;
  #rows;
  #perKey;
  #perRow;

  /**
   * @param {AttentionCall} call
   * @param {number} b
   */
  constructor(call, b) {
    this.#offset = offsetOf(call, b);
    this.#keys = keysOf(call, b);
    this.#queries = call.queryLengths ? call.queryLengths[b] : call.seqlenQ;
    this.#left = call.windowLeft;
    this.#right = call.causal ? 0 : call.windowRight;
    this.#rows = call.seqlenQ;
    this.#perKey = call.headDim + call.headDimV;
    // Of what is read or written for each key, seen or not: bytes at about what memory moves in the time of a multiply-add.
    const dense = (call.mask ? 1 : 0) + (call.bias ? 4 : 0) + (call.scores ? 8 : 0);
    this.#perRow = rowKeys * this.#perKey + dense * call.seqlenKv;
    /** Of all rows. */
    this.total = this.of(0, call.seqlenQ);
  }

  /**
   * Keys that query row i sees, masks apart.
   * @param {number} i
   */
  visible(i) {
    if (i >= this.#queries) return 0;
    const position = i + this.#offset;
    return Math.max(0, Math.min(this.#keys, position + this.#right + 1) - Math.max(0, position - this.#left));
  }

  /**
   * Rows first … end - 1; of each block's middle row, as neighbours see nearly the same number of keys.
   * @param {number} first
   * @param {number} end
   */
  of(first, end) {
    let sum = (end - first) * this.#perRow;
    for (let i = first; i < end; i += blockRows) {
      const rows = Math.min(blockRows, end - i);
      sum += rows * this.visible(i + (rows >> 1)) * this.#perKey;
    }
    return sum;
  }

  /**
   * Where a slice that starts at row `first` ends, so that it costs about `target`: whole blocks, but where a single block costs
   * more than that.
   * @param {number} first
   * @param {number} target
   */
  reach(first, target) {
    let end = first;
    let cost = 0;
    while (end < this.#rows) {
      const next = Math.min(this.#rows, end + blockRows);
      const block = this.of(end, next);
      if (cost + block > target) {
        if (cost > 0) return end;
        const rows = Math.floor(((next - end) * target) / block);
        // Less than a panel costs nearly as much as a panel.
        const whole = Math.floor(rows / panelRows) * panelRows;
        return Math.min(next, end + Math.max(panelRows, whole));
      }
      cost += block;
      end = next;
    }
    return end;
  }
}
