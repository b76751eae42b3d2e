// Compares masks with plain predicates, cell by cell, and looks at what the kernel reads of them.

import assert from 'node:assert/strict';
import { masks } from 'sdpa';

/** Around the borders of tiles of 64. */
export const sizes = [1, 63, 64, 65, 127, 128, 129, 200];

/**
 * @param {any} mask
 * @param {(i: number, j: number, b: number, h: number) => boolean} allowed
 * @param {{ rows: number, columns: number, batch?: number, heads?: number }} size
 * @param {string} [what]
 */
export function check(mask, allowed, { rows, columns, batch = 1, heads = 1 }, what = `${rows} x ${columns}`) {
  assert.deepEqual([mask.batch, mask.heads, mask.rows, mask.columns], [batch, heads, rows, columns], what);
  const { data, shape } = masks.toDense(mask);
  assert.deepEqual(shape, [batch, heads, rows, columns], what);
  let at = 0;
  let cells = 0;
  for (let b = 0; b < batch; b++) {
    for (let h = 0; h < heads; h++) {
      for (let i = 0; i < rows; i++) {
        for (let j = 0; j < columns; j++, at++) {
          const want = allowed(i, j, b, h) ? 1 : 0;
          cells += want;
          if (data[at] !== want) assert.fail(`${what}: cell (${b}, ${h}, ${i}, ${j}) is ${data[at]}, not ${want}`);
        }
      }
    }
  }
  assert.equal(at, data.length);
  assert.equal(masks.stats(mask).cells, cells, what);
  checkForm(mask, what);
}

/**
 * A tile says empty or full where it is, partial tiles are all in use and differ, and bits outside of the mask are 0.
 * @param {any} mask
 * @param {string} [what]
 */
export function checkForm({ rows, columns, batch, heads, tiles, bits }, what) {
  const [tileRows, tileColumns] = [Math.ceil(rows / 64), Math.ceil(columns / 64)];
  assert.ok(tiles instanceof Uint32Array && bits instanceof Uint32Array, what);
  assert.equal(tiles.length, batch * heads * tileRows * tileColumns, what);
  assert.equal(bits.length % 128, 0, what);
  const partial = bits.length / 128;
  const used = new Set();
  tiles.forEach((tile, at) => {
    if (tile < 2) return;
    assert.ok(tile - 2 < partial, `${what}: tile ${at} has no bits`);
    used.add(tile);
    const height = Math.min(64, rows - (Math.floor(at / tileColumns) % tileRows) * 64);
    const width = Math.min(64, columns - (at % tileColumns) * 64);
    let inside = 0;
    let outside = 0;
    for (let r = 0; r < 64; r++) {
      for (let c = 0; c < 64; c++) {
        const bit = (bits[(tile - 2) * 128 + 2 * r + (c >> 5)] >>> (c & 31)) & 1;
        if (r < height && c < width) inside += bit;
        else outside += bit;
      }
    }
    assert.equal(outside, 0, `${what}: tile ${at} has bits outside of the mask`);
    assert.ok(inside > 0 && inside < height * width, `${what}: tile ${at} is not partial`);
  });
  assert.equal(used.size, partial, `${what}: partial tiles that no tile refers to`);
  const texts = Array.from({ length: partial }, (_, n) => bits.subarray(n * 128, (n + 1) * 128).join());
  assert.equal(new Set(texts).size, partial, `${what}: a partial tile is there twice`);
}

/**
 * The same cells in the same tiles, whatever the numbers of the partial ones.
 * @param {any} got
 * @param {any} want
 * @param {string} [what]
 */
export function assertSame(got, want, what) {
  assert.deepEqual(masks.toDense(got), masks.toDense(want), what);
  assert.deepEqual(masks.stats(got), masks.stats(want), what);
  checkForm(got, what);
}

/**
 * A boolean tensor whose tiles are empty, full or mixed, by chance.
 * @param {{ uniform: () => number }} random
 * @param {number[]} shape (batch, heads, rows, columns)
 */
export function randomDense(random, [batch, heads, rows, columns]) {
  const data = new Uint8Array(batch * heads * rows * columns);
  for (let plane = 0; plane < batch * heads; plane++) {
    for (let i = 0; i < rows; i += 64) {
      for (let j = 0; j < columns; j += 64) {
        const share = [0, 0, 1, 1, 0.5, 0.01, 0.99][Math.floor(random.uniform() * 7)];
        for (let r = i; r < Math.min(i + 64, rows); r++) {
          for (let c = j; c < Math.min(j + 64, columns); c++) {
            data[(plane * rows + r) * columns + c] = random.uniform() < share ? 1 : 0;
          }
        }
      }
    }
  }
  return { data, shape: [batch, heads, rows, columns] };
}
