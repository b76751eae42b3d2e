// sdpa.rope() against the formula in float64, and what a rotation promises.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { largestError, random16, randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { referenceRope, valuesOf } from './rope-reference.mjs';

const sdpa = await loadVariant();
const random = randomSource(5);

/** One rounding of float32 on numbers below 8. */
const tolerance = 2 ** -22;

/**
 * @param {any} x
 * @param {any} options
 * @param {any} [without] options among which the tested one is missing
 */
function check(x, options, without) {
  const before = x.data.slice();
  const got = sdpa.rope(x, options);
  const want = referenceRope(x, options);
  assert.deepEqual(got.shape, x.shape);
  assert.equal(got.dtype, 'float32');
  assert.deepEqual(x.data, before, 'x is left alone');
  const worst = largestError(got.data, want);
  assert.ok(worst <= tolerance, `${JSON.stringify(options)} differs by ${worst}`);
  if (without) {
    assert.ok(largestError(referenceRope(x, without), want) > 1e-2, 'this data cannot tell whether the option is used');
  }
  return got;
}

test('without options, all columns turn by the position, halves together', () => {
  check(random.tensor(2, 3, 7, 8), undefined, { pairing: 'interleaved' });
  const { data } = sdpa.rope({ data: Float32Array.of(1, 2, 3, 4), shape: [2, 2] });
  assert.deepEqual([...data.slice(0, 2)], [1, 2], 'position 0 turns nothing');
  const [c, s] = [Math.cos(1), Math.sin(1)];
  assert.deepEqual([...data.slice(2)], [Math.fround(3 * c - 4 * s), Math.fround(3 * s + 4 * c)]);
});

test('both pairings at every even head size up to 40, and for odd ones with a rotaryDim', () => {
  for (let D = 1; D <= 40; D++) {
    for (const pairing of ['half', 'interleaved']) {
      const x = random.tensor(1, 2, 3, D);
      if (D % 2 === 0) check(x, { pairing });
      for (const rotaryDim of [2, 4, D - (D % 2)])
        if (rotaryDim > 0 && rotaryDim <= D) check(x, { pairing, rotaryDim });
    }
  }
});

test('base, pairing and rotaryDim count', () => {
  const x = random.tensor(1, 1, 30, 12);
  check(x, { base: 500 }, {});
  check(x, { base: 500000, offset: 100 }, { offset: 100 });
  check(x, { pairing: 'interleaved' }, {});
  check(x, { rotaryDim: 6 }, {});
  check(x, { rotaryDim: 6, pairing: 'interleaved', base: 77 }, { rotaryDim: 6, pairing: 'interleaved' });
});

test('columns behind rotaryDim pass bit for bit', () => {
  const x = random.tensor(2, 2, 5, 7);
  x.data[6] = NaN;
  x.data[5] = -0;
  const { data } = sdpa.rope(x, { rotaryDim: 4, offset: 9 });
  x.data.forEach((value, i) => {
    if (i % 7 >= 4) assert.ok(Object.is(data[i], value));
  });
});

test('ranks 2, 3 and 4, in both layouts', () => {
  for (const shape of [
    [5, 6],
    [3, 5, 6],
    [2, 3, 5, 6],
  ]) {
    const x = random.tensor(...shape);
    check(x, { layout: 'bhld' });
    check(x, { layout: 'blhd', offset: 3 }, shape.length === 2 ? undefined : { layout: 'bhld', offset: 3 });
  }
});

test('offset: a number or one per batch row, also negative and beyond 2^31', () => {
  const x = random.tensor(3, 2, 4, 8);
  check(x, { offset: 17 }, {});
  check(x, { offset: -3 }, {});
  check(x, { offset: Int32Array.of(0, 5, -2) }, { offset: Int32Array.of(5, 5, 5) });
  // The angle itself is what float64 can say: base 1 turns every pair by the position.
  check(x, { offset: 2 ** 33, base: 1 }, {});
});

