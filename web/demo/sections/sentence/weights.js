// The weights of a sentence, whole or as they come while it is written.

import { rowsFrom } from '../../parts/one-head.js';

/** Queries and keys that are shown at most; longer ones are for the map explorer. */
export const mostWords = 256;

/** Tokens of the prompt: the square block that decoding begins with. */
export const promptLength = 4;

/**
 * @typedef {import('./sources.js').Sentence} Sentence
 * @typedef {object} Shown
 * @property {number} rows
 * @property {number} columns
 * @property {Float32Array} values (rows, columns)
 * @property {Uint8Array | undefined} masked
 */

/**
 * Rows of all keys, of which the first are shown.
 * @param {import('sdpa').Sdpa} sdpa
 * @param {Sentence} sentence
 * @param {AbortSignal} signal
 * @returns {Promise<Shown>}
 */
export async function wholeWeights(sdpa, { query, key, causal, offset }, signal) {
  const [rows, keys] = [Math.min(mostWords, query.shape[0]), key.shape[0]];
  const columns = Math.min(mostWords, keys);
  const picks = Array.from({ length: rows }, (_, i) => i);
  const { rows: all } = await sdpa.attentionWeightsAsync(query, key, {
    ...(causal && { causal, queryOffset: offset }),
    rows: picks,
    signal,
  });
  const values = new Float32Array(rows * columns);
  for (const i of picks) values.set(all.data.subarray(i * keys, i * keys + columns), i * columns);
  return { rows, columns, values, masked: causal ? after(rows, columns, offset) : undefined };
}

/**
 * Decoding: a square block for the prompt, then a row for each token, one column longer than the one before.
 * @param {import('sdpa').Sdpa} sdpa
 * @param {Sentence} sentence
 * @param {number} tokens so far
 * @param {readonly Float32Array[]} before rows of the tokens before, which stay
 * @returns {Float32Array[]} a row for each token so far
 */
export function decodedRows(sdpa, { query, key }, tokens, before) {
  const rows = before.slice(0, tokens);
  if (rows.length < promptLength) {
    const prompt = Array.from({ length: promptLength }, (_, i) => i);
    const block = sdpa.attentionWeights(rowsFrom(query, 0, promptLength), rowsFrom(key, 0, promptLength), {
      causal: true,
      rows: prompt,
    });
    rows.splice(
      0,
      rows.length,
      ...prompt.map((i) => block.rows.data.slice(i * promptLength, i * promptLength + i + 1)),
    );
  }
  while (rows.length < tokens) {
    const t = rows.length;
    // The newest query over all keys so far: nothing is masked.
    const { rows: one } = sdpa.attentionWeights(rowsFrom(query, t, 1), rowsFrom(key, 0, t + 1), { rows: [0] });
    rows.push(one.data);
  }
  return rows;
}

/**
 * @param {readonly Float32Array[]} rows
 * @returns {Shown}
 */
export function fromRows(rows) {
  const count = rows.length;
  const values = new Float32Array(count * count);
  rows.forEach((row, i) => values.set(row, i * count));
  return { rows: count, columns: count, values, masked: after(count, count, 0) };
}

/** @param {number} rows @param {number} columns @param {number} offset */
const after = (rows, columns, offset) =>
  Uint8Array.from({ length: rows * columns }, (_, at) => (at % columns > Math.floor(at / columns) + offset ? 1 : 0));
