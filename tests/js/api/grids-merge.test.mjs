// flash-attention 3's test of combining partial results (hopper/test_flash_attn.py), through merge(): random parts, of which for some
// rows the second half saw nothing. The log-sum-exp is within 1e-5. One batch row of two heads (there 5 and 16); of the largest results
// the smaller head sizes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadVariant } from '../helpers/sdpa.mjs';
import { cross, numbers, sweep } from './grids-sweep.mjs';

const sdpa = await loadVariant();
const heads = 2;
const mostElements = 9e6;

/**
 * @param {any} setting
 * @param {number} seed
 * @param {import('./grids-sweep.mjs').Errors} errors
 */
function run({ length, parts, width }, seed, errors) {
  const { tensor } = numbers(seed);
  const list = Array.from({ length: parts }, (_, n) => {
    const part = { out: tensor(1, heads, length, width), lse: tensor(1, heads, length) };
    // Every third row saw nothing in the later parts; what stands there then counts for nothing.
    for (let row = 0; n >= Math.max(1, parts >> 1) && row < heads * length; row += 3) {
      part.lse.data[row] = -Infinity;
      part.out.data.fill(NaN, row * width, (row + 1) * width);
    }
    return part;
  });
  const got = sdpa.merge(list);
  const exact = merged(list, heads * length, width, (x) => x);
  const plain = merged(list, heads * length, width, Math.fround);
  errors.addRounding(exact.out);
  errors.add(got.out.data, exact.out, plain.out);
  got.lse.data.forEach((lse, row) => assert.ok(Math.abs(lse - exact.lse[row]) <= 1e-5));
  return heads * length;
}

/**
 * By the formula, row by row.
 * @param {{ out: { data: Float32Array }, lse: { data: Float32Array } }[]} list
 * @param {number} rows
 * @param {number} width
 * @param {(x: number) => number} round
 */
function merged(list, rows, width, round) {
  const out = new Float64Array(rows * width);
  const lse = new Float64Array(rows);
  for (let row = 0; row < rows; row++) {
    const top = list.reduce((most, part) => Math.max(most, part.lse.data[row]), -Infinity);
    const shares = list.map((part) => round(Math.exp(round(part.lse.data[row] - top))));
    const sum = shares.reduce((total, share) => round(total + share), 0);
    lse[row] = round(top + round(Math.log(sum)));
    list.forEach((part, n) => {
      if (shares[n] === 0) return;
      const weight = round(shares[n] / sum);
      for (let d = row * width; d < (row + 1) * width; d++) {
        out[d] = round(out[d] + round(weight * part.out.data[d]));
      }
    });
  }
  return { out, lse };
}

test('flash-attention 3: combining partial results', async () => {
  const settings = cross({
    length: [1, 2, 3, 32, 64, 256, 113, 108, 640, 1024],
    parts: [1, 2, 3, 5, 17, 32, 55, 97, 133],
    width: [64, 96, 128, 192, 256, 512],
  });
  const elements = (/** @type {any} */ { length, parts, width }) => heads * length * parts * width;
  await sweep(
    'flash-attention 3, combining partial results',
    settings.filter(
      (setting) => elements(setting) <= mostElements || (setting.width === 64 && elements(setting) <= 2e7),
    ),
    { sample: 40, run, cost: (setting) => elements(setting) / 2e5 },
  );
});