test('positions: one row for all, one per batch row, as array or as tensor', () => {
  const x = random.tensor(2, 2, 3, 8);
  const shared = Int32Array.of(7, 0, 7);
  const each = Int32Array.of(1, 2, 3, -4, 900, 0);
  check(x, { positions: shared }, {});
  check(x, { positions: each }, { positions: shared });
  check(random.tensor(2, 3, 2, 8), { positions: each, layout: 'blhd', rotaryDim: 4 });
  const got = sdpa.rope(x, { positions: each });
  assert.deepEqual(sdpa.rope(x, { positions: { data: each, shape: [2, 3] } }), got);
  assert.deepEqual(sdpa.rope(x, { positions: { data: shared, shape: [1, 3] } }), sdpa.rope(x, { positions: shared }));
  assert.deepEqual(sdpa.rope(x, { positions: { data: shared, dims: [3] } }), sdpa.rope(x, { positions: shared }));
});

test('a batch of one token tells (L) from (B, L) by the number of positions', () => {
  const x = random.tensor(2, 1, 1, 4);
  check(x, { positions: Int32Array.of(3) });
  check(x, { positions: Int32Array.of(3, 4) }, { positions: Int32Array.of(3) });
});

test('the product of a turned query and key depends on the distance alone', () => {
  const q = random.tensor(1, 16);
  const k = random.tensor(1, 16);
  for (const options of [
    {},
    { pairing: 'interleaved' },
    { rotaryDim: 10 },
    { scaling: { type: 'linear', factor: 3 } },
  ]) {
    /** @param {number} i @param {number} j */
    const product = (i, j) => {
      const a = sdpa.rope(q, { ...options, offset: i }).data;
      const b = sdpa.rope(k, { ...options, offset: j }).data;
      return a.reduce((sum, x, d) => sum + x * b[d], 0);
    };
    const want = product(12, 5);
    for (const shift of [1, 100, 100000]) assert.ok(Math.abs(product(12 + shift, 5 + shift) - want) < 1e-5);
    assert.ok(Math.abs(product(12, 6) - want) > 1e-3);
  }
});

test('inverse undoes, with every scaling', () => {
  const x = random.tensor(2, 2, 9, 16);
  for (const scaling of [
    undefined,
    null,
    { type: 'linear', factor: 4 },
    { type: 'ntk', factor: 4 },
    { type: 'yarn', factor: 8, originalMaxPosition: 64 },
    { type: 'llama3', factor: 8, lowFreqFactor: 1, highFreqFactor: 4, originalMaxPosition: 64 },
  ]) {
    const options = { scaling, offset: 321, rotaryDim: 12 };
    const there = sdpa.rope(x, options);
    assert.ok(largestError(there.data, x.data) > 0.1);
    assert.ok(largestError(sdpa.rope(there, { ...options, inverse: true }).data, x.data) <= 2e-6);
  }
  check(x, { inverse: true }, {});
});

test('far positions are exact to float32: angles are computed in float64', () => {
  const x = random.tensor(1, 1, 2, 64);
  check(x, { offset: 1_000_003 });
  check(x, { offset: 131_071, base: 1e6 });
});

test('16-bit tensors give their own type, rounded once', () => {
  for (const dtype of /** @type {const} */ (['float16', 'bfloat16'])) {
    const x = { data: random16(2 * 3 * 8, dtype, random.uniform), shape: [2, 3, 8], dtype };
    const got = sdpa.rope(x, { offset: 4, rotaryDim: 6 });
    assert.equal(got.dtype, dtype);
    assert.ok(got.data instanceof Uint16Array);
    const want = referenceRope(x, { offset: 4, rotaryDim: 6 });
    // Half a unit in the last place: 11 and 8 bits.
    const share = dtype === 'float16' ? 2 ** -11 : 2 ** -8;
    valuesOf(got).forEach((value, i) => {
      assert.ok(Math.abs(value - want[i]) <= share * Math.abs(want[i]) * 1.0001 + 2 ** -24, `${value}, not ${want[i]}`);
    });
    got.data.forEach((bits, i) => {
      if (i % 8 >= 6) assert.equal(bits, x.data[i]);
    });
  }
});

