// Every option of attention() against the float64 reference, on data where leaving the option out gives another answer.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeCheck } from '../helpers/check.mjs';
import { halfToNumber, random16, randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';

const sdpa = await loadVariant();
const check = makeCheck(sdpa);

const random = randomSource(1);
const q = random.tensor(2, 4, 9, 20);
const k = random.tensor(2, 2, 9, 20);
const v = random.tensor(2, 2, 9, 12);
const longK = random.tensor(2, 2, 70, 20);
const longV = random.tensor(2, 2, 70, 12);

/** @param {number[]} shape @param {number} share */
const mask = (shape, share = 0.6) => ({
  data: Uint8Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => (random.uniform() < share ? 1 : 0)),
  shape,
});

test('without options, scores are scaled by 1/sqrt(D), not by the value size', () => {
  check(q, k, v, {}, { scale: 1 / Math.sqrt(12) });
});

test('scale: any finite number is used as given, 0 and negative too', () => {
  for (const scale of [0.5, 0, -0.3, 1e-30]) check(q, k, v, { scale }, {});
});

test('softcap is applied after the scale', () => {
  check(q, k, v, { softcap: 0.7 }, {});
  check(q, k, v, { softcap: 2, scale: 3 }, { scale: 3 });
  check(q, k, v, { softcap: 0 });
});

test('softcap comes before the bias and before the mask', () => {
  const bias = random.tensor(9, 9);
  check(q, k, v, { softcap: 0.5, bias, mask: mask([9, 9]) }, { softcap: 0.5, bias });
});

test('mask: non-zero attends, and every broadcast shape works', () => {
  for (const shape of [
    [9],
    [1],
    [9, 9],
    [9, 1],
    [1, 9],
    [4, 9, 9],
    [4, 1, 9],
    [2, 1, 9, 9],
    [2, 4, 9, 9],
    [2, 1, 1, 9],
    [1, 4, 1, 1],
  ]) {
    const given = mask(shape);
    check(q, k, v, { mask: given }, given.data.every((x) => x) ? undefined : {});
  }
  check(q, k, v, { mask: { data: new Uint8Array([255]), shape: [] } });
});

test('mask: any non-zero byte attends', () => {
  const bits = mask([9, 9]);
  const bytes = { shape: bits.shape, data: bits.data.map((x, i) => (x ? 1 + (i % 255) : 0)) };
  const got = sdpa.attention(q, k, v, { mask: bytes });
  assert.deepEqual(got, sdpa.attention(q, k, v, { mask: bits }));
});

test('mask: an array of booleans is the same as bytes', () => {
  const bytes = mask([9, 9]);
  const booleans = { shape: [9, 9], data: Array.from(bytes.data, Boolean) };
  assert.deepEqual(sdpa.attention(q, k, v, { mask: booleans }), sdpa.attention(q, k, v, { mask: bytes }));
});

test('mask: a row that may attend to nothing is zeros with lse -Infinity', () => {
  const given = { shape: [9, 9], data: new Uint8Array(81).fill(1).fill(0, 9, 18) };
  const { out, lse } = check(q, k, v, { mask: given }, {});
  assert.ok(out.data.subarray(12, 24).every((x) => x === 0));
  assert.equal(lse.data[1], -Infinity);
});

test('bias is added, in every broadcast shape', () => {
  for (const shape of [[9], [9, 9], [9, 1], [4, 1, 9], [2, 4, 9, 9], [2, 1, 1, 9]]) {
    check(q, k, v, { bias: random.tensor(...shape) }, shape[shape.length - 1] === 1 ? undefined : {});
  }
});

test('bias: -Infinity equals a masked key, large finite negatives do not', () => {
  const bias = random.tensor(9, 9);
  bias.data.fill(-Infinity, 0, 9);
  bias.data[20] = -Infinity;
  bias.data.fill(-3e38, 27, 36);
  check(q, k, v, { bias }, {});
  const flat = sdpa.attention(q, k, v, { bias });
  assert.ok(flat.out.data.subarray(0, 12).every((x) => x === 0));
  assert.ok(flat.out.data.subarray(36, 48).some((x) => x !== 0));
});

