// The lines of this section.

import { windowLeft } from './methods.js';

/** @param {number} length @param {boolean} hasLinear */
export const codeFor = (length, hasLinear) => `
import { load } from 'sdpa';

const [sdpa, length] = [await load(), ${length}];
const draw = () => ({ data: Float32Array.from({ length: length * 64 }, () => Math.random() - 0.5), shape: [length, 64] });
const [query, key, value] = [draw(), draw(), draw()];
for (const options of [{ causal: true }, { window: [${windowLeft}, 0] }, { causal: true, blockMask: sdpa.masks.bigbird(length) }]) {
  const start = performance.now();
  sdpa.attention(query, key, value, options);
  console.log(Object.keys(options), performance.now() - start, 'ms');
}${hasLinear ? ' // and sdpa.linearAttention(query, key, value, { causal: true })' : ''}`;
