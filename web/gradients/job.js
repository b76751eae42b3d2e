// One asynchronous backward call: units of one key head, or of several where no sum runs over them, and where their gradients go.

import { outOfMemory } from '../errors.js';
import { layoutCodes } from '../frame.js';
import { copyRectangle, cutOut, rectangle } from '../pool/blocks.js';
import { RowCost } from '../pool/cost.js';
import { Deal } from '../pool/deal.js';
import { Job, rowsOf } from '../pool/job.js';
import { copyOperand, Snapshot } from '../pool/snapshot.js';
import { product } from '../tensor.js';
import { presentGradients } from './results.js';

/**
 * @typedef {import('../pool/buffers.js').Buffers} Buffers
 * @typedef {import('../pool/deal.js').Slice} Slice
 * @typedef {import('../pool/slice-runner.js').SliceWork} SliceWork
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('./compute.js').RawGradients} RawGradients
 * @typedef {import('./read-call.js').BackwardCall} BackwardCall
 */

/** A backward pass does five products where a forward pass does two. */
const costRatio = 2.5;

/** Units are computed as a whole: the gradients of their keys are sums over all of their rows. */
class GradientDeal extends Deal {
  /**
   * @override
   * @param {import('../pool/deal.js').Unit | null} held
   * @param {number} _target
   */
  take(held, _target) {
    return super.take(held, Infinity);
  }
}

/** The inputs of a backward call, copied when it is made. */
class GradientInputs extends Snapshot {
  #backward;
  #buffers;
  #out;
  #lse;
  #dOut;
  #dLse;

  /**
   * @param {Runtime} runtime
   * @param {BackwardCall} backward
   * @param {Buffers} buffers
   * @throws RangeError `out-of-memory`
   */
  constructor(runtime, backward, buffers) {
    super(runtime, backward.call, buffers);
    this.#backward = backward;
    this.#buffers = buffers;
    const { out, lse, dOut, dLse } = backward;
    try {
      this.#out = copyOperand(runtime, out, buffers);
      this.#lse = copyOperand(runtime, lse, buffers);
      this.#dOut = copyOperand(runtime, dOut, buffers);
      this.#dLse = dLse && copyOperand(runtime, dLse, buffers);
    } catch (cause) {
      if (!(cause instanceof RangeError)) throw cause;
      throw outOfMemory(2 * (out.bytes + lse.bytes), 0, 'a copy of the results', cause);
    }
  }

