// The lines of this section.

import { scalingOf } from './rotation.js';

/** Options as they are written in a program. @param {object} options @returns {string} */
function literal(options) {
  const parts = Object.entries(options).map(([name, value]) => {
    const text = typeof value === 'string' ? `'${value}'` : typeof value === 'object' ? literal(value) : value;
    return `${name}: ${text}`;
  });
  return `{ ${parts.join(', ')} }`;
}

/** @param {import('./rotation.js').Setting & { query: number, key: number }} setting */
export function codeFor({ base, pairing, stretch, factor, query, key }) {
  const scaling = scalingOf(stretch, factor);
  return `
import { load } from 'sdpa';

const sdpa = await load();
const x = { data: Float32Array.from({ length: 64 }, () => Math.random() - 0.5), shape: [1, 64] };
const options = ${literal({ base, pairing, ...(scaling && { scaling }) })};
const at = (position) => sdpa.rope(x, { ...options, offset: position }).data;
const dot = (a, b) => a.reduce((sum, number, d) => sum + number * b[d], 0);
console.log(dot(at(${query}), at(${key})), dot(at(${query} + 1000), at(${key} + 1000))); // the same: only the distance counts
console.log(sdpa.sinusoidal(4, 8).data); // the fixed embedding of the first transformers`;
}
