// One asynchronous call to attention(): its inputs, and where its results go.

import { outOfMemory } from '../errors.js';
import { layoutCodes } from '../frame.js';
import { placeOf, result } from '../output.js';
import { product } from '../tensor.js';
import { lseShape, scoresShape } from '../validate.js';
import { copyRectangle, rectangle } from './blocks.js';
import { Deal } from './deal.js';
import { Job, rowsOf } from './job.js';
import { Snapshot } from './snapshot.js';

/**
 * @typedef {import('../options.js').AttentionCall} AttentionCall
 * @typedef {import('../output.js').Out} Out
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('../tensor.js').Tensor} Tensor
 * @typedef {import('./deal.js').Slice} Slice
 * @typedef {import('./slice-runner.js').SliceResult} SliceResult
 */

/** @typedef {{ shape: number[], out: Out, onProgress: ((progress: import('./job.js').Progress) => void) | undefined, owner: object }} Settings `shape` of out */

/** @extends {Job<SliceResult, { out: any, lse?: Tensor, scores?: Tensor }>} */
export class AttentionJob extends Job {
  #runtime;
  #call;
  #shape;
  #out;
  /** @type {Tensor | undefined} */
  #lse;
  /** @type {Tensor | undefined} */
  #scores;

  /**
   * @param {Runtime} runtime
   * @param {AttentionCall} call
   * @param {Settings & { inputs: Snapshot, deal: Deal }} settings
   * @throws RangeError `out-of-memory`
   */
  constructor(runtime, call, { shape, out, inputs, deal, onProgress, owner }) {
    super({ inputs, deal, total: rowsOf(call), onProgress, owner });
    this.#runtime = runtime;
    this.#call = call;
    this.#shape = shape;
    this.#out = out;
    if (!out.tensor && !out.array) this.#out = { array: newTensor(shape).data, tensor: null, pointer: 0 };
    this.#lse = call.returnLse ? newTensor(lseShape(call)) : undefined;
    this.#scores = call.scores ? newTensor(scoresShape(call)) : undefined;
  }

  /** @override */
  result() {
    const { array, tensor } = this.#out;
    const out = tensor ?? { data: /** @type {Float32Array} */ (array), shape: this.#shape, dtype: 'float32' };
    return result(/** @type {any} */ (out), this.#lse, this.#scores);
  }

  /**
   * @override
   * @param {Slice} slice
   * @param {SliceResult} results
   */
  put({ unit, head, heads, row, rows }, { out, lse, scores }) {
    const { numHeads, numKvHeads, seqlenQ, seqlenKv, headDimV, layout } = this.#call;
    const h = unit.g * (numHeads / numKvHeads) + head;
    /** @type {[number, number, number]} */
    const first = [unit.b, h, row];
    /** @param {Float32Array} from @param {import('./blocks.js').Rectangle} to @param {number} width */
    const copy = (from, to, width) =>
      copyRectangle(rectangle(from, false, [heads, rows, width]), to, [unit.batch, heads, rows, width]);
    // The constructor has made an array where there was none.
    const target = /** @type {import('../output.js').Place} */ (placeOf(this.#runtime, this.#out));
    const to = rectangle(target.data, layout === layoutCodes.blhd, [numHeads, seqlenQ, headDimV], first);
    copy(out, { ...to, at: to.at + target.at }, headDimV);
    if (lse && this.#lse) copy(lse, rectangle(this.#lse.data, false, [numHeads, seqlenQ, 1], first), 1);
    if (scores && this.#scores) {
      copy(scores, rectangle(this.#scores.data, false, [numHeads, seqlenQ, seqlenKv], first), seqlenKv);
    }
    return unit.batch * heads * rows;
  }
}

/**
 * A job for the pool. Copies the inputs.
 * @param {Runtime} runtime
 * @param {AttentionCall} call
 * @param {Settings & import('./pool.js').Pool['cut']} settings
 * @throws RangeError `out-of-memory`
 */
export function pooledJob(runtime, call, { grain, parts, buffers, ...settings }) {
  const inputs = new Snapshot(runtime, call, buffers);
  return new AttentionJob(runtime, call, { ...settings, inputs, deal: new Deal(call, grain, parts) });
}

/**
 * @param {number[]} shape
 * @returns {Tensor}
 */
function newTensor(shape) {
  const count = product('result', shape);
  try {
    return { data: new Float32Array(count), shape, dtype: 'float32' };
  } catch (cause) {
    throw outOfMemory(count * 4, 0, `a result of shape [${shape.join(', ')}]`, cause);
  }
}
