// windowAttention2d() against its definition, pixel by pixel.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { largestError, random16, randomSource } from '../helpers/reference.mjs';
import { loadVariant, resident } from '../helpers/sdpa.mjs';
import { assertSameBits } from '../helpers/workers.mjs';
import { windowReference } from './window-attention-reference.mjs';

const sdpa = await loadVariant({ threads: 2 });
const random = randomSource(77);
const tolerance = 2e-6;

/**
 * @param {{ height: number, width: number, layout?: string, batch?: number, heads?: number, kvHeads?: number, dim?: number, dimV?: number }} sizes
 */
function inputs({ height, width, layout, batch = 1, heads = 2, kvHeads = heads, dim = 8, dimV = dim }) {
  const tensor = (/** @type {number} */ h, /** @type {number} */ d) =>
    layout === 'blhd' ? random.tensor(batch, height * width, h, d) : random.tensor(batch, h, height * width, d);
  return { query: tensor(heads, dim), key: tensor(kvHeads, dim), value: tensor(kvHeads, dimV) };
}

/** @param {number | number[]} windowSize @param {number} heads */
function tableFor(windowSize, heads) {
  const [rows, columns] = typeof windowSize === 'number' ? [windowSize, windowSize] : windowSize;
  return random.tensor((2 * rows - 1) * (2 * columns - 1), heads);
}

/**
 * @param {any} given query, key, value
 * @param {any} options
 * @param {any} [without] options that must give something else
 */
function check({ query, key, value }, options, without) {
  const want = windowReference(query, key, value, options);
  const got = sdpa.windowAttention2d(query, key, value, { ...options, returnLse: true });
  assert.deepEqual(got.out.shape, want.shape);
  assert.equal(got.out.dtype, 'float32');
  const what = JSON.stringify({ ...options, relativeBias: undefined });
  for (const name of /** @type {const} */ (['out', 'lse'])) {
    const error = largestError(/** @type {any} */ (got[name]).data, want[name]);
    assert.ok(error <= tolerance, `${what}: ${name} differs by ${error}`);
  }
  if (without) {
    const other = windowReference(query, key, value, without);
    assert.ok(largestError(other.out, want.out) > 1e-3, `${what}: this data cannot tell whether the option is used`);
  }
  return got;
}

/** Images, windows and shifts. @type {any[]} */
const images = [
  { height: 8, width: 8, windowSize: 4 },
  { height: 8, width: 12, windowSize: 4, shift: 2 },
  { height: 8, width: 12, windowSize: 4, shift: 1 },
  { height: 8, width: 12, windowSize: 4, shift: 3 },
  { height: 14, width: 14, windowSize: 7, shift: 3 },
  // Padded along one axis or both, with and without a shift, the padding narrower and wider than the shift.
  { height: 10, width: 9, windowSize: 4 },
  { height: 10, width: 9, windowSize: 4, shift: 2 },
  { height: 13, width: 5, windowSize: 4, shift: 1 },
  { height: 8, width: 11, windowSize: 4, shift: 3 },
  // Along an axis that one window covers there is no shift.
  { height: 3, width: 4, windowSize: 4, shift: 2 },
  { height: 2, width: 3, windowSize: 7, shift: 3 },
  { height: 4, width: 9, windowSize: 4, shift: 2 },
  { height: 9, width: 3, windowSize: 4, shift: 2 },
  { height: 1, width: 1, windowSize: 1 },
  { height: 3, width: 5, windowSize: 1 },
  { height: 1, width: 13, windowSize: 5, shift: 2 },
  // Other sizes and shifts by axis.
  { height: 7, width: 12, windowSize: [3, 5], shift: [1, 2] },
  { height: 8, width: 10, windowSize: [8, 2], shift: [4, 1] },
  { height: 6, width: 6, windowSize: [2, 6], shift: [0, 3] },
];

