/** A case's tensors in wasm memory, the call, and the check of its result. */

import { isDropped, randomSource, referenceAttention } from '../../tests/js/helpers/reference.mjs';
import { SOFTCAP, TOLERANCE, WINDOW_LEFT } from './cases.mjs';
import { fillNormal } from './normals.mjs';
import { largestDifference } from './statistics.mjs';

/** @typedef {import('./cases.mjs').Case} Case */
/** @typedef {import('sdpa').Sdpa} Sdpa */
/** @typedef {import('sdpa').SdpaTensor} SdpaTensor */

/** Share of the cells that option 'mask' lets through. */
const MASK_DENSITY = 0.9;

/**
 * What a call has beside the case's own option.
 * @typedef {object} Extra
 * @property {import('sdpa').AttentionOptions} options
 * @property {(h: number, i: number) => Record<string, unknown>} rowOptions those that the reference is given for row i of head h alone
 */

/** One case, set up in an instance's memory. */
export class Problem {
  /**
   * @param {Sdpa} sdpa
   * @param {Case} c
   * @param {Extra} [extra]
   */
  constructor(sdpa, c, extra) {
    this.sdpa = sdpa;
    this.case = c;
    this.extra = extra;
    /** @type {SdpaTensor[]} */
    this.tensors = [];
    const { batch, numHeads, numKvHeads, seqlenQ, seqlenKv, headDim, option } = c;
    this.query = this.#normal([batch, numHeads, seqlenQ, headDim], 1);
    this.key = this.#normal([batch, numKvHeads, seqlenKv, headDim], 20011);
    this.value = this.#normal([batch, numKvHeads, seqlenKv, headDim], 40009);
    this.out = this.#tensor([batch, numHeads, seqlenQ, headDim]);
    this.mask = option === 'mask' ? this.#tensor([1, 1, seqlenQ, seqlenKv], 'bool') : undefined;
    if (this.mask) {
      const { uniform } = randomSource(2);
      const { data } = this.mask;
      for (let i = 0; i < data.length; i++) data[i] = uniform() < MASK_DENSITY ? 1 : 0;
    }
    this.bias = option === 'bias' ? this.#normal([1, numHeads, seqlenQ, seqlenKv], 30011) : undefined;
    /** @type {import('sdpa').AttentionOptions} what the case switches on; all of them stand where a query of the same index does */
    this.positional = {
      ...(option === 'causal' && { causal: true }),
      ...(option === 'window' && { window: [WINDOW_LEFT, 0] }),
      ...(option === 'softcap' && { softcap: SOFTCAP }),
    };
    this.options = {
      ...this.positional,
      ...(this.mask && { mask: this.mask }),
      ...(this.bias && { bias: this.bias }),
      ...extra?.options,
      out: this.out,
    };
  }

  /**
   * @param {number[]} shape
   * @param {import('sdpa').DType} [dtype]
   */
  #tensor(shape, dtype) {
    const tensor = this.sdpa.tensor(shape, dtype);
    this.tensors.push(tensor);
    return tensor;
  }

  /**
   * @param {number[]} shape
   * @param {number} start
   */
  #normal(shape, start) {
    const tensor = this.#tensor(shape);
    fillNormal(/** @type {Float32Array} */ (tensor.data), start);
    return tensor;
  }

  /** Computes `out` once. */
  run() {
    this.sdpa.attention(this.query, this.key, this.value, this.options);
  }

  /** @returns {number} bytes of the inputs and of the result */
  get bytes() {
    return this.tensors.reduce((sum, { data }) => sum + data.byteLength, 0);
  }

  /**
   * Compares rows of `out`, the first and the last of the problem among them, with float64.
   * @param {number} [count]
   * @returns {number} largest absolute error
   * @throws Error where it is above the tolerance
   */
  check(count = 5) {
    const { batch, numHeads, seqlenQ } = this.case;
    const rows = batch * numHeads * seqlenQ;
    let worst = 0;
    for (let n = 0; n < count; n++) worst = Math.max(worst, this.#rowError(Math.round((n * (rows - 1)) / (count - 1))));
    if (!(worst <= TOLERANCE)) {
      throw new Error(
        `the ${this.sdpa.variant} build's error in ${this.case.nickname} is ${worst}, allowed are ${TOLERANCE}`,
      );
    }
    return worst;
  }

  /** @param {number} row of all batches and heads */
  #rowError(row) {
    const { numHeads, numKvHeads, seqlenQ, seqlenKv, headDim } = this.case;
    const i = row % seqlenQ;
    const head = Math.floor(row / seqlenQ) % numHeads;
    const batch = Math.floor(row / seqlenQ / numHeads);
    const kvHead = batch * numKvHeads + Math.floor((head * numKvHeads) / numHeads);
    /** @param {SdpaTensor} tensor @param {number} n @param {number} length @param {number[]} shape */
    const slice = ({ data }, n, length, shape) => ({ data: data.subarray(n * length, (n + 1) * length), shape });
    const value = slice(this.value, kvHead, seqlenKv * headDim, [seqlenKv, headDim]);
    const { out, scores } = referenceAttention(
      slice(this.query, row, headDim, [1, headDim]),
      slice(this.key, kvHead, seqlenKv * headDim, [seqlenKv, headDim]),
      value,
      {
        ...this.positional,
        queryOffset: i + seqlenKv - seqlenQ,
        ...(this.mask && { mask: slice(this.mask, i, seqlenKv, [1, seqlenKv]) }),
        ...(this.bias && { bias: slice(this.bias, head * seqlenQ + i, seqlenKv, [1, seqlenKv]) }),
        ...this.extra?.rowOptions(head, i),
      },
    );
    // Which cells are dropped goes by their place in the whole call, which the reference does not know.
    const { dropout } = this.options;
    if (dropout) outOfKept(out, scores.weights, value.data, dropout.p, (j) => isDropped(dropout, batch, head, i, j));
    return largestDifference(this.out.data.subarray(row * headDim, (row + 1) * headDim), out);
  }

  dispose() {
    for (const tensor of this.tensors) tensor.dispose();
  }
}

/**
 * @param {Float64Array} out of one row; receives the sum of the values whose weights are kept
 * @param {Float64Array} weights
 * @param {ArrayLike<number>} values
 * @param {number} p
 * @param {(j: number) => boolean} isGone
 */
function outOfKept(out, weights, values, p, isGone) {
  out.fill(0);
  weights.forEach((weight, j) => {
    if (isGone(j)) return;
    for (let d = 0; d < out.length; d++) out[d] += (weight / (1 - p)) * values[j * out.length + d];
  });
}
