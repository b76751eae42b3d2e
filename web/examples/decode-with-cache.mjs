// Decoding with a cache: the prompt at once, then token by token, as a language model does it. Eight query heads share two heads of keys
// and values, which the cache keeps as float16.

import { load } from 'sdpa';

const [numHeads, numKvHeads, headDim] = [8, 2, 64];
const [prompt, steps] = [100, 20];

/** Stands for the projections of a model. @param {number} heads @param {number} tokens */
const project = (heads, tokens) => ({
  data: Float32Array.from({ length: heads * tokens * headDim }, () => Math.random() - 0.5),
  shape: [1, heads, tokens, headDim],
});

const sdpa = await load();
const cache = sdpa.createKVCache({ batch: 1, numKvHeads, headDim, dtype: 'float16' });

cache.append(project(numKvHeads, prompt), project(numKvHeads, prompt));
const first = cache.attend(project(numHeads, prompt)); // causal without being told
console.log(`prompt: ${first.out.shape.join('×')}`);

for (let step = 0; step < steps; step++) {
  cache.append(project(numKvHeads, 1), project(numKvHeads, 1));
  const { out } = cache.attend(project(numHeads, 1)); // one row over all tokens so far
  if (step === steps - 1) console.log(`step ${step + 1}: ${out.shape.join('×')} over ${cache.length} tokens`);
}

cache.truncate(prompt); // the answer is rejected: back to the prompt
console.log(`back to ${cache.length} tokens, ${cache.byteLength / cache.capacity} bytes for each`);
cache.dispose();
sdpa.dispose();
