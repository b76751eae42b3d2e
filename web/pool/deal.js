// How a call is dealt out. A unit is what shares keys and values: one key head of one batch entry, or several small ones
// together. A slice is a piece of a unit that one thread computes at a time: some query heads, or some rows of one.

import { offsetOf, RowCost } from './cost.js';

/** @typedef {import('../options.js').AttentionCall} AttentionCall */

/**
 * Query heads head … head + heads - 1 (counted from the unit's first) and rows row … row + rows - 1.
 * @typedef {{ unit: Unit, head: number, heads: number, row: number, rows: number, cost: number }} Slice
 */

/**
 * Costs of the rows of one head of one batch entry, or of whatever else a call is cut along: see RowCost.
 * @typedef {object} Costs
 * @property {number} rows
 * @property {number} total of all rows
 * @property {(first: number, end: number) => number} of rows first … end - 1
 * @property {(first: number, target: number) => number} reach where a slice that starts at `first` ends, so that it costs about `target`
 */

/** The largest offset that a call may have. */
const farthest = 2 ** 31;

export class Unit {
  /** @type {Costs} */
  #costs;
  #rows;
  #whole;
  /** Slices whose thread was lost. @type {Slice[]} */
  #returned = [];
  #head = 0;
  #row = 0;

  /**
   * @param {AttentionCall} call
   * @param {Costs} costs of one head
   * @param {readonly [number, number, number, number]} where first batch entry, number of them, first key head, number of them
   */
  constructor(call, costs, [b, batch, g, kvHeads]) {
    this.#costs = costs;
    this.#rows = costs.rows;
    // A slice of some rows says by an offset where they stand, unless they are of packed sequences.
    this.#whole = !call.queryStarts && offsetOf(call, b) + call.seqlenQ > farthest;
    this.b = b;
    this.batch = batch;
    this.g = g;
    this.kvHeads = kvHeads;
    /** Query heads of each batch entry. */
    this.heads = kvHeads * (call.numHeads / call.numKvHeads);
    /** Cost of what has not been taken. */
    this.left = batch * this.heads * costs.total;
    /** Whether something has been taken. */
    this.open = false;
  }

  /** Whether there is nothing to take. */
  get empty() {
    return this.#head === this.heads && this.#returned.length === 0;
  }

  /**
   * @param {number} target cost
   * @returns {Slice}
   */
  take(target) {
    this.open = true;
    const slice = this.#returned.pop() ?? this.#cut(target);
    this.left -= slice.cost;
    return slice;
  }

  /** @param {Slice} slice */
  giveBack(slice) {
    this.#returned.push(slice);
    this.left += slice.cost;
  }

  /**
   * @param {number} target
   * @returns {Slice}
   */
  #cut(target) {
    const { total } = this.#costs;
    const head = this.#head;
    const row = this.#row;
    if (this.batch > 1 || this.kvHeads > 1) {
      this.#head = this.heads;
      return { unit: this, head: 0, heads: this.heads, row: 0, rows: this.#rows, cost: this.left };
    }
    if (this.#whole || (row === 0 && total <= target)) {
      const heads = Math.min(this.heads - head, Math.max(1, Math.floor(target / total)));
      this.#head += heads;
      return { unit: this, head, heads, row, rows: this.#rows, cost: heads * total };
    }
    const end = this.#costs.reach(row, target);
    this.#row = end;
    if (end === this.#rows) {
      this.#row = 0;
      this.#head++;
    }
    return { unit: this, head, heads: 1, row, rows: end - row, cost: this.#costs.of(row, end) };
  }
}

/** All units of a call. */
export class Deal {
  /** Units that nobody has taken from, the cheapest first. @type {Unit[]} */
  #fresh;
  /** Units that slices can be taken from and have been. @type {Set<Unit>} */
  #open = new Set();

  /**
   * @param {AttentionCall} call
   * @param {number} grain cost up to which key heads, or whole batch entries, are put together
   * @param {number} parts least number of units that the call is to have, where it has as many heads
   * @param {(b: number) => Costs} [costOf] of each batch entry
   */
  constructor(call, grain, parts, costOf = (b) => new RowCost(call, b)) {
    this.#fresh = makeUnits(call, grain, parts, costOf);
    /** Cost of what has not been taken. */
    this.left = this.#fresh.reduce((sum, unit) => sum + unit.left, 0);
    this.#fresh.sort((a, b) => a.left - b.left);
  }

  /** Whether there is nothing to take. */
  get empty() {
    return this.#fresh.length === 0 && this.#open.size === 0;
  }

  /**
   * The next slice for a thread that has the keys of `held`: of the same unit while there is some of it, then of one that nobody
   * has begun, then of the one with most left to do.
   * @param {Unit | null} held
   * @param {number} target cost
   * @returns {Slice | null} null where nothing is left to take
   */
  take(held, target) {
    const unit = held && this.#open.has(held) ? held : (this.#fresh.pop() ?? this.#fullest());
    if (!unit) return null;
    const slice = unit.take(target);
    this.left -= slice.cost;
    if (unit.empty) this.#open.delete(unit);
    else this.#open.add(unit);
    return slice;
  }

  /**
   * Takes back what was not computed.
   * @param {Slice} slice
   */
  giveBack(slice) {
    slice.unit.giveBack(slice);
    this.#open.add(slice.unit);
    this.left += slice.cost;
  }

  #fullest() {
    /** @type {Unit | null} */
    let best = null;
    for (const unit of this.#open) if (!best || unit.left > best.left) best = unit;
    return best;
  }
}

/**
 * @param {AttentionCall} call
 * @param {number} grain
 * @param {number} parts
 * @param {(b: number) => Costs} costOf
 * @returns {Unit[]}
 */
function makeUnits(call, grain, parts, costOf) {
  const { batch, numHeads, numKvHeads, kvLengths, queryLengths, queryOffsets, blockMask } = call;
  const differ = kvLengths || queryLengths || queryOffsets || (blockMask && blockMask.batch > 1);
  const first = costOf(0);
  const costs = Array.from({ length: batch }, (_, b) => (differ && b > 0 ? costOf(b) : first));
  const most = Math.min(grain, (numHeads * costs.reduce((sum, { total }) => sum + total, 0)) / parts);
  /** @type {Unit[]} */
  const units = [];
  for (let b = 0; b < batch;) {
    // Whole batch entries, while they are cheap.
    let end = b;
    let cost = 0;
    while (end < batch && cost + numHeads * costs[end].total <= most) cost += numHeads * costs[end++].total;
    if (end - b > 1) {
      const unit = new Unit(call, costs[b], [b, end - b, 0, numKvHeads]);
      unit.left = cost;
      units.push(unit);
      b = end;
      continue;
    }
    const group = (numHeads / numKvHeads) * costs[b].total;
    const together = Math.max(1, Math.floor(most / group));
    for (let g = 0; g < numKvHeads; g += together) {
      units.push(new Unit(call, costs[b], [b, 1, g, Math.min(together, numKvHeads - g)]));
    }
    b++;
  }
  return units;
}
