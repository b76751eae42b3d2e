/** jax-js with its WebAssembly device. */

import { swapHeadsAndRows } from '../inputs.mjs';

/**
 * Its own attention function, compiled; operands resident.
 * @param {any} jax the library
 * @param {import('../../js/cases.mjs').Case} c
 * @param {import('../inputs.mjs').Inputs} inputs
 * @returns {Promise<import('../contestants.mjs').Task>}
 */
export async function prepareJax(jax, c, inputs) {
  const { batch, numHeads, numKvHeads, seqlenQ, seqlenKv, headDim, option } = c;
  await jax.init('wasm');
  jax.defaultDevice('wasm');
  /** @param {Float32Array} data @param {number} heads @param {number} rows */
  const array = (data, heads, rows) =>
    jax.numpy.array(swapHeadsAndRows(data, batch, heads, rows, headDim)).reshape([batch, rows, heads, headDim]);
  const query = array(inputs.query, numHeads, seqlenQ);
  const key = array(inputs.key, numKvHeads, seqlenKv);
  const value = array(inputs.value, numKvHeads, seqlenKv);
  const attend = jax.jit((/** @type {any} */ q, /** @type {any} */ k, /** @type {any} */ v) =>
    jax.nn.dotProductAttention(q, k, v, { isCausal: option === 'causal' }),
  );
  return {
    // A function consumes its operands; `ref` keeps them for the next call.
    run: () => attend(query.ref, key.ref, value.ref).data(),
    result: (out) => swapHeadsAndRows(out, batch, seqlenQ, numHeads, headDim),
  };
}
