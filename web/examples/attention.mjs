// One call of exact attention in Node.

import { load } from 'sdpa';

const [batch, heads, tokens, headSize] = [1, 12, 1024, 64];
const shape = [batch, heads, tokens, headSize];
const random = () => ({
  data: Float32Array.from({ length: batch * heads * tokens * headSize }, () => Math.random() - 0.5),
  shape,
});

const sdpa = await load();
const { out, lse } = sdpa.attention(random(), random(), random(), { causal: true, returnLse: true });
console.log(`${sdpa.variant}: out ${out.shape.join('×')}, lse ${lse.shape.join('×')}`);
