// Every maker of masks in attention(): the cells that the mask allows take part, and no other.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { largestError, randomSource, referenceAttention } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { randomDense } from './masks-check.mjs';

const sdpa = await loadVariant();
const { masks } = sdpa;
const random = randomSource(21);

/** Batch, query heads, key heads, queries, keys. @type {Record<string, { sizes: number[], mask: any }>} */
const cases = {
  causal: { sizes: [1, 2, 1, 130, 200], mask: masks.causal(130, 200, { align: 'lower-right' }) },
  'causal of a batch': {
    sizes: [2, 2, 2, 70, 90],
    mask: masks.causal(70, 90, { queryOffset: Int32Array.of(-5, 70) }),
  },
  window: { sizes: [1, 2, 2, 200, 200], mask: masks.window(200, 200, [70, 3]) },
  chunk: { sizes: [1, 1, 1, 200, 129], mask: masks.chunk(200, 129, 50, { align: 'upper-left' }) },
  'prefix of a batch': { sizes: [2, 2, 1, 129, 129], mask: masks.prefix(129, 129, Int32Array.of(5, 100)) },
  documents: { sizes: [2, 1, 1, 259, 259], mask: masks.documents({ lengths: [3, 61, 64, 1, 130] }) },
  longformer: { sizes: [1, 4, 2, 300, 300], mask: masks.longformer(300, { window: 20, globalTokens: [0, 150] }) },
  dilated: { sizes: [1, 2, 2, 200, 260], mask: masks.dilated(200, 260, [9, 4], 11, { align: 'lower-right' }) },
  'longformer with gaps by head': {
    sizes: [1, 2, 1, 200, 200],
    mask: masks.longformer(200, { window: 5, dilation: [1, 9], globalTokens: [100] }),
  },
  'neighbourhood of an image': {
    sizes: [1, 2, 1, 17 * 19, 17 * 19],
    mask: masks.neighborhood([17, 19], { kernelSize: 5, dilation: 2 }),
  },
  'bigbird with extra tokens': {
    sizes: [1, 1, 1, 300, 300],
    mask: masks.bigbird(300, { blockSize: 16, extraTokens: 5, globalTokens: [77] }),
  },
  'bigbird by head': { sizes: [2, 2, 2, 330, 330], mask: masks.bigbird(330, { blockSize: 16, seed: 7, heads: 2 }) },
  swin: { sizes: [6, 3, 3, 49, 49], mask: masks.swin({ height: 14, width: 20, windowSize: 7 }) },
  'booleans by batch and head': {
    sizes: [2, 4, 2, 129, 200],
    mask: masks.fromDense(randomDense(random, [2, 4, 129, 200])),
  },
  combined: {
    sizes: [2, 2, 1, 150, 150],
    mask: masks.or(
      masks.and(masks.causal(150), masks.not(masks.chunk(150, 150, 3)), masks.documents({ lengths: [80, 70] })),
      masks.bigbird(150, { blockSize: 8, window: 1, randomBlocks: 1, globalBlocks: 0, heads: 2 }),
    ),
  },
};

for (const [name, { sizes, mask }] of Object.entries(cases)) {
  test(`${name}: gives what the same cells as booleans give`, () => {
    const [B, Hq, Hkv, L, S] = sizes;
    const query = random.tensor(B, Hq, L, 24);
    const key = random.tensor(B, Hkv, S, 24);
    const value = random.tensor(B, Hkv, S, 20);
    const want = referenceAttention(query, key, value, { mask: masks.toDense(mask) });
    const got = sdpa.attention(query, key, value, { blockMask: mask, returnLse: true });
    assert.ok(largestError(got.out.data, want.out) <= 2e-6);
    assert.ok(largestError(got.lse.data, want.lse) <= 2e-6);
    const all = referenceAttention(query, key, value);
    assert.ok(largestError(all.out, want.out) > 1e-3, 'this data cannot tell whether the mask is used');
  });
}
