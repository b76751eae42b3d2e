/** TensorFlow.js with its WebAssembly backend. */

import { causalBias } from '../inputs.mjs';

/** Far below every score, far above what float32 cannot add to. */
const EXCLUDED = -1e30;

/**
 * Head by head, because its fast matrix product is for two dimensions without a transposed operand; operands resident.
 * @param {any} tf the core, with the backend ready
 * @param {import('../../js/cases.mjs').Case} c
 * @param {import('../inputs.mjs').Inputs} inputs
 * @returns {Promise<import('../contestants.mjs').Task>}
 */
export async function prepareTfjs(tf, c, inputs) {
  const { batch, numHeads, numKvHeads, seqlenQ, seqlenKv, headDim, option } = c;
  /** @param {Float32Array} data @param {number} heads @param {number} rows */
  const perHead = (data, heads, rows) =>
    Array.from({ length: batch * heads }, (_, head) =>
      tf.tensor2d(data.subarray(head * rows * headDim, (head + 1) * rows * headDim), [rows, headDim]),
    );
  const query = perHead(inputs.query, numHeads, seqlenQ);
  const key = perHead(inputs.key, numKvHeads, seqlenKv);
  const value = perHead(inputs.value, numKvHeads, seqlenKv);
  const scale = tf.scalar(1 / Math.sqrt(headDim));
  const bias = option === 'causal' ? tf.tensor2d(causalBias(c, EXCLUDED), [seqlenQ, seqlenKv]) : undefined;

  /** @param {number} head */
  const headOut = (head) =>
    tf.tidy(() => {
      const kvHead = Math.floor((head * numKvHeads) / numHeads);
      const scores = tf.mul(tf.matMul(query[head], tf.transpose(key[kvHead])), scale);
      return tf.matMul(tf.softmax(bias ? tf.add(scores, bias) : scores), value[kvHead]);
    });
  return {
    run: () => {
      const out = new Float32Array(inputs.query.length);
      for (let head = 0; head < batch * numHeads; head++) {
        const one = headOut(head);
        out.set(one.dataSync(), head * seqlenQ * headDim);
        one.dispose();
      }
      return out;
    },
    result: (out) => out,
  };
}
