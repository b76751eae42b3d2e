// Sequences of different lengths one after the other, without padding: one call, and each sequence sees itself alone.

import { load } from 'sdpa';

const lengths = [7, 300, 1, 92];
const [heads, headDim] = [4, 32];
const starts = Int32Array.from([0, ...lengths.map((_, n) => lengths.slice(0, n + 1).reduce((a, b) => a + b))]);
const total = starts[lengths.length];

const random = () => ({
  data: Float32Array.from({ length: total * heads * headDim }, () => Math.random() - 0.5),
  shape: [1, total, heads, headDim],
});
const [query, key, value] = [random(), random(), random()];

const sdpa = await load();
const cuSeqlens = { query: starts, key: starts };
const { out } = sdpa.attention(query, key, value, { cuSeqlens, causal: true, layout: 'blhd' });
console.log(`${lengths.length} sequences, ${total} tokens: ${out.shape.join('×')}`);

// The same as one call for each, but for rounding: keys are added up in groups, which begin elsewhere in a sequence of its own.
const row = heads * headDim;
let largest = 0;
lengths.forEach((length, n) => {
  const part = (/** @type {typeof query} */ x) => ({
    data: x.data.subarray(starts[n] * row, starts[n + 1] * row),
    shape: [1, length, heads, headDim],
  });
  const alone = sdpa.attention(part(query), part(key), part(value), { causal: true, layout: 'blhd' }).out;
  alone.data.forEach((y, i) => (largest = Math.max(largest, Math.abs(y - out.data[starts[n] * row + i]))));
});
console.log(`as one call for each, within 1e-6: ${largest < 1e-6}`);
sdpa.dispose();