test('bias: +Infinity or NaN makes its row NaN and no other', () => {
  for (const poison of [Infinity, NaN]) {
    const bias = random.tensor(9, 9);
    bias.data[3 * 9 + 4] = poison;
    const { out } = sdpa.attention(q, k, v, { bias });
    for (let row = 0; row < 2 * 4 * 9; row++) {
      const isNaN_ = out.data.subarray(row * 12, row * 12 + 12).every(Number.isNaN);
      assert.equal(isNaN_, row % 9 === 3, `row ${row}`);
    }
  }
});

test('bias in 16 bits is widened', () => {
  for (const dtype of /** @type {const} */ (['float16', 'bfloat16'])) {
    check(q, k, v, { bias: { data: random16(81, dtype, random.uniform), shape: [9, 9], dtype } }, {});
  }
});

test('causal: query i sees keys up to its own position', () => {
  check(q, k, v, { causal: true }, {});
  assert.deepEqual(sdpa.attention(q, k, v, { causal: false }), sdpa.attention(q, k, v));
});

test('align: lower-right and upper-left place query 0 differently', () => {
  check(q, longK, longV, { causal: true, align: 'lower-right' }, { causal: true, align: 'upper-left' });
  check(q, longK, longV, { causal: true, align: 'upper-left' }, { causal: true, align: 'lower-right' });
  check(
    random.tensor(2, 4, 70, 20),
    k,
    v,
    { causal: true, align: 'lower-right' },
    { causal: true, align: 'upper-left' },
  );
});

test('queryOffset: a number, or one per batch row, negative too', () => {
  check(q, longK, longV, { causal: true, queryOffset: 3 }, { causal: true, queryOffset: 0 });
  check(q, longK, longV, { causal: true, queryOffset: -4 }, { causal: true, queryOffset: 0 });
  check(q, longK, longV, { causal: true, queryOffset: new Int32Array([5, 40]) }, { causal: true, queryOffset: 5 });
});

test('window: counts exclude the own position, Infinity is unlimited', () => {
  check(q, k, v, { window: [2, 0] }, { window: [3, 0] });
  check(q, k, v, { window: [0, 1] }, { window: [1, 1] });
  check(q, k, v, { window: [Infinity, 2] }, {});
  check(q, k, v, { window: [1, Infinity] }, {});
  check(q, k, v, { window: [Infinity, Infinity] });
  check(q, k, v, { window: [2 ** 40, 2 ** 40] });
  check(q, longK, longV, { window: [7, 3], align: 'lower-right' }, { window: [7, 3], align: 'upper-left' });
  check(q, longK, longV, { window: [7, 3], causal: true, queryOffset: 20 }, { window: [7, 3], queryOffset: 20 });
});

test('an unlimited window needs no alignment', () => {
  check(q, longK, longV, { window: [Infinity, Infinity] });
});

test('kvLengths: keys behind a length do not take part, and lower-right counts from the length', () => {
  const kvLengths = new Int32Array([5, 33]);
  check(q, longK, longV, { kvLengths }, {});
  const options = { kvLengths, causal: true, align: 'lower-right' };
  check(q, longK, longV, options, { ...options, align: undefined, queryOffset: 61 });
  check(q, longK, longV, { kvLengths: new Int32Array([0, 70]) }, {});
});

test('queryLengths: rows behind a length are zeros', () => {
  const { out, lse } = check(q, k, v, { queryLengths: new Int32Array([9, 4]) }, {});
  assert.ok(out.data.subarray((4 * 9 + 4) * 12, (4 * 9 + 9) * 12).every((x) => x === 0));
  assert.equal(lse.data[4 * 9 + 4], -Infinity);
});

test('everything at once composes', () => {
  const options = {
    scale: 0.4,
    softcap: 1.5,
    mask: mask([2, 1, 9, 70], 0.8),
    bias: random.tensor(4, 9, 70),
    causal: true,
    window: [30, 5],
    align: 'lower-right',
    kvLengths: new Int32Array([60, 41]),
    queryLengths: new Int32Array([8, 9]),
  };
  for (const name of Object.keys(options)) {
    if (name === 'window' || name === 'align') continue;
    check(q, longK, longV, options, { ...options, [name]: undefined });
  }
});