describe('windowAttention2d', () => {
  for (const image of images) {
    test(`is attention within the windows: ${JSON.stringify(image)}`, () => {
      for (const layout of /** @type {const} */ (['bhld', 'blhd'])) {
        const options = { ...image, layout };
        const given = inputs({ ...options, batch: 2, heads: 4, kvHeads: 2, dim: 12, dimV: 5 });
        check(given, options);
        const relativeBias = tableFor(image.windowSize, 4);
        const { height, width, windowSize } = image;
        check(given, { ...options, relativeBias }, height * width > 1 && windowSize !== 1 ? options : undefined);
        const logitScale = [0.5, 2, 1, -1];
        check(given, { ...options, relativeBias, similarity: 'cosine', logitScale });
      }
    });
  }

  test('each option matters', () => {
    const plain = { height: 9, width: 10, windowSize: 4 };
    const given = inputs({ ...plain, heads: 2 });
    check(given, { ...plain, shift: 2 }, plain);
    check(given, { ...plain, shift: [2, 0] }, { ...plain, shift: 2 });
    check(given, { ...plain, windowSize: [4, 3] }, plain);
    check(given, { ...plain, scale: 0.9 }, plain);
    check(given, { ...plain, softcap: 0.7 }, plain);
    const cosine = { ...plain, similarity: 'cosine', logitScale: [1, 3] };
    check(given, cosine, plain);
    check(given, { ...cosine, logitScale: [3, 1] }, cosine);
    check(given, { ...cosine, softcap: 0.7 }, cosine);
    check(given, { ...plain, height: 10, width: 9 }, plain);
  });

  test('the table of Swin-T: 56 x 56 tokens, windows of 7 x 7, 3 heads of 32, both halves of a block', () => {
    const image = { height: 56, width: 56, windowSize: 7, layout: /** @type {const} */ ('blhd') };
    const given = inputs({ ...image, heads: 3, dim: 32 });
    const relativeBias = tableFor(7, 3);
    check(given, { ...image, relativeBias });
    check(given, { ...image, relativeBias, shift: 3 });
  });

  test('more than a hundred windows, and windows of a thousand tokens', () => {
    const image = { height: 46, width: 46, windowSize: 4, shift: 2 };
    check(inputs({ ...image, batch: 2, heads: 2, dim: 24 }), image);
    const large = { height: 33, width: 40, windowSize: 32, shift: 8 };
    check(inputs({ ...large, heads: 1, dim: 70 }), large);
  });

  test('the logit scale is clamped at ln 100, and taken in any shape of as many numbers', () => {
    const image = { height: 6, width: 6, windowSize: 3, shift: 1, similarity: /** @type {const} */ ('cosine') };
    const { query, key, value } = inputs({ ...image, heads: 3 });
    const at = (/** @type {any} */ logitScale) => sdpa.windowAttention2d(query, key, value, { ...image, logitScale });
    const most = Math.log(100);
    assertSameBits(at([most, 50, 1]), at([50, most, 1]));
    const published = { data: Float32Array.of(50, 2, 1), shape: [3, 1, 1] };
    assertSameBits(at(published), at(published.data));
    assert.notDeepEqual(at([most - 0.1, 2, 1]).out.data, at([most, 2, 1]).out.data);
  });

  test('scores up to 100: no more than twice the error of a plain computation in float32', () => {
    const image = { height: 20, width: 24, windowSize: 8, shift: 3, similarity: 'cosine', logitScale: [9, Infinity] };
    const { query, key, value } = inputs({ ...image, heads: 2, dim: 32 });
    const options = { ...image, relativeBias: tableFor(8, 2) };
    const want = windowReference(query, key, value, options).out;
    const plain = largestError(windowReference(query, key, value, options, Math.fround).out, want);
    const got = sdpa.windowAttention2d(query, key, value, /** @type {any} */ (options)).out.data;
    const error = largestError(got, want);
    assert.ok(error <= 2 * plain, `out differs by ${error}, plainly computed by ${plain}`);
  });

  test('cosines: the length of a row does not matter, and a row of zeros is at right angles to all', () => {
    const image = { height: 5, width: 5, windowSize: 3, similarity: /** @type {const} */ ('cosine'), logitScale: [4] };
    const { query, key, value } = inputs({ ...image, heads: 1 });
    const longer = { data: query.data.map((x) => x * 2 ** 90), shape: query.shape };
    const shorter = { data: key.data.map((x) => x * 2 ** -60), shape: key.shape };
    assertSameBits(sdpa.windowAttention2d(longer, key, value, image), sdpa.windowAttention2d(query, key, value, image));
    // Below 1e-12 a length counts.
    check({ query, key: shorter, value }, image);
    query.data.fill(0, 0, 16);
    key.data.fill(0, 24, 40);
    check({ query, key, value }, image);
  });

  test('tokens of other windows, and of another region of a window, cannot reach a token', () => {
    const image = { height: 9, width: 9, windowSize: 4, shift: 2 };
    for (const layout of /** @type {const} */ (['bhld', 'blhd'])) {
      const { query, key, value } = inputs({ ...image, layout, heads: 1 });
      const clean = sdpa.windowAttention2d(query, key, value, { ...image, layout }).out.data;
      // The first token: its window is the first 2 x 2 tokens, and those that come round from the other end are others.
      for (const tensor of [query, key, value]) {
        for (let i = 0; i < 81; i++) if (i % 9 > 1 || i > 18) tensor.data.fill(NaN, i * 8, i * 8 + 8);
      }
      const { data } = sdpa.windowAttention2d(query, key, value, { ...image, layout }).out;
      for (const i of [0, 1, 9, 10])
        assert.deepEqual(data.subarray(i * 8, i * 8 + 8), clean.subarray(i * 8, i * 8 + 8));
      assert.ok(data.subarray(16, 72).every(Number.isNaN));
    }
  });

  test('a query with NaN makes its own row NaN alone', () => {
    const image = { height: 8, width: 8, windowSize: 4, shift: 1, similarity: /** @type {const} */ ('cosine') };
    const { query, key, value } = inputs({ ...image, heads: 1 });
    const options = { ...image, logitScale: [1] };
    const clean = sdpa.windowAttention2d(query, key, value, options).out.data;
    query.data[5 * 8 + 2] = NaN;
    const { data } = sdpa.windowAttention2d(query, key, value, options).out;
    data.forEach((x, at) => assert.ok(at >> 3 === 5 ? Number.isNaN(x) : x === clean[at]));
  });

  test('-Infinity in the table hides keys', () => {
    const image = { height: 6, width: 6, windowSize: 3 };
    const given = inputs({ ...image, heads: 1 });
    const relativeBias = tableFor(3, 1);
    for (const at of [0, 7, 13]) relativeBias.data[at] = -Infinity;
    check(given, { ...image, relativeBias }, image);
  });

  test('takes ranks 2 and 3, 16-bit inputs and tables, tensors in wasm memory', () => {
    const image = { height: 7, width: 6, windowSize: 4, shift: 2 };
    const { query, key, value } = inputs({ ...image, heads: 2 });
    const all = sdpa.windowAttention2d(query, key, value, { ...image, returnLse: true });
    const three = [query, key, value].map(({ data, shape }) => ({ data, shape: shape.slice(1) }));
    const got = sdpa.windowAttention2d(three[0], three[1], three[2], { ...image, returnLse: true });
    assert.deepEqual(
      [got.out.shape, got.lse.shape],
      [
        [2, 42, 8],
        [2, 42],
      ],
    );
    assert.deepEqual([got.out.data, got.lse.data], [all.out.data, all.lse.data]);
    const two = three.map(({ data }) => ({ data: data.subarray(42 * 8), shape: [42, 8] }));
    const second = sdpa.windowAttention2d(two[0], two[1], two[2], image).out;
    assert.deepEqual(second.shape, [42, 8]);
    assert.deepEqual(second.data, all.out.data.subarray(42 * 8));

    for (const dtype of /** @type {const} */ (['float16', 'bfloat16'])) {
      const half = (/** @type {number[]} */ ...shape) => {
        const count = shape.reduce((a, b) => a * b);
        return { data: random16(count, dtype, random.uniform), shape, dtype };
      };
      const given = { query: half(1, 2, 42, 8), key: half(1, 2, 42, 8), value: half(1, 2, 42, 8) };
      const relativeBias = half(49, 2);
      check(given, { ...image, relativeBias });
      check(given, { ...image, relativeBias, similarity: 'cosine', logitScale: [1, 2] });
      check({ ...given, value }, { ...image, windowSize: 7, relativeBias: half(169, 2) });
    }

    const there = [query, key, value].map((tensor) => resident(sdpa, tensor));
    const out = sdpa.tensor(query.shape);
    for (const options of [image, { ...image, windowSize: 7 }]) {
      const want = sdpa.windowAttention2d(query, key, value, options).out.data;
      const here = sdpa.windowAttention2d(there[0], there[1], there[2], { ...options, out });
      assert.equal(here.out, out);
      assert.deepEqual(out.data, want);
      const array = new Float32Array(want.length);
      assert.equal(sdpa.windowAttention2d(there[0], key, there[2], { ...options, out: array }).out.data, array);
      assert.deepEqual(array, want);
    }
    for (const tensor of [...there, out]) tensor.dispose();
  });

  test('an empty batch gives an empty result', () => {
    const none = { data: new Float32Array(0), shape: [0, 2, 12, 8] };
    const { out, lse } = sdpa.windowAttention2d(none, none, none, {
      height: 3,
      width: 4,
      windowSize: 2,
      returnLse: true,
    });
    assert.deepEqual(
      [out.shape, lse.shape],
      [
        [0, 2, 12, 8],
        [0, 2, 12],
      ],
    );
  });

  test('gives back all memory, and holds less than a copy of a large image', () => {
    const image = { height: 128, width: 128, windowSize: 8, shift: 4 };
    const tensors = [0, 1, 2, 3].map(() => sdpa.tensor([1, 2, 128 * 128, 64]));
    const before = sdpa.memory().held;
    const [query, key, value, out] = tensors;
    sdpa.windowAttention2d(query, key, value, { ...image, out });
    assert.equal(sdpa.memory().held, before);
    const { peak } = sdpa.memory();
    assert.ok(peak - before < 2 ** 21, `${peak - before} bytes beside the tensors`);
    for (const tensor of tensors) tensor.dispose();
  });
});