const noFloat16Array = typeof globalThis.Float16Array === 'undefined' && 'this engine has no Float16Array';
test('a Float16Array gives a Float16Array', { skip: noFloat16Array }, () => {
  const bits = random16(12, 'float16', random.uniform);
  const got = sdpa.rope({ data: new globalThis.Float16Array(bits.buffer), shape: [3, 4] });
  assert.ok(got.data instanceof globalThis.Float16Array);
  const want = sdpa.rope({ data: bits, shape: [3, 4], dtype: 'float16' });
  assert.deepEqual(new Uint16Array(got.data.buffer), want.data);
});

test('out: an array, a tensor in wasm memory, or x itself', () => {
  const x = random.tensor(2, 2, 3, 6);
  const want = sdpa.rope(x, { offset: 2 }).data;
  const out = new Float32Array(72);
  const got = sdpa.rope(x, { offset: 2, out });
  assert.equal(got.data, out);
  assert.deepEqual(out, want);

  const resident = sdpa.tensor([2, 2, 3, 6]);
  resident.data.set(x.data);
  const target = sdpa.tensor([2, 2, 3, 6]);
  assert.equal(sdpa.rope(resident, { offset: 2, out: target }), target);
  assert.deepEqual(target.data, want);
  assert.equal(sdpa.rope(resident, { offset: 2, out: resident }), resident);
  assert.deepEqual(resident.data, want);
  resident.dispose();
  target.dispose();

  const copy = x.data.slice();
  sdpa.rope({ data: copy, shape: x.shape }, { offset: 2, out: copy });
  assert.deepEqual(copy, want);

  const half = { data: random16(12, 'float16', random.uniform), shape: [3, 4], dtype: 'float16' };
  const bits = new Uint16Array(12);
  const halfWant = sdpa.rope(half).data;
  assert.equal(sdpa.rope(half, { out: bits }).data, bits);
  assert.deepEqual(bits, halfWant);
});

test('out may overlap x in its buffer', () => {
  const x = random.tensor(3, 4);
  const want = sdpa.rope(x).data;
  for (const shift of [-3, -1, 1, 3]) {
    const buffer = new Float32Array(20);
    buffer.set(x.data, 4);
    const out = buffer.subarray(4 - shift, 16 - shift);
    sdpa.rope({ data: buffer.subarray(4, 16), shape: [3, 4] }, { out });
    assert.deepEqual(out.slice(), want);
  }
});

test('only the elements of the view are read', () => {
  const x = random.tensor(2, 4);
  const buffer = new Float32Array(12).fill(NaN);
  buffer.set(x.data, 2);
  assert.deepEqual(sdpa.rope({ data: buffer.subarray(2, 10), shape: [2, 4] }).data, sdpa.rope(x).data);
});

test('nothing to turn gives an empty result', () => {
  for (const shape of [
    [0, 2, 3, 4],
    [1, 0, 3, 4],
    [1, 2, 0, 4],
    [0, 4],
  ]) {
    const got = sdpa.rope({ data: new Float32Array(0), shape });
    assert.deepEqual([got.data.length, got.shape], [0, shape]);
  }
});

test('each property of what is given is read once', () => {
  const reads = {};
  /** @param {any} object @param {string} name */
  const counted = (object, name) =>
    Object.defineProperties(
      {},
      Object.fromEntries(
        Object.entries(object).map(([key, value]) => [
          key,
          {
            enumerable: true,
            get: () => {
              reads[`${name}.${key}`] = (reads[`${name}.${key}`] ?? 0) + 1;
              return value;
            },
          },
        ]),
      ),
    );
  const scaling = counted({ type: 'yarn', factor: 2, originalMaxPosition: 64, betaFast: 16 }, 'scaling');
  const positions = counted({ data: Int32Array.of(1, 2), shape: [2] }, 'positions');
  const options = counted({ base: 100, pairing: 'half', rotaryDim: 4, scaling, positions, inverse: false }, 'options');
  sdpa.rope(counted({ data: new Float32Array(8), shape: [2, 4], dtype: 'float32' }, 'x'), options);
  for (const [name, times] of Object.entries(reads)) assert.equal(times, 1, name);
  assert.equal(Object.keys(reads).length, 4 + 2 + 6 + 3);
});
