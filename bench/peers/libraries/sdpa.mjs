/** This package. */

/** @typedef {import('../../js/cases.mjs').Case} Case */

/**
 * Prefill takes arrays and gives an array, copies both ways included. Decode keeps keys and values in wasm memory, as a
 * model that writes its text token by token does; the query and the result are arrays.
 * @param {typeof import('sdpa')} library
 * @param {'simd' | 'relaxed' | 'scalar'} variant
 * @param {boolean} resident whether all of the operands lie in wasm memory
 * @param {Case} c
 * @param {import('../inputs.mjs').Inputs} inputs
 * @returns {Promise<import('../contestants.mjs').Task>}
 */
export async function prepareSdpa(library, variant, resident, c, inputs) {
  const sdpa = await library.load({ variant });
  const { batch, numHeads, numKvHeads, seqlenQ, seqlenKv, headDim, option } = c;
  const queryShape = [batch, numHeads, seqlenQ, headDim];
  const keyShape = [batch, numKvHeads, seqlenKv, headDim];
  /** @param {Float32Array} data @param {number[]} shape @param {boolean} inMemory */
  const operand = (data, shape, inMemory) => {
    if (!inMemory) return { data, shape };
    const tensor = sdpa.tensor(shape);
    tensor.data.set(data);
    return tensor;
  };
  const decode = seqlenQ === 1;
  const query = operand(inputs.query, queryShape, resident);
  const key = operand(inputs.key, keyShape, resident || decode);
  const value = operand(inputs.value, keyShape, resident || decode);
  const out = resident ? sdpa.tensor(queryShape) : undefined;
  const options = { ...(option === 'causal' && { causal: true }), ...(out && { out }) };
  return {
    run: () => sdpa.attention(query, key, value, options).out,
    result: ({ data }) => data,
  };
}