describe('windowAttention2dAsync', () => {
  test('gives the same bits', async () => {
    for (const image of images) {
      for (const layout of /** @type {const} */ (['bhld', 'blhd'])) {
        const { query, key, value } = inputs({ ...image, layout, batch: 2, heads: 4, kvHeads: 2 });
        const relativeBias = tableFor(image.windowSize, 4);
        for (const options of [
          { ...image, layout, returnLse: true },
          { ...image, layout, relativeBias, similarity: 'cosine', logitScale: [1, 2, 3, 4] },
        ]) {
          const want = sdpa.windowAttention2d(query, key, value, options);
          assertSameBits(await sdpa.windowAttention2dAsync(query, key, value, options), want, JSON.stringify(image));
        }
      }
    }
  });

  test('copies its inputs, fills out, hears of progress and ends with its signal', async () => {
    const image = { height: 30, width: 31, windowSize: 7, shift: 3 };
    const { query, key, value } = inputs({ ...image, batch: 2, heads: 4, dim: 32 });
    const want = sdpa.windowAttention2d(query, key, value, image).out.data;
    /** @type {any[]} */
    const heard = [];
    const out = sdpa.tensor(query.shape);
    const promise = sdpa.windowAttention2dAsync(query, key, value, {
      ...image,
      out,
      onProgress: (progress) => heard.push(progress),
    });
    for (const { data } of [query, key, value]) data.fill(NaN);
    assert.equal((await promise).out, out);
    assert.deepEqual(out.data, want);
    const total = 2 * 4 * 30 * 31;
    assert.deepEqual(heard.at(-1), { done: total, total });
    heard.forEach(({ done }, n) => assert.ok(n === 0 || done > heard[n - 1].done));

    const reason = new Error('enough');
    const controller = new AbortController();
    const aborted = sdpa.windowAttention2dAsync(query, key, value, { ...image, signal: controller.signal });
    controller.abort(reason);
    await assert.rejects(aborted, reason);
    await assert.rejects(
      sdpa.windowAttention2dAsync(query, key, value, { ...image, signal: controller.signal }),
      reason,
    );
    const array = new Float32Array(want.length);
    const again = await sdpa.windowAttention2dAsync(query, key, value, { ...image, out: array });
    assert.equal(again.out.data, array);
    out.dispose();
  });
});
