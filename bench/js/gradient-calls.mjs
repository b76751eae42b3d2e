/** attentionBackward() beside the forward call. */

import { referenceAttention } from '../../tests/js/helpers/reference.mjs';
import { flops } from './cases.mjs';
import { fillNormal } from './normals.mjs';
import { Problem } from './problem.mjs';
import { relativeDifference } from './statistics.mjs';

/** @typedef {import('./cases.mjs').Case} Case */
/** @typedef {import('sdpa').Sdpa} Sdpa */

/** Products of the backward pass over those of the forward pass: QKᵀ again, dO·Vᵀ, Pᵀ·dO, dS·K and dSᵀ·Q, five instead of two. */
const WORK = 2.5;

/** Where in the pool of numbers the gradient of the result begins. */
const START = 50021;

/** Largest error against float64, as a share of a tensor's largest gradient. */
const TOLERANCE = 5e-6;

/**
 * @param {Sdpa} sdpa
 * @param {Case} c
 * @param {readonly string[]} kinds the case's option alone
 * @returns {import('./subject.mjs').Subject}
 */
export function gradientCalls(sdpa, c, kinds) {
  const problem = new Problem(sdpa, c);
  const { query, key, value, out, positional: options } = problem;
  const dOut = sdpa.tensor(out.shape);
  const lse = sdpa.tensor(out.shape.slice(0, 3));
  fillNormal(/** @type {Float32Array} */ (dOut.data), START);
  lse.data.set(sdpa.attention(query, key, value, { ...problem.options, returnLse: true }).lse.data);
  const backward = () => sdpa.attentionBackward(query, key, value, { out, lse, dOut }, options);
  const error = largestError(problem, dOut, backward());
  return {
    calls: { plain: () => problem.run(), ...Object.fromEntries(kinds.map((kind) => [kind, () => void backward()])) },
    facts: {
      plain: { error: problem.check() },
      ...Object.fromEntries(kinds.map((kind) => [kind, { error, flops: WORK * flops(c) }])),
    },
    dispose: () => [problem, dOut, lse].forEach((one) => one.dispose()),
  };
}

/**
 * Compares the gradients of the last head of keys, and of the queries that see it, with the formulas in float64.
 * @param {Problem} problem
 * @param {import('sdpa').SdpaTensor} dOut
 * @param {{ dQuery: import('sdpa').Tensor, dKey: import('sdpa').Tensor, dValue: import('sdpa').Tensor }} found
 * @returns {number}
 * @throws Error where it is above the tolerance
 */
function largestError({ case: c, query, key, value, positional }, dOut, { dQuery, dKey, dValue }) {
  const { batch, numHeads, numKvHeads, seqlenQ, seqlenKv, headDim } = c;
  const group = numHeads / numKvHeads;
  /** @param {{ data: ArrayLike<number> }} tensor @param {number} head @param {number} rows */
  const headOf = ({ data }, head, rows) => ({
    data: Array.prototype.slice.call(data, head * rows * headDim, (head + 1) * rows * headDim),
    shape: [rows, headDim],
  });
  const kvHead = batch * numKvHeads - 1;
  const k = headOf(key, kvHead, seqlenKv);
  const v = headOf(value, kvHead, seqlenKv);
  const dK = new Float64Array(seqlenKv * headDim);
  const dV = new Float64Array(seqlenKv * headDim);
  const errors = [];
  for (let head = batch * numHeads - group; head < batch * numHeads; head++) {
    const q = headOf(query, head, seqlenQ);
    const dO = headOf(dOut, head, seqlenQ);
    const { out, scores } = referenceAttention(q, k, v, positional);
    const dQ = new Float64Array(seqlenQ * headDim);
    for (let i = 0; i < seqlenQ; i++) {
      const row = i * headDim;
      const delta = dot(dO.data, row, out, row, headDim);
      for (let j = 0; j < seqlenKv; j++) {
        const weight = scores.weights[i * seqlenKv + j];
        if (weight === 0) continue;
        const to = j * headDim;
        const dR = (weight * (dot(dO.data, row, v.data, to, headDim) - delta)) / Math.sqrt(headDim);
        for (let d = 0; d < headDim; d++) {
          dV[to + d] += weight * dO.data[row + d];
          dQ[row + d] += dR * k.data[to + d];
          dK[to + d] += dR * q.data[row + d];
        }
      }
    }
    errors.push(relativeDifference(headOf(dQuery, head, seqlenQ).data, dQ));
  }
  errors.push(relativeDifference(headOf(dKey, kvHead, seqlenKv).data, dK));
  errors.push(relativeDifference(headOf(dValue, kvHead, seqlenKv).data, dV));
  const worst = Math.max(...errors);
  if (worst <= TOLERANCE) return worst;
  throw new Error(`the error of the gradients of ${c.nickname} is ${worst}, allowed are ${TOLERANCE}`);
}

/**
 * @param {ArrayLike<number>} a
 * @param {number} atA
 * @param {ArrayLike<number>} b
 * @param {number} atB
 * @param {number} count
 */
function dot(a, atA, b, atB, count) {
  let sum = 0;
  for (let d = 0; d < count; d++) sum += a[atA + d] * b[atB + d];
  return sum;
}
