// Longformer, BigBird and Swin masks against their definitions.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { masks } from 'sdpa';
import { philox } from '../helpers/philox.mjs';
import { check, sizes } from './masks-check.mjs';

describe('longformer', () => {
  const cases = [
    { window: 0 },
    { window: 3 },
    { window: 64, globalTokens: [0] },
    { window: 10, globalTokens: [0, 1, 2, 50, 62] },
    { window: 1, globalTokens: [62, 5, 5, 30, 31] },
    { window: 1000, globalTokens: [2] },
    { window: 40, globalTokens: Int32Array.of(7, 8) },
  ];

  test('is a band, with global tokens that see all and are seen by all', () => {
    for (const n of [63, ...sizes.slice(1)]) {
      for (const options of cases) {
        const tokens = new Set(options.globalTokens);
        const near = (/** @type {number} */ i, /** @type {number} */ j) =>
          Math.abs(i - j) <= options.window || tokens.has(i) || tokens.has(j);
        const what = `${n} ${JSON.stringify(options)}`;
        check(masks.longformer(n, options), near, { rows: n, columns: n }, what);
        const causal = masks.longformer(n, { ...options, causal: true });
        check(causal, (i, j) => near(i, j) && j <= i, { rows: n, columns: n }, `${what} causal`);
        assert.equal(masks.longformer(n, { ...options, causal: false }).allows(0, 0), true);
      }
    }
  });

  test('of one token or none', () => {
    check(masks.longformer(1, { window: 0, globalTokens: [0] }), () => true, { rows: 1, columns: 1 });
    assert.equal(masks.longformer(0, { window: 5 }).rows, 0);
  });

  test('is left alone by later changes of the list', () => {
    const globalTokens = [5];
    const mask = masks.longformer(100, { window: 1, globalTokens });
    globalTokens[0] = 50;
    check(mask, (i, j) => Math.abs(i - j) <= 1 || i === 5 || j === 5, { rows: 100, columns: 100 });
  });

  test('shares its partial tiles', () => {
    const mask = masks.longformer(16384, { window: 256, globalTokens: Array.from({ length: 16 }, (_, k) => k) });
    assert.ok(masks.stats(mask).partial > 900);
    assert.ok(mask.bits.length <= 20 * 128, `${mask.bits.length / 128} different partial tiles`);
  });
});

