// and, or, not and stats of masks: the laws, on random masks with empty, full and mixed tiles.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { masks } from 'sdpa';
import { randomSource } from '../helpers/reference.mjs';
import { assertSame, check, randomDense, sizes } from './masks-check.mjs';

const { and, or, not, fromDense, toDense, stats } = masks;
const random = randomSource(11);

const shapes = [
  [1, 1, 1, 1],
  [1, 1, 64, 64],
  [1, 1, 65, 63],
  [2, 3, 129, 200],
  [1, 2, 300, 257],
];

describe('the algebra of masks', () => {
  test('works cell by cell', () => {
    for (const rows of sizes) {
      for (const columns of sizes) {
        const [a, b, c] = [0, 1, 2].map(() => randomDense(random, [1, 1, rows, columns]));
        const [ma, mb, mc] = [a, b, c].map(fromDense);
        const size = { rows, columns };
        const on = (/** @type {any} */ x, /** @type {number} */ i, /** @type {number} */ j) =>
          x.data[i * columns + j] === 1;
        check(and(ma, mb), (i, j) => on(a, i, j) && on(b, i, j), size);
        check(or(ma, mb), (i, j) => on(a, i, j) || on(b, i, j), size);
        check(not(ma), (i, j) => !on(a, i, j), size);
        check(and(ma, mb, mc), (i, j) => on(a, i, j) && on(b, i, j) && on(c, i, j), size);
        check(or(ma, mb, mc), (i, j) => on(a, i, j) || on(b, i, j) || on(c, i, j), size);
      }
    }
  });

  for (const shape of shapes) {
    test(`keeps its laws at [${shape}]`, () => {
      for (let repeat = 0; repeat < 4; repeat++) {
        const [a, b, c] = [0, 1, 2].map(() => fromDense(randomDense(random, shape)));
        assertSame(not(and(a, b)), or(not(a), not(b)), 'De Morgan');
        assertSame(not(or(a, b)), and(not(a), not(b)), 'De Morgan');
        assertSame(not(not(a)), a, 'double negation');
        assertSame(and(a, a), a, 'idempotence of and');
        assertSame(or(a, a), a, 'idempotence of or');
        assertSame(and(a, b), and(b, a), 'order of and');
        assertSame(or(a, b), or(b, a), 'order of or');
        assertSame(and(a, or(b, c)), or(and(a, b), and(a, c)), 'distribution');
        assertSame(or(a, and(a, b)), a, 'absorption');
        assert.equal(stats(and(a, not(a))).skipped, stats(a).tiles, 'a mask and its opposite have nothing in common');
        assert.equal(stats(or(a, not(a))).full, stats(a).tiles, 'a mask and its opposite are everything');
      }
    });
  }

  test('spreads a batch or number of heads of 1', () => {
    const shape = /** @type {const} */ ([70, 130]);
    const kinds = [
      [1, 1],
      [2, 1],
      [1, 3],
      [2, 3],
    ];
    for (const [batchA, headsA] of kinds) {
      for (const [batchB, headsB] of kinds) {
        const a = randomDense(random, [batchA, headsA, ...shape]);
        const b = randomDense(random, [batchB, headsB, ...shape]);
        const size = { rows: 70, columns: 130, batch: Math.max(batchA, batchB), heads: Math.max(headsA, headsB) };
        const on = (/** @type {any} */ { data, shape: [batch, heads] }, /** @type {number[]} */ [i, j, r, h]) =>
          data[(((batch === 1 ? 0 : r) * heads + (heads === 1 ? 0 : h)) * 70 + i) * 130 + j] === 1;
        const [ma, mb] = [fromDense(a), fromDense(b)];
        check(and(ma, mb), (...cell) => on(a, cell) && on(b, cell), size);
        check(or(ma, mb), (...cell) => on(a, cell) || on(b, cell), size);
      }
    }
  });

  test('knows how much of a tile there is where whole and cut tiles have the same cells', () => {
    // Tiles of 64 x 64, 64 x 3, 5 x 64 and 5 x 3, all with the first `height` rows up to column `width`.
    const corners = (/** @type {number} */ height, /** @type {number} */ width) => {
      const allowed = (/** @type {number} */ i, /** @type {number} */ j) => i % 64 < height && j % 64 < width;
      const data = Uint8Array.from({ length: 69 * 67 }, (_, at) => Number(allowed(Math.floor(at / 67), at % 67)));
      return { allowed, mask: fromDense({ data, shape: [69, 67] }) };
    };
    const size = { rows: 69, columns: 67 };
    const all = [corners(5, 2), corners(4, 3), corners(2, 2), corners(5, 3)];
    for (const a of all) {
      check(not(a.mask), (i, j) => !a.allowed(i, j), size);
      for (const b of all) {
        check(or(a.mask, b.mask), (i, j) => a.allowed(i, j) || b.allowed(i, j), size);
        check(and(a.mask, b.mask), (i, j) => a.allowed(i, j) && b.allowed(i, j), size);
        check(or(not(a.mask), b.mask), (i, j) => !a.allowed(i, j) || b.allowed(i, j), size);
      }
    }
    // Together everything in the cut tiles below, and not in the whole ones.
    const left = corners(5, 32);
    const right = not(left.mask);
    check(or(left.mask, and(right, corners(5, 64).mask)), (i) => i % 64 < 5, size);
  });

  test('combines masks of every make', () => {
    const n = 300;
    const lengths = [100, 150, 50];
    const document = (/** @type {number} */ i) => (i < 100 ? 0 : i < 250 ? 1 : 2);
    const mask = and(
      or(masks.window(n, n, [70, 0]), masks.prefix(n, n, 4)),
      masks.causal(n),
      masks.documents({ lengths }),
      not(masks.chunk(n, n, 3)),
    );
    check(
      mask,
      (i, j) =>
        j <= i && (i - j <= 70 || j <= i) && document(i) === document(j) && Math.floor(i / 3) !== Math.floor(j / 3),
      { rows: n, columns: n },
    );
  });

  test('of one mask is that mask, and leaves its masks alone', () => {
    const a = masks.causal(100);
    const before = toDense(a);
    assertSame(and(a), a);
    assertSame(or(a), a);
    not(a);
    and(a, masks.chunk(100, 100, 7));
    assert.deepEqual(toDense(a), before);
  });

  test('of masks without cells has none', () => {
    const none = masks.causal(0, 5);
    assert.deepEqual([and(none, none).columns, or(none, none).rows, not(none).rows], [5, 0, 0]);
    const noBatch = fromDense({ data: new Uint8Array(0), shape: [0, 1, 3, 3] });
    assert.equal(and(noBatch, masks.causal(3)).batch, 0);
    assert.equal(not(noBatch).batch, 0);
  });

  test('keeps equal partial tiles once', () => {
    const mask = and(masks.causal(8192), not(masks.window(8192, 8192, [1000, 0])));
    assert.ok(stats(mask).partial > 200);
    assert.ok(mask.bits.length <= 4 * 128);
    assert.equal(not(masks.causal(8192)).bits.length, 128);
  });
});

