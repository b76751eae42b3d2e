// Masks made from positions, documents and booleans, against plain predicates, around the borders of tiles.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { masks } from 'sdpa';
import { randomSource } from '../helpers/reference.mjs';
import { check, checkForm, randomDense, sizes } from './masks-check.mjs';

/**
 * Every pair of sizes with every way to say where row 0 stands.
 * @param {(rows: number, columns: number, position: any, offset: number, what: string) => void} action
 */
function everywhere(action) {
  for (const rows of sizes) {
    for (const columns of sizes) {
      const positions = [
        [{ align: 'lower-right' }, columns - rows],
        [{ align: 'upper-left' }, 0],
        [{ queryOffset: 70 }, 70],
        [{ queryOffset: -67 }, -67],
      ];
      if (rows === columns) positions.push([undefined, 0], [{}, 0]);
      for (const [position, offset] of positions) {
        action(rows, columns, position, offset, `${rows} x ${columns} ${JSON.stringify(position)}`);
      }
    }
  }
}

/** @param {number} p @param {number} j @param {number} c */
const sameChunk = (p, j, c) => Math.floor(p / c) === Math.floor(j / c);

describe('a mask of positions', () => {
  test('causal: keys up to the own position', () => {
    everywhere((rows, columns, position, offset, what) => {
      check(masks.causal(rows, columns, position), (i, j) => j <= i + offset, { rows, columns }, what);
    });
    for (const n of sizes) check(masks.causal(n), (i, j) => j <= i, { rows: n, columns: n });
  });

  for (const [left, right] of [
    [0, 0],
    [5, 0],
    [0, 70],
    [64, 63],
    [Infinity, 3],
    [100, Infinity],
    [Infinity, Infinity],
    [2 ** 50, 2 ** 50],
  ]) {
    test(`window [${left}, ${right}]: so many keys before and behind the own position`, () => {
      everywhere((rows, columns, position, offset, what) => {
        const mask = masks.window(rows, columns, [left, right], position);
        check(mask, (i, j) => j >= i + offset - left && j <= i + offset + right, { rows, columns }, what);
      });
    });
  }

  for (const c of [1, 7, 64, 100, 128, 2 ** 50]) {
    test(`chunk ${c}: keys in the same block of positions, which may be negative`, () => {
      everywhere((rows, columns, position, offset, what) => {
        const mask = masks.chunk(rows, columns, c, position);
        check(mask, (i, j) => sameChunk(i + offset, j, c), { rows, columns }, what);
      });
    });
  }

  for (const n of [0, 1, 64, 90, 1000]) {
    test(`prefix ${n}: causal, and the prefix for everyone`, () => {
      everywhere((rows, columns, position, offset, what) => {
        check(masks.prefix(rows, columns, n, position), (i, j) => j <= i + offset || j < n, { rows, columns }, what);
      });
    });
  }

  test('has a batch where the prefix or the offset has one number per batch row', () => {
    const size = { rows: 70, columns: 130, batch: 3 };
    const lengths = Int32Array.of(0, 64, 100);
    const offsets = Int32Array.of(-3, 5, 60);
    const byLength = masks.prefix(70, 130, lengths, { align: 'lower-right' });
    check(byLength, (i, j, b) => j <= i + 60 || j < lengths[b], size);
    const byBoth = masks.prefix(70, 130, lengths, { queryOffset: offsets });
    check(byBoth, (i, j, b) => j <= i + offsets[b] || j < lengths[b], size);
    const byOffset = masks.causal(70, 130, { queryOffset: offsets });
    check(byOffset, (i, j, b) => j <= i + offsets[b], size);
    check(
      masks.window(70, 130, [3, 3], { queryOffset: offsets }),
      (i, j, b) => Math.abs(j - i - offsets[b]) <= 3,
      size,
    );
    check(masks.chunk(70, 130, 10, { queryOffset: offsets }), (i, j, b) => sameChunk(i + offsets[b], j, 10), size);
    const ofOne = masks.prefix(70, 130, Int32Array.of(9), { queryOffset: offsets });
    check(ofOne, (i, j, b) => j <= i + offsets[b] || j < 9, size);
  });

  test('of no rows, no columns or no batch has no tiles', () => {
    for (const [rows, columns] of [
      [0, 0],
      [0, 5],
      [0, 2 ** 31 - 1],
      [5, 0],
      [2 ** 31 - 1, 0],
    ]) {
      const mask = masks.causal(rows, columns, { align: 'upper-left' });
      assert.deepEqual([mask.rows, mask.columns, mask.tiles.length, mask.bits.length], [rows, columns, 0, 0]);
    }
    assert.equal(masks.causal(0, 5).rows, 0); // no row, no question
    assert.equal(masks.causal(5, 5, { queryOffset: new Int32Array(0) }).batch, 0);
  });

  test('takes as much memory as its tiles, not its cells', () => {
    const { tiles, bits } = masks.causal(65536);
    assert.equal(tiles.length, 1024 * 1024);
    assert.equal(bits.length, 128); // the tiles of the diagonal are all alike
    const window = masks.window(65536, 65536, [300, 7]);
    assert.ok(window.bits.length <= 20 * 128);
    checkForm(masks.causal(4000));
  });
});