  /** @override */
  release() {
    super.release();
    for (const array of [this.#out, this.#lse, this.#dOut, this.#dLse]) this.#buffers.give(array?.buffer);
  }

  /**
   * @override
   * @param {Slice} slice
   * @param {boolean} own
   * @returns {SliceWork}
   */
  work(slice, own) {
    const { call, sinks } = this.#backward;
    const { numHeads, seqlenQ, headDimV, layout } = call;
    const { unit, heads, rows } = slice;
    const group = numHeads / call.numKvHeads;
    /** @type {[number, number, number]} */
    const first = [unit.b, unit.g * group, 0];
    const cut = (/** @type {any} */ data, /** @type {boolean} */ blhd, /** @type {number} */ width) =>
      cutOut(
        rectangle(data, blhd, [numHeads, seqlenQ, width], first),
        [unit.batch, heads, rows, width],
        own ? this.#buffers : null,
      );
    const blhd = layout === layoutCodes.blhd;
    return {
      ...super.work(slice, own),
      upstream: {
        out: cut(this.#out, blhd, headDimV),
        lse: cut(this.#lse, false, 1),
        dOut: cut(this.#dOut, blhd, headDimV),
        dLse: this.#dLse && cut(this.#dLse, false, 1),
        sinks: sinks !== null,
      },
    };
  }
}

/** @extends {Job<RawGradients, ReturnType<typeof presentGradients>>} */
export class GradientJob extends Job {
  #backward;
  /** @type {RawGradients} */
  #raw;
  /** Whether units add to the same elements of the bias's gradient. */
  #shares;
  /** Parts of the bias's gradient whose turn has not come, by their units' order. @type {Map<number, { at: number, part: Float32Array }>} */
  #waiting = new Map();
  #turn = 0;

  /**
   * Copies the inputs.
   * @param {Runtime} runtime
   * @param {BackwardCall} backward
   * @param {{ onProgress: ((progress: import('../pool/job.js').Progress) => void) | undefined, owner: object, grain: number, parts: number, buffers: Buffers }} settings
   *   `grain` and `parts` as Deal takes them
   * @throws RangeError `out-of-memory`
   */
  constructor(runtime, backward, { onProgress, owner, grain, parts, buffers }) {
    const { call } = backward;
    const shares = sharesBias(call);
    super({
      inputs: new GradientInputs(runtime, backward, buffers),
      deal: new GradientDeal(call, shares ? 0 : grain, parts, (b) => costOf(call, b)),
      total: rowsOf(call),
      onProgress,
      owner,
    });
    this.#backward = backward;
    this.#shares = shares;
    this.#raw = newGradients(backward);
  }

  /** @override */
  result() {
    return presentGradients(this.#backward, this.#raw);
  }

  /**
   * @override
   * @param {Slice} slice
   * @param {RawGradients} results
   */
  put({ unit, heads, rows }, results) {
    const { numHeads, numKvHeads, seqlenQ, seqlenKv, headDim, headDimV, layout } = this.#backward.call;
    const { b, g, kvHeads } = unit;
    const h = g * (numHeads / numKvHeads);
    const blhd = layout === layoutCodes.blhd;
    const raw = this.#raw;
    /** @param {'query' | 'key' | 'value'} name @param {number} all @param {number} head @param {number} count @param {number} length @param {number} width */
    const place = (name, all, head, count, length, width) =>
      copyRectangle(
        rectangle(results[name], false, [count, length, width]),
        rectangle(raw[name], blhd, [all, length, width], [b, head, 0]),
        [unit.batch, count, length, width],
      );
    place('query', numHeads, h, heads, seqlenQ, headDim);
    place('key', numKvHeads, g, kvHeads, seqlenKv, headDim);
    place('value', numKvHeads, g, kvHeads, seqlenKv, headDimV);
    for (const name of /** @type {const} */ (['scale', 'sinks', 'alibiSlopes'])) {
      const [from, to] = [results[name], raw[name]];
      if (!from || !to) continue;
      for (let i = 0; i < unit.batch; i++) {
        to.set(from.subarray(i * heads, (i + 1) * heads), (b + i) * numHeads + h);
      }
    }
    if (results.bias) this.#putBias(b, g, h, results.bias);
    return unit.batch * heads * rows;
  }

  /**
   * Adds a unit's part, in the order of the units: sums have the same bits whoever is first.
   * @param {number} b
   * @param {number} g
   * @param {number} h
   * @param {Float32Array} part
   */
  #putBias(b, g, h, part) {
    const { bias, numKvHeads } = this.#backward.call;
    const [batch, heads, rows, columns] = /** @type {import('../operand.js').Operand} */ (bias).shape;
    // A unit's heads lie together, and so do its batch entries where it has all of their heads.
    const at = ((batch === 1 ? 0 : b) * heads + (heads === 1 ? 0 : h)) * rows * columns;
    if (!this.#shares) {
      this.#raw.bias?.set(part, at);
      return;
    }
    this.#waiting.set(b * numKvHeads + g, { at, part });
    for (let next; (next = this.#waiting.get(this.#turn)); this.#turn++) {
      this.#waiting.delete(this.#turn);
      const sums = /** @type {Float32Array} */ (this.#raw.bias);
      for (let n = 0; n < next.part.length; n++) sums[next.at + n] += next.part[n];
    }
  }
}

/** @param {import('../options.js').AttentionCall} call */
function sharesBias({ bias, batch, numKvHeads }) {
  return bias !== null && ((bias.shape[0] === 1 && batch > 1) || (bias.shape[1] === 1 && numKvHeads > 1));
}

/**
 * @param {import('../options.js').AttentionCall} call
 * @param {number} b
 * @returns {import('../pool/deal.js').Costs}
 */
function costOf(call, b) {
  const forward = new RowCost(call, b);
  return {
    rows: forward.rows,
    total: costRatio * forward.total,
    of: (first, end) => costRatio * forward.of(first, end),
    reach: () => forward.rows,
  };
}

/**
 * @param {BackwardCall} backward
 * @returns {RawGradients}
 * @throws RangeError `out-of-memory`
 */
function newGradients({ call, sinks }) {
  const { query, key, value, bias, alibiSlopes, batch, numHeads } = call;
  const heads = batch * numHeads;
  const [q, k, v] = [query, key, value].map(({ shape }) => product('gradient', shape));
  try {
    return {
      query: new Float32Array(q),
      key: new Float32Array(k),
      value: new Float32Array(v),
      bias: bias && new Float32Array(bias.count),
      scale: new Float64Array(heads),
      sinks: sinks && new Float64Array(heads),
      alibiSlopes: alibiSlopes && new Float64Array(heads),
    };
  } catch (cause) {
    throw outOfMemory((q + k + v + (bias?.count ?? 0)) * 4, 0, 'gradients', cause);
  }
}
