/** A case's tensors in wasm memory, the call, and the check of its result. */

import { randomSource, referenceAttention } from '../../tests/js/helpers/reference.mjs';
import { SOFTCAP, TOLERANCE, WINDOW_LEFT } from './cases.mjs';

/** @typedef {import('./cases.mjs').Case} Case */
/** @typedef {import('sdpa').Sdpa} Sdpa */
/** @typedef {import('sdpa').SdpaTensor} SdpaTensor */

/** Share of the cells that option 'mask' lets through. */
const MASK_DENSITY = 0.9;

/** A prime, so that no row of a usual size begins at the same number as one nearby. */
const POOL = 65521;

/** @type {Float32Array | undefined} */
let normals;

/**
 * Unit normal numbers, a fixed pool repeated: drawing each of the largest case's 50 million would take longer than timing it.
 * @param {SdpaTensor} tensor
 * @param {number} start where in the pool
 */
function fillNormal(tensor, start) {
  normals ??= Float32Array.from({ length: POOL }, randomSource(1).normal);
  const { data } = tensor;
  for (let at = 0, from = start % POOL; at < data.length; from = 0) {
    const part = normals.subarray(from, from + data.length - at);
    data.set(part, at);
    at += part.length;
  }
}

/** One case, set up in an instance's memory. */
export class Problem {
  /**
   * @param {Sdpa} sdpa
   * @param {Case} c
   */
  constructor(sdpa, c) {
    this.sdpa = sdpa;
    this.case = c;
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
    fillNormal(tensor, start);
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
    const { out } = referenceAttention(
      slice(this.query, row, headDim, [1, headDim]),
      slice(this.key, kvHead, seqlenKv * headDim, [seqlenKv, headDim]),
      slice(this.value, kvHead, seqlenKv * headDim, [seqlenKv, headDim]),
      {
        ...this.positional,
        queryOffset: i + seqlenKv - seqlenQ,
        ...(this.mask && { mask: slice(this.mask, i, seqlenKv, [1, seqlenKv]) }),
        ...(this.bias && { bias: slice(this.bias, head * seqlenQ + i, seqlenKv, [1, seqlenKv]) }),
      },
    );
    const found = this.out.data.subarray(row * headDim, (row + 1) * headDim);
    // Written so that NaN counts as worst.
    return out.reduce((worst, want, d) => {
      const error = Math.abs(found[d] - want);
      return error <= worst ? worst : error;
    }, 0);
  }

  dispose() {
    for (const tensor of this.tensors) tensor.dispose();
  }
}
