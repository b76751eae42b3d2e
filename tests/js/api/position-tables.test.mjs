// sinusoidal() and alibiSlopes() against their formulas.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertThrows } from '../helpers/errors.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';

const sdpa = await loadVariant();

/**
 * Column d of position p.
 * @param {number} p
 * @param {number} d
 * @param {number} dim
 * @param {any} [options]
 */
function sinusoid(p, d, dim, { order = 'interleaved', base = 10000, offset = 0 } = {}) {
  const sines = (dim + 1) >> 1;
  const isSine = order === 'interleaved' ? d % 2 === 0 : d < sines;
  const i = order === 'interleaved' ? d >> 1 : d % sines;
  const angle = (p + offset) / base ** ((2 * i) / dim);
  return isSine ? Math.sin(angle) : Math.cos(angle);
}

test('sinusoidal: every order, base, offset, and odd sizes', () => {
  for (const dim of [1, 2, 3, 7, 8, 64]) {
    for (const options of [
      undefined,
      {},
      { order: 'interleaved' },
      { order: 'sines-first' },
      { base: 100 },
      { offset: 5 },
      { offset: -5, order: 'sines-first', base: 50 },
    ]) {
      const { data, shape, dtype } = sdpa.sinusoidal(11, dim, options);
      assert.deepEqual([shape, dtype], [[11, dim], 'float32']);
      data.forEach((value, index) => {
        const want = sinusoid(Math.floor(index / dim), index % dim, dim, options);
        assert.ok(Math.abs(value - want) <= 2 ** -24, `dim ${dim}, element ${index}: ${value}, not ${want}`);
      });
    }
  }
});

test('sinusoidal: the two orders hold the same columns', () => {
  const a = sdpa.sinusoidal(3, 6).data;
  const b = sdpa.sinusoidal(3, 6, { order: 'sines-first' }).data;
  for (let row = 0; row < 3; row++) {
    assert.deepEqual(
      [0, 2, 4, 1, 3, 5].map((d) => a[row * 6 + d]),
      [...b.slice(row * 6, row * 6 + 6)],
    );
  }
});

test('sinusoidal: no row is an empty table', () => {
  assert.deepEqual(sdpa.sinusoidal(0, 4), { data: new Float32Array(0), shape: [0, 4], dtype: 'float32' });
});

test('sinusoidal names what is wrong', () => {
  assertThrows(() => sdpa.sinusoidal(-1, 4), 'option', /length must be a whole number, 0 or more/);
  assertThrows(() => sdpa.sinusoidal(1, 0), 'option', /dim must be a whole number, 1 or more/);
  assertThrows(() => sdpa.sinusoidal('1', 4), 'type', /length must be a number/);
  assertThrows(
    () => sdpa.sinusoidal(1, 4, { order: 'cosines-first' }),
    'option',
    /order must be 'interleaved' or 'sines-first'/,
  );
  assertThrows(() => sdpa.sinusoidal(1, 4, { base: 0 }), 'option', /base must be more than 0/);
  assertThrows(() => sdpa.sinusoidal(1, 4, { offset: 0.5 }), 'option', /offset must be a whole number/);
  assertThrows(() => sdpa.sinusoidal(1, 4, { start: 1 }), 'unknown-option', /sinusoidal has no option 'start'/);
  assertThrows(() => sdpa.sinusoidal(2 ** 40, 2 ** 10), 'out-of-memory', /\[1099511627776, 1024\]/);
});

test('alibiSlopes: powers of two by halves of an eighth, others with every second slope of the next power', () => {
  assert.deepEqual(
    [...sdpa.alibiSlopes(8)],
    [1, 2, 3, 4, 5, 6, 7, 8].map((h) => 2 ** -h),
  );
  assert.deepEqual(
    [...sdpa.alibiSlopes(16)],
    Array.from({ length: 16 }, (_, h) => Math.fround(2 ** (-(h + 1) / 2))),
  );
  assert.deepEqual([...sdpa.alibiSlopes(1)], [2 ** -8]);
  for (const heads of [3, 5, 6, 7, 12, 20, 33, 71]) {
    const n = 2 ** Math.floor(Math.log2(heads));
    const next = sdpa.alibiSlopes(2 * n);
    const want = [...sdpa.alibiSlopes(n), ...next.filter((_, h) => h % 2 === 0)].slice(0, heads);
    assert.deepEqual([...sdpa.alibiSlopes(heads)], want);
  }
});

test('alibiSlopes: the published slopes of 12 heads', () => {
  const published = [
    0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625, 0.7071067811865476, 0.3535533905932738,
    0.1767766952966369, 0.08838834764831845,
  ];
  assert.deepEqual([...sdpa.alibiSlopes(12)], published.map(Math.fround));
});

test('alibiSlopes names what is wrong', () => {
  assertThrows(() => sdpa.alibiSlopes(0), 'option', /numHeads must be a whole number, 1 or more/);
  assertThrows(() => sdpa.alibiSlopes(2.5), 'option', /numHeads/);
  assertThrows(() => sdpa.alibiSlopes('8'), 'type', /numHeads must be a number/);
});