test('returnLse: lse has the rank of the query, and is absent unless asked for', () => {
  assert.deepEqual(Object.keys(sdpa.attention(q, k, v)), ['out']);
  assert.deepEqual(Object.keys(sdpa.attention(q, k, v, { returnLse: false })), ['out']);
  assert.deepEqual(sdpa.attention(q, k, v, { returnLse: true }).lse.shape, [2, 4, 9]);
  const one = random.tensor(5, 8);
  assert.deepEqual(sdpa.attention(one, one, one, { returnLse: true }).lse.shape, [5]);
  const heads = random.tensor(3, 5, 8);
  assert.deepEqual(sdpa.attention(heads, heads, heads, { returnLse: true }).lse.shape, [3, 5]);
});

test('scores: the matrix has the rank of the query, and is absent unless asked for', () => {
  assert.deepEqual(sdpa.attention(q, longK, longV, { scores: 'weights' }).scores.shape, [2, 4, 9, 70]);
  const heads = random.tensor(3, 5, 8);
  assert.deepEqual(sdpa.attention(heads, heads, heads, { scores: 'scaled' }).scores.shape, [3, 5, 5]);
  const one = random.tensor(5, 8);
  assert.deepEqual(sdpa.attention(one, one, one, { scores: 'biased' }).scores.shape, [5, 5]);
});

test('layout: (B, L, H, D) gives the same numbers in that order', () => {
  const shapes = [
    [
      [2, 9, 4, 20],
      [2, 33, 2, 20],
      [2, 33, 2, 12],
    ],
    [
      [9, 4, 20],
      [33, 2, 20],
      [33, 2, 12],
    ],
    [
      [9, 20],
      [33, 20],
      [33, 12],
    ],
  ];
  for (const [a, b, c] of shapes) {
    const options = { layout: 'blhd', causal: true, align: 'lower-right', mask: mask([9, 33]) };
    const different = a.length > 2 && { ...options, align: 'upper-left' };
    check(random.tensor(...a), random.tensor(...b), random.tensor(...c), options, different || undefined);
  }
});

test('rank 3 has no batch and rank 2 one head', () => {
  const options = { causal: true };
  for (const [lead, kvLead] of [
    [[], []],
    [[4], [2]],
    [
      [1, 4],
      [1, 2],
    ],
  ]) {
    check(random.tensor(...lead, 9, 20), random.tensor(...kvLead, 9, 20), random.tensor(...kvLead, 9, 12), options, {});
  }
});

test('grouped heads: query head h uses head floor(h / (Hq / Hkv)) of key and value', () => {
  for (const heads of [1, 2, 3, 6]) {
    const keys = random.tensor(2, heads, 17, 8);
    check(random.tensor(2, 6, 5, 8), keys, random.tensor(2, heads, 17, 4), {});
  }
});

test('float16 and bfloat16 inputs are widened, in any mixture', () => {
  /** @param {any} tensor @param {'float16' | 'bfloat16'} dtype */
  const small = ({ shape, data }, dtype) => ({ shape, dtype, data: random16(data.length, dtype, random.uniform) });
  check(small(q, 'float16'), small(longK, 'float16'), small(longV, 'float16'), {});
  check(small(q, 'bfloat16'), small(longK, 'bfloat16'), small(longV, 'bfloat16'), {});
  check(q, small(longK, 'bfloat16'), small(longV, 'float16'), {});
});

test('every finite float16 is read as the number that it stands for', () => {
  const bits = Uint16Array.from({ length: 65536 }, (_, i) => i).filter((x) => (x & 0x7c00) !== 0x7c00);
  const value = { data: bits, shape: [1, bits.length], dtype: 'float16' };
  const one = { data: new Float32Array([1]), shape: [1, 1] };
  const { out } = sdpa.attention(one, one, value);
  assert.ok(out.data.every((x, i) => x === halfToNumber(bits[i])));
});

test('out receives the result', () => {
  const array = new Float32Array(2 * 4 * 9 * 12);
  const want = sdpa.attention(q, k, v);
  const got = sdpa.attention(q, k, v, { out: array });
  assert.equal(got.out.data, array);
  assert.deepEqual(got.out, want.out);
});