describe('a mask of documents', () => {
  /** Ids in runs, in random order, and all alike. */
  const random = randomSource(5);
  const ids = (/** @type {number} */ n, /** @type {number} */ run, /** @type {number} */ kinds) => {
    const from = Math.floor(random.uniform() * 50);
    return Int32Array.from({ length: n }, (_, i) => Math.floor((i + from) / run) % kinds);
  };
  const scattered = (/** @type {number} */ n) =>
    Int32Array.from({ length: n }, () => Math.floor(random.uniform() * 9) - 4);

  test('lets tokens with the same id see each other', () => {
    for (const n of sizes) {
      for (const own of [ids(n, 10, 1e9), ids(n, 64, 3), ids(n, 1, 2), ids(n, 1e9, 1), scattered(n)]) {
        check(masks.documents(own), (i, j) => own[i] === own[j], { rows: n, columns: n });
      }
    }
  });

  test('takes ids of queries and of keys', () => {
    for (const rows of sizes) {
      for (const columns of sizes) {
        for (const [query, key] of [
          [ids(rows, 30, 1e9), ids(columns, 20, 1e9)],
          [ids(rows, 64, 2), ids(columns, 128, 2)],
          [scattered(rows), scattered(columns)],
          [new Int32Array(rows), new Int32Array(columns).fill(-1)],
        ]) {
          check(masks.documents({ query, key }), (i, j) => query[i] === key[j], { rows, columns });
        }
      }
    }
  });

  test('takes the lengths of packed documents', () => {
    const lengths = [3, 0, 61, 64, 1, 130, 0];
    const own = Int32Array.from(lengths.flatMap((n, d) => Array(n).fill(d)));
    const size = { rows: 259, columns: 259 };
    check(masks.documents({ lengths }), (i, j) => own[i] === own[j], size);
    check(masks.documents({ lengths: Int32Array.from(lengths) }), (i, j) => own[i] === own[j], size);
    check(
      masks.and(masks.causal(259), masks.documents({ lengths })),
      (i, j) => own[i] === own[j] && j <= i,
      size,
      'causal documents',
    );
    assert.equal(masks.documents({ lengths: [] }).rows, 0);
  });

  test('of whole tiles has no partial tile', () => {
    assert.deepEqual(masks.stats(masks.documents({ lengths: [128, 64, 192] })), {
      tiles: 36,
      full: 4 + 1 + 9,
      partial: 0,
      skipped: 22,
      cells: 14 * 4096,
      density: 14 / 36,
    });
  });
});

