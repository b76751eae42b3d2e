/** What a forward and a backward pass take of the memory, in a process that has done little else. */

import { fillNormal } from './normals.mjs';

/** @typedef {import('./cases.mjs').Case} Case */
/** @typedef {import('sdpa').Sdpa} Sdpa */

/**
 * Tokens of one call before: the engine takes memory for the code that it compiles. More calls would leave garbage, which then is
 * memory that the process has already.
 */
const FIRST_TOKENS = 64;

/**
 * Inputs, results and gradients are arrays outside of wasm memory, as most callers have them.
 * @param {Sdpa} sdpa
 * @param {Case} c
 * @returns {{ ms: number, arrays: number, allocated: number, resident: number }} bytes of inputs, results and gradients; allocated at
 *   once in wasm memory; and by how much the process's memory was larger at its peak than before, all in all
 */
export function backwardMemory(sdpa, c) {
  forwardAndBackward(sdpa, { ...c, seqlenQ: FIRST_TOKENS, seqlenKv: FIRST_TOKENS });
  const { held } = sdpa.memory();
  const resident = process.memoryUsage.rss();
  const start = performance.now();
  const arrays = forwardAndBackward(sdpa, c);
  return {
    ms: performance.now() - start,
    arrays: arrays.reduce((sum, { byteLength }) => sum + byteLength, 0),
    allocated: sdpa.memory().peak - held,
    resident: process.resourceUsage().maxRSS * 1024 - resident,
  };
}

/** @param {Sdpa} sdpa @param {Case} c @returns {Float32Array[]} all arrays, alive to the end */
function forwardAndBackward(sdpa, { numHeads, seqlenQ, headDim }) {
  const shape = [1, numHeads, seqlenQ, headDim];
  const [query, key, value, dOut] = [1, 20011, 40009, 50021].map((start) => {
    const data = new Float32Array(numHeads * seqlenQ * headDim);
    fillNormal(data, start);
    return { data, shape };
  });
  const { out, lse } = sdpa.attention(query, key, value, { returnLse: true });
  const { dQuery, dKey, dValue } = sdpa.attentionBackward(query, key, value, { out, lse, dOut });
  return [query, key, value, out, lse, dOut, dQuery, dKey, dValue].map(({ data }) => data);
}
