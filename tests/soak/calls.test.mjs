// A hundred thousand calls of random sizes and options: the memory that was taken is given back, neither side's grows, and the last call gives
// the bits of the first.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { loadVariant } from '../js/helpers/sdpa.mjs';
import { assertSameBits } from '../js/helpers/workers.mjs';
import { Draw } from '../fuzz/js/draw.mjs';

const calls = 100_000;

/** Heap beyond what the first tenth of the calls has left. */
const mostHeapGrowth = 8 * 2 ** 20;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');

/** @param {Draw} draw */
function drawSizes(draw) {
  // Mostly small; now and then past the block of small calls, and rarely long.
  const most = draw.chance(0.9) ? 12 : draw.chance(0.9) ? 90 : 700;
  const G = 1 + draw.below(2);
  return {
    B: 1 + draw.below(2),
    H: G * (1 + draw.below(2)),
    G,
    L: draw.below(most),
    S: 1 + draw.below(most),
    D: 1 + draw.below(24),
    Dv: 1 + draw.below(24),
  };
}

/** @param {Draw} draw @param {ReturnType<typeof drawSizes>} sizes */
function drawOptions(draw, { B, H, L, S }) {
  /** @type {any} */
  const options = { align: 'lower-right' };
  if (draw.chance(0.4)) options.causal = true;
  if (draw.chance(0.2)) options.window = [draw.below(S), draw.below(S)];
  if (draw.chance(0.2)) options.softcap = 5;
  if (draw.chance(0.2)) options.bias = draw.tensor(1, draw.pick([1, H]), L, S);
  if (draw.chance(0.2)) options.kvLengths = Int32Array.from({ length: B }, () => draw.below(S + 1));
  if (draw.chance(0.2)) options.sinks = Float32Array.from({ length: H }, draw.normal);
  if (draw.chance(0.1)) options.alibiSlopes = Float32Array.from({ length: H }, draw.uniform);
  return options;
}

/** Rows of a few keys, taken and given back at once. @param {any} sdpa @param {Draw} draw */
function useCache(sdpa, draw) {
  const kind = draw.pick([{}, { dtype: 'int8' }, { window: 4 }, { pageSize: 3 }, { dtype: 'float16', capacity: 2 }]);
  const cache = sdpa.createKVCache({ batch: 1, numKvHeads: 2, headDim: 8, ...kind });
  for (let n = draw.below(6); n >= 0; n--) cache.append(draw.tensor(1, 2, 3, 8), draw.tensor(1, 2, 3, 8));
  cache.attend(draw.tensor(1, 4, 2, 8));
  if (kind.pageSize) {
    const fork = cache.fork();
    fork.truncate(1);
    fork.dispose();
  }
  cache.dispose();
}

/** @param {any} sdpa @param {Draw} draw */
function useLayer(sdpa, draw) {
  const weights = { in_proj_weight: draw.tensor(24, 8), 'out_proj.weight': draw.tensor(8, 8) };
  const layer = sdpa.multiHeadAttention({ numHeads: 2, weights });
  const x = draw.tensor(1, 1 + draw.below(9), 8);
  layer.forward(x);
  layer.backward(x, null, { dOut: x });
  layer.dispose();
}

/** @param {any} sdpa @param {Draw} draw */
function useResident(sdpa, draw) {
  const tensors = [0, 1, 2].map(() => sdpa.tensor([1, 2, 1 + draw.below(30), 16]));
  const [query, key] = tensors;
  query.data.fill(0.5);
  const out = sdpa.tensor(query.shape);
  sdpa.attention(query, key, key, { out });
  for (const tensor of [...tensors, out]) tensor.dispose();
}

/** @param {any} sdpa @param {Draw} draw */
function useWeights(sdpa, draw) {
  const sizes = drawSizes(draw);
  const { B, H, G, L, S, D } = sizes;
  const what = draw.pick([{ stats: true }, { columnSums: true }, { topK: 3 }, { columns: [0] }]);
  sdpa.attentionWeights(draw.tensor(B, H, L, D), draw.tensor(B, G, S, D), { ...drawOptions(draw, sizes), ...what });
}

/** @param {any} sdpa @param {Draw} draw */
function attend(sdpa, draw) {
  const sizes = drawSizes(draw);
  const { B, H, G, L, S, D, Dv } = sizes;
  const [query, key, value] = [draw.tensor(B, H, L, D), draw.tensor(B, G, S, D), draw.tensor(B, G, S, Dv)];
  const options = drawOptions(draw, sizes);
  const backward = draw.chance(0.15);
  const { out, lse } = sdpa.attention(query, key, value, { ...options, returnLse: backward });
  if (backward) sdpa.attentionBackward(query, key, value, { out, lse, dOut: out }, options);
}

/** Every kind of error leaves as little behind. @param {any} sdpa @param {Draw} draw */
function fail(sdpa, draw) {
  const x = draw.tensor(1, 2, 5, 8);
  const wrong = draw.pick([
    () => sdpa.attention(x, x, draw.tensor(1, 2, 6, 8)),
    () => sdpa.attention(x, x, x, { casual: true }),
    () => sdpa.attention(x, x, x, { mask: x }),
    () => sdpa.createKVCache({ batch: 1, numKvHeads: 1, headDim: 2 ** 40 }),
    () => sdpa.tensor([2 ** 40]),
    () => sdpa.multiHeadAttention({ numHeads: 3, weights: { in_proj_weight: x } }),
  ]);
  assert.throws(wrong);
}

test(`${calls} calls hold nothing and change nothing`, async () => {
  const sdpa = /** @type {any} */ (await loadVariant());
  const draw = new Draw(7);
  const x = draw.tensor(2, 40, 16);
  const first = sdpa.attention(x, x, x, { causal: true, returnLse: true });
  // As large as any call will be, so that what the memory grows to is there.
  const long = draw.tensor(2, 4, 700, 24);
  const { held } = sdpa.memory();
  let [heap, wasm] = [0, 0];
  for (let n = 0; n < calls; n++) {
    const use = draw.uniform();
    if (use < 0.6) attend(sdpa, draw);
    else if (use < 0.75) useWeights(sdpa, draw);
    else if (use < 0.85) useCache(sdpa, draw);
    else if (use < 0.87) useLayer(sdpa, draw);
    else if (use < 0.92) useResident(sdpa, draw);
    else fail(sdpa, draw);
    if (sdpa.memory().held !== held) assert.fail(`call ${n} holds ${sdpa.memory().held - held} bytes`);
    if (n !== calls / 10 && n !== calls - 1) continue;
    sdpa.attention(long, long, long, { bias: draw.tensor(1, 4, 700, 700), returnLse: true });
    collect();
    const now = { heap: process.memoryUsage().heapUsed, wasm: sdpa.memory().wasm };
    if (n === calls - 1) {
      assert.ok(now.heap - heap < mostHeapGrowth, `the heap grew from ${heap} to ${now.heap} bytes`);
      assert.equal(now.wasm, wasm);
    }
    ({ heap, wasm } = now);
  }
  assertSameBits(sdpa.attention(x, x, x, { causal: true, returnLse: true }), first);
  sdpa.dispose();
});