describe('a mask of booleans', () => {
  const random = randomSource(6);

  test('has the cells of the tensor, at each rank and size', () => {
    for (const rows of sizes) {
      for (const columns of sizes) {
        const { data } = randomDense(random, [2, 3, rows, columns]);
        const plane = rows * columns;
        const at = (/** @type {number[]} */ [i, j, b, h]) => data[((b * 3 + h) * rows + i) * columns + j] === 1;
        const size = { rows, columns };
        const four = masks.fromDense({ data, shape: [2, 3, rows, columns] });
        check(four, (...cell) => at(cell), { ...size, batch: 2, heads: 3 });
        const three = masks.fromDense({ data: data.subarray(0, 3 * plane), shape: [3, rows, columns] });
        check(three, (i, j, b, h) => at([i, j, 0, h]), { ...size, heads: 3 });
        const two = masks.fromDense({ data: data.subarray(plane, 2 * plane), shape: [rows, columns] });
        check(two, (i, j) => at([i, j, 0, 1]), size);
      }
    }
  });

  test('takes any non-zero byte, boolean[], dims and bool dtypes', () => {
    const want = (/** @type {number} */ i, /** @type {number} */ j) => i === j;
    const size = { rows: 2, columns: 2 };
    check(masks.fromDense({ data: Uint8Array.of(1, 0, 0, 255), shape: [2, 2] }), want, size);
    check(masks.fromDense({ data: [true, false, false, true], shape: [2, 2] }), want, size);
    check(masks.fromDense({ data: Uint8Array.of(2, 0, 0, 3), dims: [2, 2], type: 'bool' }), want, size);
    check(masks.fromDense({ data: Uint8Array.of(2, 0, 0, 3), shape: [2, 2], dtype: 'uint8' }), want, size);
  });

  test('is left alone by later changes of the tensor', () => {
    const data = Uint8Array.of(1, 0, 0, 1);
    const shape = [2, 2];
    const mask = masks.fromDense({ data, shape });
    data.fill(1);
    shape[0] = 7;
    check(mask, (i, j) => i === j, { rows: 2, columns: 2 });
  });

  test('keeps tiles apart whose hashes are equal', () => {
    // The store's hash: what a word does to it, the next word can undo.
    const step = (/** @type {number} */ hash, /** @type {number} */ word) => {
      const x = Math.imul(hash ^ word, 0x9e3779b1);
      return x ^ (x >>> 15);
    };
    const tiles = [0, 1, 2].map((first) => [first, step(0, first) ^ step(0, 0) ^ 5]);
    const on = (/** @type {number} */ i, /** @type {number} */ j) =>
      i === 0 && ((tiles[Math.floor(j / 64)][(j >> 5) & 1] >>> (j & 31)) & 1) === 1;
    const data = Uint8Array.from({ length: 64 * 192 }, (_, at) => Number(on(Math.floor(at / 192), at % 192)));
    check(masks.fromDense({ data, shape: [64, 192] }), on, { rows: 64, columns: 192 });
  });

  test('may have no cells', () => {
    for (const shape of [
      [0, 3],
      [3, 0],
      [0, 2, 3, 3],
      [2, 0, 3, 3],
    ]) {
      const mask = masks.fromDense({ data: new Uint8Array(0), shape });
      assert.deepEqual(masks.toDense(mask).shape, [1, 1, 1, 1].slice(shape.length).concat(shape));
      assert.equal(masks.stats(mask).tiles, 0);
      assert.equal(masks.stats(mask).density, 0);
    }
  });
});

describe('a mask', () => {
  test('says of each cell whether it is allowed', () => {
    const random = randomSource(7);
    const dense = randomDense(random, [2, 2, 130, 100]);
    const mask = masks.fromDense(dense);
    let at = 0;
    for (let b = 0; b < 2; b++) {
      for (let h = 0; h < 2; h++) {
        for (let i = 0; i < 130; i++) {
          for (let j = 0; j < 100; j++) assert.equal(mask.allows(i, j, b, h), dense.data[at++] === 1);
        }
      }
    }
  });

  test('of one batch row and head answers for all of them', () => {
    const mask = masks.causal(100);
    assert.equal(mask.allows(5, 5), true);
    assert.equal(mask.allows(5, 6), false);
    assert.equal(mask.allows(99, 70, 12, 40), true);
  });

  test('cannot be changed, and neither can masks', () => {
    'use strict';
    const mask = masks.causal(100);
    for (const name of ['rows', 'columns', 'batch', 'heads', 'tiles', 'bits', 'other']) {
      assert.throws(() => {
        mask[name] = 3;
      }, TypeError);
    }
    assert.throws(() => {
      masks.causal = () => mask;
    }, TypeError);
    check(mask, (i, j) => j <= i, { rows: 100, columns: 100 });
  });
});
