// One result of an asynchronous call for weights: cut into slices, put together from theirs.

import { viewOf } from '../operand.js';
import { copyRectangle, cutOut, rectangle } from '../pool/blocks.js';
import { Deal } from '../pool/deal.js';
import { Job } from '../pool/job.js';
import { Snapshot } from '../pool/snapshot.js';
import { CellSums } from './cell-sums.js';
import { addsRows, cellsOfSlice, Cuts, StepCost } from './cuts.js';
import { kinds } from './kinds.js';
import { emptyLines } from './results.js';

/**
 * @typedef {import('../options.js').AttentionCall} AttentionCall
 * @typedef {import('../operand.js').Operand} Operand
 * @typedef {import('../pool/buffers.js').Buffers} Buffers
 * @typedef {import('../pool/deal.js').Slice} Slice
 * @typedef {import('../pool/slice-runner.js').WeightsSliceResult} WeightsSliceResult
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('./kinds.js').Lines} Lines
 * @typedef {import('./kinds.js').Request} Request
 */

/** Copies of the inputs of a call, for several jobs: released by the last. */
export class SharedInputs {
  #left;

  /**
   * @param {Runtime} runtime
   * @param {AttentionCall} call of the wanted heads, without values
   * @param {Operand | null} lse
   * @param {Buffers} buffers
   * @param {number} jobs
   * @throws RangeError `out-of-memory`
   */
  constructor(runtime, call, lse, buffers, jobs) {
    this.snapshot = new Snapshot(runtime, call, buffers);
    this.call = call;
    this.buffers = buffers;
    this.#left = jobs;
    /** (B, heads, L) @type {Float32Array | null} */
    this.lse = lse && viewOf(runtime, lse).slice();
  }

  release() {
    this.#left -= 1;
    if (this.#left === 0) this.snapshot.release();
  }
}

/** @extends {Job<WeightsSliceResult, Lines>} */
export class WeightsJob extends Job {
  #call;
  #request;
  #cuts;
  #lines;
  #sums;

  /**
   * @param {SharedInputs} shared
   * @param {Request} request
   * @param {number} count elements of the result
   * @param {{ onProgress: ((progress: import('../pool/job.js').Progress) => void) | undefined, owner: object, grain: number, parts: number }} settings
   * @throws RangeError `out-of-memory`
   */
  constructor(shared, request, count, { onProgress, owner, grain, parts }) {
    const { call, lse } = shared;
    const cuts = new Cuts(call, request);
    const costOf = (/** @type {number} */ b) => new StepCost(call, request, cuts, lse !== null, b);
    const deal = new Deal(call, grain, parts, costOf);
    const inputs = new WeightsInputs(shared, request, cuts);
    super({ inputs, deal, total: call.batch * call.numHeads * cuts.rows, onProgress, owner });
    this.#call = call;
    this.#request = request;
    this.#cuts = cuts;
    this.#sums = addsRows(request) ? new CellSums(request, call.batch * call.numHeads, call.seqlenQ) : null;
    this.#lines = emptyLines(this.#sums ? 0 : count, request);
  }

  /**
   * @override
   * @param {Slice} slice `row` and `rows` count steps
   * @param {WeightsSliceResult} results
   */
  put({ unit, head, heads, row: step, rows: steps }, results) {
    const { numHeads, numKvHeads } = this.#call;
    const h = unit.g * (numHeads / numKvHeads) + head;
    const { row, rows } = this.#cuts.span(step, step + steps);
    const count = this.#cuts.count(step, step + steps);
    if (this.#sums) this.#putCells(this.#sums, { b: unit.b, batch: unit.batch, h, heads, row, rows }, results.out);
    else {
      const { width, lines, kind } = this.#request;
      /** @type {[number, number, number]} */
      const first = [unit.b, h, kind === kinds.rows ? step : row];
      /** @param {any} from @param {any} to */
      const copy = (from, to) =>
        copyRectangle(
          rectangle(from, false, [heads, count, width]),
          rectangle(to, false, [numHeads, lines, width], first),
          [unit.batch, heads, count, width],
        );
      const { values, indices, entropy } = this.#lines;
      copy(results.out, values);
      if (indices) copy(results.indices, indices);
      if (entropy) copy(results.entropy, entropy);
    }
    return unit.batch * heads * count;
  }

  /**
   * @param {CellSums} sums
   * @param {{ b: number, batch: number, h: number, heads: number, row: number, rows: number }} place
   * @param {Float32Array | Float64Array} data (batch, heads, cells, width)
   */
  #putCells(sums, { b, batch, h, heads, row, rows }, data) {
    const starts = cellsOfSlice(this.#call, this.#request, row, rows);
    const size = (starts.length - 1) * this.#request.width;
    for (let n = 0; n < batch * heads; n++) {
      const entry = b + Math.floor(n / heads);
      sums.add(entry * this.#call.numHeads + h + (n % heads), { row, starts, data, at: n * size });
    }
  }

  /** @override */
  result() {
    return this.#sums ? { ...this.#lines, values: this.#sums.values() } : this.#lines;
  }
}

/** What one job's slices are made of. */
class WeightsInputs {
  #shared;
  #request;
  #cuts;

  /**
   * @param {SharedInputs} shared
   * @param {Request} request
   * @param {Cuts} cuts
   */
  constructor(shared, request, cuts) {
    this.#shared = shared;
    this.#request = request;
    this.#cuts = cuts;
  }

  release() {
    this.#shared.release();
  }

  /** @param {import('../pool/deal.js').Unit} unit @param {boolean} own */
  keys(unit, own) {
    return this.#shared.snapshot.keys(unit, own);
  }

  /** @param {boolean} own */
  blocks(own) {
    return this.#shared.snapshot.blocks(own);
  }

  /**
   * @param {Slice} slice `row` and `rows` count steps
   * @param {boolean} own as for Snapshot
   * @returns {import('../pool/slice-runner.js').SliceWork}
   */
  work(slice, own) {
    const { snapshot, call, lse, buffers } = this.#shared;
    const { unit, head, heads } = slice;
    const { row, rows } = this.#cuts.span(slice.row, slice.row + slice.rows);
    const h = unit.g * (call.numHeads / call.numKvHeads) + head;
    const sizes = /** @type {const} */ ([unit.batch, heads, rows, 1]);
    const from = lse && rectangle(lse, false, [call.numHeads, call.seqlenQ, 1], [unit.b, h, row]);
    return {
      ...snapshot.work({ ...slice, row, rows }, own),
      weights: {
        request: this.#ofSlice(slice, row, rows),
        lse: from && cutOut(from, sizes, own ? buffers : null),
        sums: addsRows(this.#request) && this.#request.kind !== kinds.max,
      },
    };
  }

  /**
   * @param {Slice} slice
   * @param {number} row
   * @param {number} rows
   * @returns {Request}
   */
  #ofSlice(slice, row, rows) {
    const request = this.#request;
    const { kind, picks } = request;
    if (picks && kind === kinds.rows) {
      const own = picks.slice(slice.row, slice.row + slice.rows).map((i) => i - row);
      return { ...request, picks: own, order: null, lines: own.length };
    }
    if (!addsRows(request)) return { ...request, order: null, lines: rows };
    const rowCells = cellsOfSlice(this.#shared.call, request, row, rows);
    const summed = kind === kinds.max ? kinds.max : kinds.sum;
    return { ...request, kind: summed, rowCells, lines: rowCells.length - 1 };
  }
}
