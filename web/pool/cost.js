// What query rows cost, in multiply-adds: rows that see many keys take longer than those that see few.

import { alignCodes } from '../frame.js';

/** @typedef {import('../options.js').AttentionCall} AttentionCall */

/** Rows that the kernels work on together. */
const blockRows = 48;

/** Rows of the smallest part of a block that costs less than the block. */
const panelRows = 8;

/** Keys that a row costs as much as besides those that it sees: reading it, writing its result. */
const rowKeys = 8;

/** Rows and keys of a tile of a block mask. */
const tileSize = 64;

/**
 * Position of query 0 of one batch entry; packed sequences have their own.
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

/**
 * Keys that the rows of each tile row of a block mask see at most: those of its tiles that are not empty, the mean of its heads.
 * @param {import('../options.js').Blocks} mask
 * @param {number} b
 */
function tileKeys({ rows, columns, batch, heads, tiles }, b) {
  const down = Math.ceil(rows / tileSize);
  const across = Math.ceil(columns / tileSize);
  const keys = new Float64Array(down);
  let at = (batch === 1 ? 0 : b) * heads * down * across;
  for (let h = 0; h < heads; h++) {
    for (let i = 0; i < down; i++) {
      let kept = 0;
      for (let j = 0; j < across; j++) if (tiles[at++] !== 0) kept++;
      keys[i] += (kept * tileSize) / heads;
    }
  }
  return keys;
}

/**
 * Which of the packed sequences a row is of: the last that starts at or before it.
 * @param {Int32Array} starts
 * @param {number} row
 */
function sequenceOf(starts, row) {
  let low = 0;
  let high = starts.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (starts[middle] <= row) low = middle;
    else high = middle;
  }
  return low;
}

/** Costs of the rows of one head of one batch entry. */
export class RowCost {
  #call;
  #b;
  #offset;
  #keys;
  #queries;
  #left;
  #right;
  #chunk;
  #rows;
  #tileKeys;
  #perKey;
  #perRow;

  /**
   * @param {AttentionCall} call
   * @param {number} b
   */
  constructor(call, b) {
    this.#call = call;
    this.#b = b;
    this.#offset = offsetOf(call, b);
    this.#keys = keysOf(call, b);
    this.#queries = call.queryLengths ? call.queryLengths[b] : call.seqlenQ;
    this.#left = call.windowLeft;
    this.#right = call.causal ? 0 : call.windowRight;
    this.#chunk = call.chunk || Infinity;
    this.#rows = call.seqlenQ;
    this.#tileKeys = call.blockMask && tileKeys(call.blockMask, b);
    this.#perKey = call.headDim + call.headDimV;
    // Of what is read or written for each key, seen or not: bytes at about what memory moves in the time of a multiply-add.
    const dense = (call.mask ? 1 : 0) + (call.bias ? 4 : 0) + (call.scores ? 8 : 0);
    this.#perRow = rowKeys * this.#perKey + dense * call.seqlenKv;
    /** Number of rows. */
    this.rows = call.seqlenQ;
    /** Of all rows. */
    this.total = this.of(0, call.seqlenQ);
  }

  /**
   * Keys that query row i sees; masks, biases and segments apart, and at most those of its tiles of a block mask.
   * @param {number} i
   */
  visible(i) {
    if (i >= this.#queries) return 0;
    const seen = this.#call.queryStarts ? this.#inSequence(i) : this.#seen(i + this.#offset, this.#keys);
    return this.#tileKeys ? Math.min(seen, this.#tileKeys[Math.floor(i / tileSize)]) : seen;
  }

  /** @param {number} i */
  #inSequence(i) {
    const queryStarts = /** @type {Int32Array} */ (this.#call.queryStarts);
    const keyStarts = /** @type {Int32Array} */ (this.#call.keyStarts);
    const s = sequenceOf(queryStarts, i);
    if (s === queryStarts.length - 1) return 0;
    const queries = queryStarts[s + 1] - queryStarts[s];
    const keys = keyStarts[s + 1] - keyStarts[s];
    const { align } = this.#call;
    const said = align === alignCodes.offset || align === alignCodes['upper-left'];
    const offset = said ? offsetOf(this.#call, this.#b) : keys - queries;
    return this.#seen(i - queryStarts[s] + offset, Math.max(0, Math.min(keys, this.#keys - keyStarts[s])));
  }

  /**
   * Keys of `keys` that a query at a position sees: its own, by window and chunk, and the global ones.
   * @param {number} position
   * @param {number} keys
   */
  #seen(position, keys) {
    const chunk = this.#chunk === Infinity ? 0 : Math.floor(position / this.#chunk) * this.#chunk;
    const last = Math.min(keys, position + this.#right + 1);
    const begin = Math.max(0, position - this.#left, chunk);
    const end = Math.min(last, chunk + this.#chunk);
    const global = Math.min(last, this.#call.globalKeys);
    return Math.max(0, end - begin) + Math.max(0, end > begin ? Math.min(begin, global) : global);
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