describe('stats', () => {
  test('of a causal mask shows the skipped half', () => {
    assert.deepEqual(stats(masks.causal(4096)), {
      tiles: 4096,
      full: 2016,
      partial: 64,
      skipped: 2016,
      cells: (4096 * 4097) / 2,
      density: 4097 / 8192,
    });
  });

  test('counts cut tiles as full or skipped where their cells are', () => {
    const everything = { rows: 100, columns: 70 };
    const all = masks.window(100, 70, [Infinity, Infinity], { align: 'upper-left' });
    check(all, () => true, everything);
    assert.deepEqual(stats(all), { tiles: 4, full: 4, partial: 0, skipped: 0, cells: 7000, density: 1 });
    const none = masks.causal(100, 70, { queryOffset: -100 });
    assert.deepEqual(stats(none), { tiles: 4, full: 0, partial: 0, skipped: 4, cells: 0, density: 0 });
    const corner = masks.causal(65, 65);
    assert.deepEqual(stats(corner), { tiles: 4, full: 2, partial: 1, skipped: 1, cells: 2145, density: 2145 / 4225 });
  });

  test('counts all batch rows and heads of the mask', () => {
    for (const shape of shapes) {
      const dense = randomDense(random, shape);
      const { tiles, full, partial, skipped, cells, density } = stats(fromDense(dense));
      const [batch, heads, rows, columns] = shape;
      assert.equal(tiles, batch * heads * Math.ceil(rows / 64) * Math.ceil(columns / 64));
      assert.equal(full + partial + skipped, tiles);
      const want = dense.data.reduce((sum, cell) => sum + cell, 0);
      assert.equal(cells, want);
      assert.equal(density, want / dense.data.length);
    }
  });

  test('counts a large mask exactly', () => {
    const n = 65536;
    const { tiles, full, partial, skipped, cells } = stats(masks.causal(n));
    assert.deepEqual([tiles, full, partial, skipped], [1048576, 523776, 1024, 523776]);
    assert.equal(cells, (n * (n + 1)) / 2);
  });
});
