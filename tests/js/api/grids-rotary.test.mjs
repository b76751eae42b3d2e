// flash-attention's tests/test_rotary.py through rope(): offsets of none, one number and one per batch row, whole and half rotation, both
// pairings, in place or not, queries and keys in one tensor, and the heads of grouped queries, drawn for each size. In place of its rtol of 1e-3 the error is
// held against that of plain float32 arithmetic; the absolute term is the table's, twice the rounding of an addition. 16-bit results are
// held against the plain ones rounded.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadVariant } from '../helpers/sdpa.mjs';
import { fromHalf, toHalf } from './grids-half.mjs';
import { turned } from './grids-rotation.mjs';
import { drawOptions, numbers, sweep } from './grids-sweep.mjs';

const sdpa = await loadVariant();

const sizes = {
  length: [1, 3, 97, 217],
  headDim: [32, 64, 128],
  dtype: ['float32', 'float16', 'bfloat16'],
};
const options = {
  // 6 heads; queries and keys of 6 heads in one tensor; queries of 6 and keys of 2 heads in one.
  heads: [6, 12, 8],
  offset: ['none', 'number', 'batch'],
  fraction: [1, 0.5],
  pairing: ['half', 'interleaved'],
  inPlace: [false, true],
  layout: ['bhld', 'blhd'],
};

/** (B, H, L, D) as (B, L, H, D), or back. @param {any} tensor */
function swapped({ data, shape: [B, H, L, D] }) {
  const result = new data.constructor(data.length);
  for (let row = 0; row < B * H * L; row++) {
    const [b, h, i] = [Math.floor(row / (H * L)), Math.floor(row / L) % H, row % L];
    result.set(data.subarray(row * D, (row + 1) * D), ((b * L + i) * H + h) * D);
  }
  return { data: result, shape: [B, L, H, D] };
}

/**
 * @param {any} setting
 * @param {number} seed
 * @param {import('./grids-sweep.mjs').Errors} errors
 */
function run({ length, headDim, heads, offset, fraction, pairing, inPlace, layout, dtype }, seed, errors) {
  const { tensor, whole } = numbers(seed);
  const B = 2;
  const x = tensor(B, heads, length, headDim);
  const stored = dtype === 'float32' ? x : toHalf(x, dtype);
  const values = { data: dtype === 'float32' ? x.data : /** @type {any} */ (stored).numbers, shape: x.shape };
  const starts =
    offset === 'batch' ? [whole(0, 4000), whole(0, 4000)] : Array(B).fill(offset === 'none' ? 0 : whole(0, 4000));
  const rope = { pairing, rotaryDim: fraction * headDim };

  const given = { ...(layout === 'blhd' ? swapped(stored) : { data: stored.data.slice(), shape: x.shape }), dtype };
  const kept = given.data.slice();
  const result = sdpa.rope(given, {
    ...rope,
    layout,
    ...(offset === 'number' && { offset: starts[0] }),
    ...(offset === 'batch' && { offset: Int32Array.from(starts) }),
    ...(inPlace && { out: given.data }),
  });
  if (inPlace) assert.equal(result.data, given.data);
  else assert.deepEqual(given.data, kept);
  assert.equal(result.dtype, dtype);
  const got = layout === 'blhd' ? swapped(result).data : result.data;

  const position = (/** @type {number} */ b, /** @type {number} */ i) => starts[b] + i;
  const exact = turned(values, position, rope, (n) => n);
  const plain = turned(values, position, rope, Math.fround);
  if (dtype === 'float32') {
    errors.addRounding(exact);
    errors.add(got, exact, plain);
  } else {
    const rounded = toHalf({ data: Float32Array.from(plain), shape: x.shape }, dtype);
    errors.add(fromHalf(got, dtype), exact, rounded.numbers);
  }
  // What is not turned passes as it is.
  const from = rope.rotaryDim;
  for (let row = 0; row < B * heads * length; row += 17) {
    const at = row * headDim;
    assert.deepEqual(got.subarray(at + from, at + headDim), stored.data.subarray(at + from, at + headDim));
  }
  return B * heads * length;
}

test('flash-attention: rotary embeddings', async () => {
  await sweep('flash-attention, rotary', drawOptions(sizes, options, 16), { sample: 24, run });
});
