// A layer of attention learns to copy the token before: forward, backward, and new weights, by plain gradient descent.

import { load } from 'sdpa';

const [tokens, width, numHeads] = [16, 8, 2];
let seed = 1;
const noise = (/** @type {number[]} */ ...shape) => ({
  data: Float32Array.from({ length: shape.reduce((a, b) => a * b) }, () => Math.sin(seed++ * 78.233)),
  shape,
});

// Each token is a random half, and a half that says where it stands.
const x = noise(1, tokens, width);
for (let t = 0; t < tokens; t++)
  for (let c = 0; c < width / 2; c++)
    x.data[t * width + width / 2 + c] = 2 * (c % 2 ? Math.cos : Math.sin)((t * Math.PI) / (1 + (c >> 1)) / 3);
const target = Float32Array.from(x.data, (_, i) => (i < width ? 0 : x.data[i - width]));

const sdpa = await load();
const names = ['q_proj', 'k_proj', 'v_proj', 'out_proj'];
/** @type {Record<string, { data: Float32Array, shape: number[] }>} */
const weights = Object.fromEntries(
  names.map((name) => {
    const { data, shape } = noise(width, width);
    return [`${name}.weight`, { data: data.map((w) => w / 2), shape }];
  }),
);
const layer = sdpa.multiHeadAttention({ numHeads, weights });

const losses = [];
for (let step = 0; step < 300; step++) {
  const { out } = layer.forward(x, undefined, { causal: true });
  const dOut = { data: out.data.map((y, i) => (y - target[i]) / tokens), shape: out.shape };
  losses.push(dOut.data.reduce((sum, d) => sum + d * d * tokens, 0) / 2);

  const { dWeights } = layer.backward(x, undefined, { dOut }, { causal: true });
  for (const [name, { data }] of Object.entries(weights))
    data.forEach((w, i) => (data[i] = w - 0.1 * dWeights[name].data[i]));
  layer.setWeights(weights);
}
layer.dispose();
sdpa.dispose();
console.log(`loss ${losses[0].toFixed(3)} at first, ${/** @type {number} */ (losses.at(-1)).toFixed(3)} in the end`);