test('the generator of these tests gives the published words', () => {
  const ones = 0xffffffff;
  assert.deepEqual(philox([0, 0, 0, 0], [0, 0]), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
  assert.deepEqual(philox([ones, ones, ones, ones], [ones, ones]), [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
  assert.deepEqual(
    philox([0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344], [0xa4093822, 0x299f31d0]),
    [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
  );
});

/**
 * Blocks that a block of queries sees, by the definition.
 * @param {number} blocks
 * @param {any} options
 * @param {number} r
 * @param {number} h
 * @returns {Set<number>}
 */
function blocksSeen(blocks, { window = 3, randomBlocks = 3, globalBlocks = 1, seed = 0 }, r, h) {
  const all = Array.from({ length: blocks }, (_, c) => c);
  const isGlobal = (/** @type {number} */ c) => c < globalBlocks || c >= blocks - globalBlocks;
  if (isGlobal(r)) return new Set(all);
  const seen = new Set(all.filter((c) => isGlobal(c) || Math.abs(c - r) <= (window - 1) / 2));
  const others = all.filter((c) => !seen.has(c));
  const n = others.length;
  const picked = new Set();
  for (let k = n - Math.min(randomBlocks, n); k < n; k++) {
    const [word] = philox([k, r, h, 0], [Number(BigInt(seed) & 0xffffffffn), Number(BigInt(seed) >> 32n)]);
    const t = Number((BigInt(word) * BigInt(k + 1)) >> 32n);
    picked.add(picked.has(t) ? k : t);
  }
  for (const k of picked) seen.add(others[k]);
  return seen;
}

describe('bigbird', () => {
  test('is a band of blocks, the first and last ones, and the drawn ones', () => {
    for (const [n, options] of /** @type {[number, any][]} */ ([
      [1, undefined],
      [64, {}],
      [640, undefined],
      [1000, { seed: 5 }],
      [300, { blockSize: 16, seed: 2 ** 53 - 1 }],
      [300, { blockSize: 16, seed: 2 ** 31, heads: 3 }],
      [129, { blockSize: 10, window: 1, randomBlocks: 1, globalBlocks: 0 }],
      [129, { blockSize: 10, window: 1, randomBlocks: 0, globalBlocks: 2 }],
      [129, { blockSize: 1, window: 5, randomBlocks: 7, heads: 2, seed: 3 }],
      [129, { blockSize: 10, randomBlocks: 1000 }],
      [129, { blockSize: 10, window: 101 }],
      [129, { blockSize: 10, globalBlocks: 100 }],
      [500, { blockSize: 100, window: 1, randomBlocks: 1 }],
      [50, { blockSize: 100 }],
    ])) {
      const { blockSize = 64, heads = 1 } = options ?? {};
      const blocks = Math.ceil(n / blockSize);
      const seen = Array.from({ length: heads * blocks }, (_, k) =>
        blocksSeen(blocks, options ?? {}, k % blocks, Math.floor(k / blocks)),
      );
      const block = (/** @type {number} */ i) => Math.floor(i / blockSize);
      check(
        masks.bigbird(n, options),
        (i, j, _, h) => seen[h * blocks + block(i)].has(block(j)),
        { rows: n, columns: n, heads },
        `${n} ${JSON.stringify(options)}`,
      );
    }
    assert.equal(masks.bigbird(0).tiles.length, 0);
    assert.equal(masks.bigbird(0, { heads: 2 ** 53 - 1 }).tiles.length, 0);
  });

  test('keeps the blocks of its definition whole and skips the rest', () => {
    const { tiles, full, partial, skipped } = masks.stats(masks.bigbird(4096, { seed: 1 }));
    // Two whole rows; next to them 3 + 1 + 3 blocks, as the band and an end overlap; 3 + 2 + 3 elsewhere.
    assert.deepEqual({ tiles, full, partial }, { tiles: 4096, full: 2 * 64 + 2 * 7 + 60 * 8, partial: 0 });
    assert.equal(skipped, tiles - full);
  });

  test('draws the same blocks for the same seed, others for another seed, head and row', () => {
    const of = (/** @type {any} */ options) => masks.toDense(masks.bigbird(2048, { blockSize: 32, ...options })).data;
    assert.deepEqual(of({ seed: 9 }), of({ seed: 9 }));
    assert.notDeepEqual(of({ seed: 9 }), of({ seed: 10 }));
    assert.notDeepEqual(of({ seed: 9 }), of({ seed: 9 + 2 ** 32 }));
    const two = of({ seed: 9, heads: 2 });
    assert.deepEqual(two.subarray(0, 2048 * 2048), of({ seed: 9 }));
    assert.notDeepEqual(two.subarray(0, 2048 * 2048), two.subarray(2048 * 2048));
  });
});

describe('swin', () => {
  /**
   * Two tokens of a window see each other where the shift kept them as they were to each other, along both axes.
   * @param {any} options
   */
  function swinCase({ height, width, windowSize: side, shift = Math.floor(side / 2) }) {
    const along = (/** @type {number} */ length) => {
      const padded = Math.ceil(length / side) * side;
      const by = padded === side ? 0 : shift;
      const origin = (/** @type {number} */ at) => (at + by) % padded;
      return {
        windows: padded / side,
        kept: (/** @type {number} */ a, /** @type {number} */ b) => origin(a) - origin(b) === a - b,
      };
    };
    const [down, across] = [along(height), along(width)];
    /** @param {number} i @param {number} j @param {number} window */
    const allowed = (i, j, window) => {
      const y = Math.floor(window / across.windows) * side;
      const x = (window % across.windows) * side;
      return (
        down.kept(y + Math.floor(i / side), y + Math.floor(j / side)) && across.kept(x + (i % side), x + (j % side))
      );
    };
    const size = { rows: side * side, columns: side * side, batch: down.windows * across.windows };
    return { allowed, size };
  }

  test('lets tokens of a window see each other where the shift kept them together', () => {
    for (const options of [
      { height: 14, width: 14, windowSize: 7 },
      { height: 14, width: 21, windowSize: 7, shift: 3 },
      { height: 8, width: 24, windowSize: 8, shift: 1 },
      { height: 24, width: 24, windowSize: 12, shift: 11 },
      { height: 24, width: 24, windowSize: 8, shift: 0 },
      { height: 10, width: 17, windowSize: 7 },
      { height: 5, width: 6, windowSize: 7 },
      { height: 5, width: 20, windowSize: 7 },
      { height: 3, width: 2, windowSize: 1 },
      { height: 4, width: 4, windowSize: 2, shift: 1 },
    ]) {
      const { allowed, size } = swinCase(options);
      check(masks.swin(options), (i, j, b) => allowed(i, j, b), size, JSON.stringify(options));
    }
  });

  test('is full in all windows but those of the last row and column', () => {
    const mask = masks.swin({ height: 56, width: 56, windowSize: 7, shift: 3 });
    assert.equal(mask.batch, 64);
    const { tiles, full, partial, skipped } = masks.stats(mask);
    assert.deepEqual({ tiles, full, partial, skipped }, { tiles: 64, full: 49, partial: 15, skipped: 0 });
    assert.equal(mask.bits.length / 128, 3); // right, below, corner
    // The first window of the last row: tokens above and below the seam.
    assert.equal(mask.allows(0, 3 * 7 + 6, 56), true);
    assert.equal(mask.allows(0, 4 * 7, 56), false);
    assert.equal(mask.allows(4 * 7, 6 * 7 + 6, 56), true);
  });
});
