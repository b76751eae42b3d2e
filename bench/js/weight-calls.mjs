/** A pooled map of attentionWeights() beside the forward call, within an instance of their own. */

import { load } from 'sdpa';
import { relativeDifference } from './statistics.mjs';
import { Problem } from './problem.mjs';
import { warmUpSmaller } from './warm-up.mjs';

/** @typedef {import('./cases.mjs').Case} Case */
/** @typedef {import('sdpa').Sdpa} Sdpa */

/** Largest error against float64, as a share of the largest mean of a row. */
const TOLERANCE = 5e-6;

/**
 * @param {Sdpa} sdpa the build
 * @param {Case} c of one batch row and one head, causal
 * @param {readonly string[]} kinds one: `pool-512x512`, the map's rows and columns
 * @returns {Promise<import('./subject.mjs').Subject>} disposing of it gives the memory back
 */
export async function weightCalls({ variant }, c, [kind]) {
  const [, rows, columns] = (/^pool-(\d+)x(\d+)$/.exec(kind) ?? []).map(Number);
  if (!rows || !columns) throw new Error(`there are no weights ${kind}`);
  const sdpa = await load({ variant });
  try {
    warmUpSmaller(sdpa, c);
    const problem = new Problem(sdpa, c);
    const { query, key, positional } = problem;
    const lse = sdpa.tensor(query.shape.slice(0, 3));
    lse.data.set(sdpa.attention(query, key, problem.value, { ...problem.options, returnLse: true }).lse.data);
    const options = { ...positional, lse, pool: { rows, columns } };
    const { pool } = sdpa.attentionWeights(query, key, options);
    const error = largestError(problem, pool);
    const extra = sdpa.memory().peak - problem.bytes - lse.data.byteLength;
    return {
      slow: true,
      calls: { plain: () => problem.run(), [kind]: () => void sdpa.attentionWeights(query, key, options) },
      facts: { plain: { error: problem.check(3) }, [kind]: { error, extra } },
      dispose: () => sdpa.dispose(),
    };
  } catch (error) {
    sdpa.dispose();
    throw error;
  }
}

/**
 * Compares rows of the map, the first and the last among them, with means of the weights in float64.
 * @param {Problem} problem
 * @param {{ data: Float32Array, shape: readonly number[] }} pool
 * @returns {number}
 * @throws Error where it is above the tolerance
 */
function largestError({ case: c, ...problem }, pool) {
  const { seqlenQ, seqlenKv, headDim } = c;
  const query = problem.query.data;
  const key = problem.key.data;
  const [rows, columns] = pool.shape.slice(-2);
  const height = seqlenQ / rows;
  const width = seqlenKv / columns;
  const scores = new Float64Array(seqlenKv);
  const errors = [0, rows >> 3, rows - 1].map((cell) => {
    const want = new Float64Array(columns);
    for (let i = cell * height; i < (cell + 1) * height; i++) {
      let top = -Infinity;
      for (let j = 0; j <= i; j++) {
        let sum = 0;
        for (let d = 0; d < headDim; d++) sum += query[i * headDim + d] * key[j * headDim + d];
        scores[j] = sum / Math.sqrt(headDim);
        top = Math.max(top, scores[j]);
      }
      let total = 0;
      for (let j = 0; j <= i; j++) total += scores[j] = Math.exp(scores[j] - top);
      for (let j = 0; j <= i; j++) want[Math.floor(j / width)] += scores[j] / total / (height * width);
    }
    return relativeDifference(pool.data.subarray(cell * columns, (cell + 1) * columns), want);
  });
  const worst = Math.max(...errors);
  if (worst <= TOLERANCE) return worst;
  throw new Error(`the error of the pooled weights of ${c.nickname} is ${worst}, allowed are ${TOLERANCE}`);
}
