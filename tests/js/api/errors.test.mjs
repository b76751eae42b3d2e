// Bad input: each gets an error with a stable code that names the argument and shows the values, and leaves the instance as it was.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import vm from 'node:vm';
import { AttentionError } from 'sdpa';
import { assertThrows } from '../helpers/errors.mjs';
import { randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';

const sdpa = await loadVariant();
const random = randomSource(2);
const q = random.tensor(1, 2, 5, 8);
const k = random.tensor(1, 2, 5, 8);
const v = random.tensor(1, 2, 5, 8);
const before = sdpa.attention(q, k, v);
const { held } = sdpa.memory();

afterEach(() => {
  assert.deepEqual(sdpa.attention(q, k, v), before, 'the instance computes as before');
  assert.equal(sdpa.memory().held, held, 'nothing is left allocated');
});

/** @param {unknown} query @param {unknown} key @param {unknown} value @param {unknown} [options] */
const call = (query, key, value, options) => () => /** @type {any} */ (sdpa).attention(query, key, value, options);
/** @param {unknown} options */
const withOptions = (options) => call(q, k, v, options);
/** @param {number[]} shape */
const t = (...shape) => random.tensor(...shape);

test('shapes that do not fit one another are named with their numbers', () => {
  const cases = /** @type {[any, any, any, RegExp][]} */ ([
    [t(1, 2, 5, 64), t(1, 2, 5, 48), v, /^key head size is 48 but query head size is 64$/],
    [q, t(2, 2, 5, 8), v, /key batch is 2 but query batch is 1/],
    [q, k, t(2, 2, 5, 8), /value batch is 2 but query batch is 1/],
    [q, k, t(1, 1, 5, 8), /value number of heads is 1 but key number of heads is 2/],
    [q, k, t(1, 2, 6, 8), /value length is 6 but key length is 5/],
    [t(1, 5, 5, 8), k, v, /query has 5 heads, which is not a multiple of the 2 heads/],
    [t(1, 0, 5, 8), t(1, 0, 5, 8), t(1, 0, 5, 8), /query has 0 heads/],
    [q, t(2, 5, 8), v, /key dimensions are 3 but query dimensions are 4/],
    [q, k, t(5, 8), /value dimensions are 2 but query dimensions are 4/],
    [t(8), t(8), t(8), /query must have 2, 3 or 4 dimensions, got 1: \[8\]/],
    [t(1, 1, 1, 2, 8), k, v, /query must have 2, 3 or 4 dimensions, got 5/],
    [t(1, 2, 5, 0), t(1, 2, 5, 0), v, /query head size must be 1 or more, got shape \[1, 2, 5, 0\]/],
    [q, k, t(1, 2, 5, 0), /value head size must be 1 or more, got shape \[1, 2, 5, 0\]/],
  ]);
  for (const [a, b, c, message] of cases) assertThrows(call(a, b, c), 'shape', message);
});

test('with layout blhd the same rules hold for the other order', () => {
  assertThrows(call(t(1, 5, 3, 8), t(1, 5, 2, 8), t(1, 5, 2, 8), { layout: 'blhd' }), 'shape', /3 heads/);
});

test('data whose length is not the product of the shape is refused', () => {
  const short = { data: new Float32Array(79), shape: [1, 2, 5, 8] };
  assertThrows(call(short, k, v), 'shape', /query data has 79 elements but its shape \[1, 2, 5, 8\] needs 80/);
  assertThrows(call(q, short, v), 'shape', /key data has 79/);
  assertThrows(call(q, k, short), 'shape', /value data has 79/);
  const mask = { data: new Uint8Array(24), shape: [5, 5] };
  assertThrows(withOptions({ mask }), 'shape', /mask data has 24 elements but its shape \[5, 5\] needs 25/);
});

test('sizes are multiplied without wrapping', () => {
  const huge = { data: new Float32Array(16), shape: [1, 1, 65536, 65536] };
  assertThrows(
    call(huge, huge, huge),
    'shape',
    /has 16 elements but its shape \[1, 1, 65536, 65536\] needs 4294967296/,
  );
  const beyond = { data: new Float32Array(16), shape: [2 ** 20, 2 ** 20, 2 ** 20, 4] };
  assertThrows(call(beyond, beyond, beyond), 'shape', /more than 2\^53 elements/);
});

test('shapes are arrays of whole numbers', () => {
  const data = new Float32Array(80);
  for (const shape of [
    [1, 2, 5, 8.5],
    [1, -2, 5, 8],
    [NaN, 2, 5, 8],
    [1, 2, 5, Infinity],
  ]) {
    assertThrows(call({ data, shape }, k, v), 'shape', /query shape\[\d\] must be a whole number/);
  }
  for (const shape of [[1, '2', 5, 8], [1, null, 5, 8], [1, 2n, 5, 8], undefined, 80, '80', null]) {
    assertThrows(call({ data, shape }, k, v), 'type', /query (needs a shape|shape\[1\] must be a number)/);
  }
});

test('a stray array in the place of a shape is refused at once', () => {
  const data = new Float32Array(80);
  assertThrows(call({ data, shape: data }, k, v), 'shape', /query shape has 80 dimensions/);
  assertThrows(call({ data, shape: { length: 2 ** 40 } }, k, v), 'shape', /query shape has 1099511627776 dimensions/);
});

test('tensors that are none are refused by what they are', () => {
  const shape = [1, 2, 5, 8];
  for (const [bad, message] of /** @type {[unknown, RegExp][]} */ ([
    [undefined, /query must be a tensor .* got undefined/],
    [null, /got null/],
    [5, /got 5/],
    ['x', /got "x"/],
    [new Float32Array(80), /query must be a tensor \{ data, shape \}, got a Float32Array/],
    [[1, 2], /got \[1, 2\]/],
    [{ data: undefined, shape }, /query data must be a typed array, got undefined/],
    [{ data: () => new Float32Array(80), shape }, /got a function/],
    [{ data: new ArrayBuffer(320), shape }, /got a ArrayBuffer/],
    [
      { data: new Float64Array(80), shape },
      /query data must be a Float32Array, Float16Array or Uint16Array, got a Float64Array/,
    ],
    [{ data: new Int32Array(80), shape }, /got a Int32Array/],
    [{ data: new BigInt64Array(80), shape }, /got a BigInt64Array/],
    [{ data: new Array(80).fill(0), shape }, /got an array/],
    [{ data: new Uint16Array(80), shape }, /query is a Uint16Array and needs dtype 'float16' or 'bfloat16', got none/],
    [{ data: new Uint16Array(80), shape, dtype: 'uint16' }, /got "uint16"/],
    [
      { data: new Float32Array(80), shape, dtype: 'float16' },
      /query has dtype "float16" but its data is a Float32Array/,
    ],
    [{ data: new Float32Array(80), dims: shape, type: 'float64' }, /query has dtype "float64"/],
  ])) {
    assertThrows(call(bad, k, v), 'type', message);
  }
});

test('a transferred buffer is named as such', () => {
  const gone = { data: new Float32Array(80), shape: [1, 2, 5, 8] };
  structuredClone(gone.data.buffer, { transfer: [gone.data.buffer] });
  assertThrows(call(q, gone, v), 'type', /key data is empty because its buffer is detached/);
});

test('a mask is boolean and a bias is float, and each error says where the other goes', () => {
  const shape = [5, 5];
  for (const data of [new Float32Array(25), new Int32Array(25), new Uint16Array(25), new Int8Array(25)]) {
    assertThrows(withOptions({ mask: { data, shape } }), 'type', /mask must be boolean.*non-zero = attend.*'bias'/);
  }
  assertThrows(
    withOptions({ mask: { data: [1, 0], shape: [1, 2] } }),
    'type',
    /mask data\[0\] must be true or false, got 1/,
  );
  assertThrows(withOptions({ mask: { data: new Uint8Array(25), shape, dtype: 'float32' } }), 'type', /dtype "float32"/);
  assertThrows(withOptions({ mask: new Uint8Array(25) }), 'type', /mask must be a tensor \{ data, shape \}/);
  assertThrows(withOptions({ mask: true }), 'type', /mask must be a tensor/);
  assertThrows(withOptions({ mask: null }), 'type', /mask must be a tensor .* got null/);
  assertThrows(
    withOptions({ bias: { data: new Uint8Array(25), shape } }),
    'type',
    /booleans go into the option 'mask'/,
  );
  assertThrows(
    withOptions({ bias: { data: new Float64Array(25), shape } }),
    'type',
    /bias data must be a Float32Array/,
  );
});

test('a mask or bias that does not broadcast shows both shapes', () => {
  for (const shape of [[4], [5, 4], [3, 5, 5], [2, 2, 5, 5], [1, 1, 1, 5, 5], [0], [2, 1, 5]]) {
    const size = shape.reduce((a, b) => a * b, 1);
    const mask = { data: new Uint8Array(size), shape };
    const bias = { data: new Float32Array(size), shape };
    if (shape.join() === '2,1,5') continue;
    const text = `shape \\[${shape.join(', ')}\\] does not broadcast to \\[1, 2, 5, 5\\]`;
    assertThrows(withOptions({ mask }), 'shape', new RegExp(`^mask ${text}`));
    assertThrows(withOptions({ bias }), 'shape', new RegExp(`^bias ${text}`));
  }
});

test('numbers out of range show the number', () => {
  const cases = /** @type {[any, string, RegExp][]} */ ([
    [{ scale: NaN }, 'option', /scale must be finite, got NaN/],
    [{ scale: -Infinity }, 'option', /scale must be finite, got -Infinity/],
    [{ scale: '1' }, 'type', /scale must be a number, got "1"/],
    [{ scale: null }, 'type', /scale must be a number, got null/],
    [{ softcap: -1 }, 'option', /softcap must be 0 \(off\) or more, got -1/],
    [{ softcap: Infinity }, 'option', /softcap must be finite/],
    [{ softcap: NaN }, 'option', /softcap must be finite/],
    [{ softcap: true }, 'type', /softcap must be a number, got true/],
    [{ window: [-1, 0] }, 'option', /window must be whole numbers, 0 or more, or Infinity, got \[-1, 0\]/],
    [{ window: [1.5, 0] }, 'option', /window/],
    [{ window: [NaN, 0] }, 'option', /window/],
    [{ window: [-Infinity, 0] }, 'option', /window/],
    [{ window: 3 }, 'type', /window must be \[left, right\], got 3/],
    [{ window: [3] }, 'type', /window must be \[left, right\], got \[3\]/],
    [{ window: { left: 1, right: 0 } }, 'type', /window must be \[left, right\]/],
    [{ window: [1, null] }, 'type', /window must be two numbers/],
    [{ causal: 1 }, 'type', /causal must be true or false, got 1/],
    [{ causal: null }, 'type', /causal/],
    [{ returnLse: 'yes' }, 'type', /returnLse must be true or false, got "yes"/],
    [{ align: 'bottom-right' }, 'option', /align must be 'lower-right' or 'upper-left', got "bottom-right"/],
    [{ align: 1 }, 'type', /align/],
    [{ align: 'toString' }, 'option', /align/],
    [{ scores: 'raw' }, 'option', /scores must be 'scaled' or 'capped' or 'biased' or 'weights', got "raw"/],
    [{ scores: true }, 'type', /scores/],
    [{ layout: 'bshd' }, 'option', /layout must be 'bhld' or 'blhd', got "bshd"/],
    [{ layout: 0 }, 'type', /layout/],
    [{ queryOffset: 1.5 }, 'option', /queryOffset must be a whole number between -2\^31 and 2\^31, got 1.5/],
    [{ queryOffset: 2 ** 40 }, 'option', /queryOffset/],
    [{ queryOffset: '3' }, 'type', /queryOffset must be a number or an Int32Array, got "3"/],
    [{ queryOffset: [3] }, 'type', /queryOffset/],
    [{ queryOffset: new Int32Array(2) }, 'shape', /queryOffset has 2 numbers but the batch is 1/],
    [{ queryOffset: 0, align: 'upper-left' }, 'option', /align and queryOffset both/],
    [{ kvLengths: [3] }, 'type', /kvLengths must be an Int32Array/],
    [{ kvLengths: new Float32Array(1) }, 'type', /kvLengths must be an Int32Array/],
    [{ kvLengths: new Int32Array([3, 3]) }, 'shape', /kvLengths has 2 numbers but the batch is 1/],
    [{ kvLengths: new Int32Array([6]) }, 'option', /kvLengths\[0\] is 6 but must be between 0 and the key length 5/],
    [{ kvLengths: new Int32Array([-1]) }, 'option', /kvLengths\[0\] is -1/],
    [{ queryLengths: 3 }, 'type', /queryLengths must be an Int32Array/],
    [{ queryLengths: new Int32Array(0) }, 'shape', /queryLengths has 0 numbers but the batch is 1/],
    [
      { queryLengths: new Int32Array([6]) },
      'option',
      /queryLengths\[0\] is 6 but must be between 0 and the query length 5/,
    ],
  ]);
  for (const [options, code, message] of cases) assertThrows(withOptions(options), code, message);
});

test('positional options ask where query 0 stands when the lengths differ', () => {
  const long = t(1, 2, 9, 8);
  for (const options of [
    { causal: true },
    { window: [1, 1] },
    { window: [Infinity, 0] },
    { window: [2, Infinity] },
    { chunk: 3 },
    { alibiSlopes: [0.5, 0.25] },
  ]) {
    const error = assertThrows(call(q, long, long, options), 'align-required', /query length is 5 but key length is 9/);
    assert.match(error.message, /lower-right.*upper-left.*queryOffset/);
    assert.ok(error.message.startsWith(`${Object.keys(options)[0]} needs to know`));
  }
  assert.equal(sdpa.attention(q, long, long, { globalKeys: 2 }).out.data.length, 80);
  assertThrows(call(q, t(1, 2, 0, 8), t(1, 2, 0, 8), { causal: true }), 'align-required', /key length is 0/);
});

test('unknown options are refused, with the right name where it is close', () => {
  assertThrows(
    withOptions({ isCausal: true }),
    'unknown-option',
    /no option 'isCausal'; the options are scale, softcap/,
  );
  assertThrows(withOptions({ return_lse: true }), 'unknown-option', /did you mean 'returnLse'/);
  assertThrows(withOptions({ nothing: undefined }), 'unknown-option', /no option 'nothing'/);
  assertThrows(withOptions({ signal: new AbortController().signal }), 'unknown-option', /signal/);
  assertThrows(withOptions(Object.create({ inherited: 1 })), 'unknown-option', /inherited/);
});

test('options must be an object', () => {
  for (const options of [null, 5, 'causal', true]) {
    assertThrows(withOptions(options), 'type', /options must be an object/);
  }
});

test('out must be a Float32Array of the right length, or a tensor of this instance', () => {
  assertThrows(
    withOptions({ out: new Float32Array(79) }),
    'shape',
    /out has 79 elements but the result \[1, 2, 5, 8\] has 80/,
  );
  assertThrows(withOptions({ out: new Float64Array(80) }), 'type', /out must be a Float32Array or a tensor/);
  assertThrows(withOptions({ out: { data: new Float32Array(80), shape: [1, 2, 5, 8] } }), 'type', /out must be/);
  assertThrows(withOptions({ out: null }), 'type', /out must be .* got null/);
});

test('nothing is written into out when the call fails', () => {
  const out = new Float32Array(80).fill(3);
  assertThrows(call(q, k, v, { out, scale: NaN }), 'option', /scale/);
  assert.ok(out.every((x) => x === 3));
});

test('weights of a size that no memory holds are refused by size, while the result alone is computed', () => {
  const L = 50000;
  const thin = { data: new Float32Array(L).fill(0.5), shape: [1, 1, L, 1] };
  const short = { data: new Float32Array(4), shape: [1, 1, 4, 1] };
  const error = assertThrows(call(thin, thin, thin, { scores: 'weights' }), 'out-of-memory', /needs \d{11} bytes/);
  assert.ok(/** @type {number} */ (error.needed) > 4 * L * L && /** @type {number} */ (error.allowed) > 0);
  assert.equal(sdpa.attention(thin, short, short).out.data.length, L);
});

test('tensors of another realm are tensors, and errors of another copy are AttentionErrors', () => {
  const realm = vm.createContext({});
  const foreign = vm.runInContext('(array, shape) => ({ data: new Float32Array(array), shape: [...shape] })', realm);
  const [a, b, c] = [q, k, v].map(({ data, shape }) => foreign(Array.from(data), shape));
  assert.ok(!(a.data instanceof Float32Array));
  const maskOf = vm.runInContext('(n) => ({ data: new Uint8Array(n).fill(1), shape: [n] })', realm);
  const lengths = vm.runInContext('new Int32Array([5])', realm);
  assert.deepEqual(sdpa.attention(a, b, c, { mask: maskOf(5), kvLengths: lengths, queryOffset: lengths }), before);
  const copy = Object.defineProperty(new RangeError('x'), Symbol.for('sdpa.AttentionError'), { value: true });
  assert.ok(copy instanceof AttentionError);
  assert.ok(!AttentionError.is(new RangeError('x')) && !AttentionError.is(null) && !AttentionError.is('x'));
});

test('shared memory, views and dims are read as they lie', () => {
  const shared = new Float32Array(new SharedArrayBuffer(4 * (80 + 6)));
  shared.fill(NaN);
  shared.set(q.data, 3);
  const view = { data: shared.subarray(3, 83), dims: [1, 2, 5, 8], type: 'float32' };
  assert.deepEqual(sdpa.attention(view, k, v), before);
  const frozen = { data: k.data, dims: Object.freeze([1, 2, 5, 8]) };
  assert.deepEqual(sdpa.attention(q, frozen, { data: v.data, shape: new Uint32Array(v.shape) }), before);
});
