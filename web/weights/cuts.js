// Where a call for weights can be cut along its rows without changing a bit, and what the pieces cost.

import { RowCost } from '../pool/cost.js';
import { kinds } from './kinds.js';

/**
 * @typedef {import('../options.js').AttentionCall} AttentionCall
 * @typedef {import('./kinds.js').Request} Request
 */

/** Rows that the module adds up by themselves: kWeightsPiece. Sums of pieces, added in order, are those of the whole. */
const pieceRows = 192;

/** Rows that the kernels work on together. */
const blockRows = 48;

/** Keys that a row costs as much as besides those that it sees. */
const rowKeys = 8;

/** @param {Request} request */
export const addsRows = ({ kind }) => kind === kinds.sum || kind === kinds.mean || kind === kinds.max;

/** Query rows as the steps that slices are made of: picked rows, blocks, or pieces. */
export class Cuts {
  #call;
  #picks;
  #step;

  /**
   * @param {AttentionCall} call
   * @param {Request} request
   */
  constructor(call, request) {
    this.#call = call;
    this.#picks = request.kind === kinds.rows ? /** @type {Int32Array} */ (request.picks) : null;
    this.#step = addsRows(request) ? pieceRows : blockRows;
    /** Number of steps. */
    this.steps = this.#picks ? this.#picks.length : Math.ceil(call.seqlenQ / this.#step);
    /** Rows that are computed. */
    this.rows = this.#picks ? this.#picks.length : call.seqlenQ;
  }

  /**
   * Query rows that steps first … end - 1 cover.
   * @param {number} first
   * @param {number} end
   * @returns {{ row: number, rows: number }}
   */
  span(first, end) {
    const picks = this.#picks;
    const row = picks ? picks[first] : first * this.#step;
    const last = picks ? picks[end - 1] + 1 : Math.min(this.#call.seqlenQ, end * this.#step);
    return { row, rows: last - row };
  }

  /**
   * Rows that are computed in steps first … end - 1.
   * @param {number} first
   * @param {number} end
   */
  count(first, end) {
    return this.#picks ? end - first : this.span(first, end).rows;
  }
}

/** Costs of the steps of one head of one batch entry, in multiply-adds: see Costs of pool/deal.js. */
export class StepCost {
  /** Of all steps before each, and of all. @type {Float64Array} */
  #before;

  /**
   * @param {AttentionCall} call
   * @param {Request} request
   * @param {Cuts} cuts
   * @param {boolean} hasLse whether lse need not be computed
   * @param {number} b
   */
  constructor(call, { kind, width }, cuts, hasLse, b) {
    const cost = new RowCost(call, b);
    /** Number of steps. */
    this.rows = cuts.steps;
    this.#before = new Float64Array(cuts.steps + 1);
    for (let s = 0; s < cuts.steps; s++) {
      const { row, rows } = cuts.span(s, s + 1);
      // Neighbours see nearly the same number of keys.
      const seen = cost.visible(row + (rows >> 1));
      const used = kind === kinds.columns ? Math.min(seen, width) : seen;
      const keys = used + (hasLse ? 0 : seen) + rowKeys;
      this.#before[s + 1] = this.#before[s] + rows * keys * call.headDim;
    }
    /** Of all steps. */
    this.total = this.#before[cuts.steps];
  }

  /**
   * @param {number} first
   * @param {number} end
   */
  of(first, end) {
    return this.#before[end] - this.#before[first];
  }

  /**
   * @param {number} first
   * @param {number} target
   */
  reach(first, target) {
    let end = first + 1;
    while (end < this.rows && this.of(first, end + 1) <= target) end++;
    return end;
  }
}

/**
 * Cells of a slice's rows, counted from its first: those of the call, cut where pieces end.
 * @param {AttentionCall} call
 * @param {Request} request
 * @param {number} row
 * @param {number} rows
 * @returns {Int32Array} starts and the end
 */
export function cellsOfSlice(call, { rowCells }, row, rows) {
  const end = row + rows;
  const starts = new Set([row, end]);
  for (let piece = Math.ceil(row / pieceRows) * pieceRows; piece < end; piece += pieceRows) starts.add(piece);
  for (const start of rowCells ?? [0, call.seqlenQ]) if (start > row && start < end) starts.add(start);
  return Int32Array.from(starts)
    .sort()
    .map((start) => start - row);
}