test('an option that is undefined is one that is not given', () => {
  const nothing = {
    scale: undefined,
    softcap: undefined,
    mask: undefined,
    bias: undefined,
    causal: undefined,
    window: undefined,
    chunk: undefined,
    globalKeys: undefined,
    alibiSlopes: undefined,
    align: undefined,
    queryOffset: undefined,
    queryLengths: undefined,
    kvLengths: undefined,
    segmentIds: undefined,
    cuSeqlens: undefined,
    blockMask: undefined,
    sinks: undefined,
    smoothSoftmax: undefined,
    dropout: undefined,
    returnLse: undefined,
    scores: undefined,
    layout: undefined,
    out: undefined,
  };
  assert.deepEqual(sdpa.attention(q, k, v, nothing), sdpa.attention(q, k, v));
});

test('empty inputs: no query, no batch and no key are results, not errors', () => {
  const none = sdpa.attention(random.tensor(2, 4, 0, 20), k, v, { returnLse: true, scores: 'weights' });
  assert.deepEqual(
    [none.out.shape, none.lse.shape, none.scores.shape],
    [
      [2, 4, 0, 12],
      [2, 4, 0],
      [2, 4, 0, 9],
    ],
  );
  assert.equal(none.out.data.length, 0);
  const noBatch = sdpa.attention(random.tensor(0, 4, 9, 20), random.tensor(0, 2, 9, 20), random.tensor(0, 2, 9, 12));
  assert.deepEqual(noBatch.out.shape, [0, 4, 9, 12]);
  const noKey = sdpa.attention(q, random.tensor(2, 2, 0, 20), random.tensor(2, 2, 0, 12), {
    returnLse: true,
    scores: 'biased',
  });
  assert.ok(noKey.out.data.every((x) => x === 0) && noKey.out.data.length === 2 * 4 * 9 * 12);
  assert.ok(noKey.lse.data.every((x) => x === -Infinity));
  assert.deepEqual(noKey.scores.shape, [2, 4, 9, 0]);
  const filled = new Float32Array(2 * 4 * 9 * 12).fill(7);
  sdpa.attention(q, random.tensor(2, 2, 0, 20), random.tensor(2, 2, 0, 12), { out: filled });
  assert.ok(filled.every((x) => x === 0));
});

test('excluded keys are never read: NaN behind lengths, causal, window and mask cannot reach the result', () => {
  const poisoned = (/** @type {any} */ t, /** @type {(j: number) => boolean} */ hidden) => {
    const data = t.data.slice();
    const [B, H, S, D] = t.shape;
    for (let r = 0; r < B * H * S; r++) if (hidden(r % S)) data.fill(NaN, r * D, (r + 1) * D);
    return { data, shape: t.shape };
  };
  const from40 = (/** @type {number} */ j) => j >= 40;
  const cases = [
    { kvLengths: new Int32Array([40, 40]) },
    { causal: true, queryOffset: 31 },
    { window: [30, 0], queryOffset: 31 },
    { mask: { data: Uint8Array.from({ length: 70 }, (_, j) => Number(j < 40)), shape: [70] } },
  ];
  for (const options of cases) {
    const clean = sdpa.attention(q, longK, longV, options);
    const dirty = sdpa.attention(q, poisoned(longK, from40), poisoned(longV, from40), options);
    assert.deepEqual(dirty, clean, Object.keys(options).join());
  }
});

test('rows are the same bits alone and together', () => {
  const all = sdpa.attention(q, longK, longV);
  for (let b = 0; b < 2; b++) {
    for (let i = 0; i < 9; i++) {
      const row = { data: new Float32Array(4 * 20), shape: [1, 4, 1, 20] };
      for (let h = 0; h < 4; h++)
        row.data.set(q.data.subarray(((b * 4 + h) * 9 + i) * 20, ((b * 4 + h) * 9 + i + 1) * 20), h * 20);
      const half = (/** @type {any} */ t) => ({
        data: t.data.subarray((b * t.data.length) / 2, ((b + 1) * t.data.length) / 2),
        shape: [1, ...t.shape.slice(1)],
      });
      const { out } = sdpa.attention(row, half(longK), half(longV));
      for (let h = 0; h < 4; h++) {
        const at = ((b * 4 + h) * 9 + i) * 12;
        assert.deepEqual(out.data.subarray(h * 12, h * 12 + 12), all.out.data.subarray(at, at + 12));
      }
    }
  }
});
