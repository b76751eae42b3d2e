import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AttentionError } from 'sdpa';
import { readSafetensors, writeSafetensors } from 'sdpa/io';
import { safetensorsBytes } from './craft.mjs';
import { refuses } from './refuses.mjs';

/**
 * @param {string} dtype
 * @param {number[]} shape
 * @param {number} begin
 * @param {number} end
 */
const entry = (dtype, shape, begin, end) => ({ dtype, shape, data_offsets: [begin, end] });

const eight = Uint8Array.of(0, 0, 128, 63, 0, 0, 0, 64);

test('a file put together from the description is read by name, in its order', () => {
  const header = { __metadata__: { format: 'pt' }, b: entry('F32', [2], 0, 8), a: entry('BOOL', [2, 1], 8, 10) };
  const tensors = readSafetensors(safetensorsBytes(header, [...eight, 1, 0]));
  assert.deepEqual(Object.entries(tensors), [
    ['b', { data: Float32Array.of(1, 2), shape: [2], dtype: 'float32' }],
    ['a', { data: Uint8Array.of(1, 0), shape: [2, 1], dtype: 'bool' }],
  ]);
});

for (const [name, dtype, array] of /** @type {const} */ ([
  ['F64', 'float64', Float64Array],
  ['F32', 'float32', Float32Array],
  ['F16', 'float16', Uint16Array],
  ['BF16', 'bfloat16', Uint16Array],
  ['I64', 'int64', BigInt64Array],
  ['I32', 'int32', Int32Array],
  ['I16', 'int16', Int16Array],
  ['I8', 'int8', Int8Array],
  ['U64', 'uint64', BigUint64Array],
  ['U32', 'uint32', Uint32Array],
  ['U16', 'uint16', Uint16Array],
  ['U8', 'uint8', Uint8Array],
  ['BOOL', 'bool', Uint8Array],
])) {
  test(`${name} is ${dtype} on reading and on writing, aligned or not`, () => {
    const bytes = Uint8Array.from({ length: 2 * array.BYTES_PER_ELEMENT }, (_, i) => 17 * i + 1);
    const data = new array(bytes.buffer);
    for (const pad of ['', ' ', '  ', '   ', '       ']) {
      const text = `${JSON.stringify({ x: entry(name, [2], 0, bytes.length) })}${pad}`;
      assert.deepEqual(readSafetensors(safetensorsBytes(text, bytes)).x, { data, shape: [2], dtype });
    }
    const file = writeSafetensors({ x: { data, shape: [2], dtype } });
    assert.deepEqual(readSafetensors(file).x, { data, shape: [2], dtype });
    assert.match(new TextDecoder('latin1').decode(file), new RegExp(`"dtype":"${name}"`));
  });
}

test('written tensors are aligned and read in place, the larger elements first', () => {
  const file = writeSafetensors({
    byte: { data: Uint8Array.of(1, 2, 3), shape: [3] },
    half: { data: Uint16Array.of(1), shape: [1], dtype: 'bfloat16' },
    double: { data: Float64Array.of(1), shape: [1] },
    single: { data: Float32Array.of(1), shape: [1] },
  });
  const tensors = readSafetensors(file);
  assert.deepEqual(Object.keys(tensors), ['double', 'single', 'half', 'byte']);
  for (const { data } of Object.values(tensors)) assert.equal(data.buffer, file.buffer);
});

test('metadata and names of every kind are written as they are', () => {
  const tensors = Object.fromEntries(
    ['__proto__', 'constructor', '10', '2', 'a "quoted" \\ name', 'Größe'].map((name) => [
      name,
      { data: Float32Array.of(1), shape: [1] },
    ]),
  );
  const file = writeSafetensors(tensors, { metadata: { format: 'pt' } });
  const length = Number(new DataView(file.buffer).getBigUint64(0, true));
  assert.equal(length % 8, 0);
  const header = new TextDecoder().decode(file.subarray(8, 8 + length));
  assert.ok(header.startsWith('{"__metadata__":{"format":"pt"}'), header);
  assert.deepEqual(Object.keys(readSafetensors(file)).sort(), Object.keys(tensors).sort());
  assert.equal(Object.getPrototypeOf(readSafetensors(file)), null);
});

test('empty files, empty tensors and scalars are read', () => {
  assert.deepEqual(Object.keys(readSafetensors(safetensorsBytes({}))), []);
  assert.deepEqual(Object.keys(readSafetensors(writeSafetensors({}))), []);
  const header = { none: entry('F32', [0, 5], 0, 0), one: entry('F32', [], 0, 4) };
  const { none, one } = readSafetensors(safetensorsBytes(header, [0, 0, 128, 63]));
  assert.deepEqual(none, { data: new Float32Array(0), shape: [0, 5], dtype: 'float32' });
  assert.deepEqual(one, { data: Float32Array.of(1), shape: [], dtype: 'float32' });
});

test('the filter chooses, and other tensors may be of types that nothing here holds', () => {
  const file = safetensorsBytes({ w: entry('F8_E4M3', [8], 0, 8), x: entry('F32', [2], 8, 16) }, [...eight, ...eight]);
  assert.deepEqual(Object.keys(readSafetensors(file, { filter: (name) => name === 'x' })), ['x']);
  refuses(() => readSafetensors(file), 'unsupported', /tensor 'w' has dtype F8_E4M3/);
  refuses(() => readSafetensors(file, { filter: (name) => name === 'x', maxBytes: 7 }), 'option', /maxBytes 7/);
});

test('a file cut anywhere is refused', () => {
  const file = writeSafetensors({ a: { data: new Float32Array(4), shape: [4] }, b: { data: [true], shape: [1] } });
  for (let length = 0; length < file.length; length++) {
    refuses(() => readSafetensors(file.slice(0, length)), 'option', /cut short|only \d+ bytes follow/);
  }
});

test('a header that claims 4 GB or 2^63 bytes is refused without reading on', () => {
  for (const claimed of [2n ** 32n, 2n ** 63n, 2n ** 64n - 1n, 100_000_001n]) {
    refuses(
      () => readSafetensors(safetensorsBytes({}, [], claimed)),
      'option',
      new RegExp(`${claimed} bytes; at most`),
    );
  }
  refuses(() => readSafetensors(safetensorsBytes({}, [], 99_999_999n)), 'option', /cut short/);
});

test('offsets that overlap, leave a gap, leave the file or go backwards are refused', () => {
  const refused = (/** @type {object} */ header, /** @type {RegExp} */ message) =>
    refuses(() => readSafetensors(safetensorsBytes(header, [...eight, ...eight])), 'option', message);
  refused({ a: entry('F32', [3], 0, 12), b: entry('F32', [2], 8, 16) }, /'b'.*overlaps/);
  refused({ a: entry('F32', [4], 0, 16), b: entry('F32', [4], 0, 16) }, /'b'.*overlaps/);
  refused({ a: entry('F32', [1], 0, 4), b: entry('F32', [2], 8, 16) }, /bytes 4 to 8 .* no tensor/);
  refused({ a: entry('F32', [3], 4, 16) }, /bytes 0 to 4 .* no tensor/);
  refused({ a: entry('F32', [3], 0, 12) }, /bytes 12 to 16 .* no tensor/);
  refused({ a: entry('F32', [5], 0, 20) }, /only 16 bytes/);
  refused({ a: entry('F32', [4], 16, 0) }, /begin <= end/);
  refused({ a: entry('F32', [4], -16, 0) }, /data_offsets \[-16, 0\]/);
  refused({ a: { dtype: 'F32', shape: [4], data_offsets: [0, 2 ** 53] } }, /data_offsets/);
  refused({ a: { dtype: 'F32', shape: [4], data_offsets: [0] } }, /data_offsets \[0\]/);
  refused({ a: { dtype: 'F32', shape: [4] } }, /data_offsets undefined/);
});

test('shapes that do not fit, overflow or are negative are refused', () => {
  const refused = (/** @type {unknown} */ shape, /** @type {RegExp} */ message) => {
    const header = { a: { dtype: 'F32', shape, data_offsets: [0, 8] } };
    refuses(() => readSafetensors(safetensorsBytes(header, eight)), 'shape', message);
  };
  refused([3], /\[3\] of F32 takes 12 bytes.*hold 8/);
  refused([2 ** 32, 2 ** 32], /more elements than can be addressed/);
  refused([3037000500, 3037000500, 4], /more elements than can be addressed/);
  refused([-2], /list of integers/);
  refused([1.5], /list of integers/);
  refused(['2'], /list of integers/);
  refused(2, /list of integers/);
  refused(new Array(65).fill(1), /65 dimensions/);
});

test('a key twice is refused, also when one of them is written with escapes', () => {
  const a = JSON.stringify(entry('F32', [2], 0, 8));
  refuses(() => readSafetensors(safetensorsBytes(`{"a":${a},"a":${a}}`, eight)), 'option', /'a' twice/);
  refuses(() => readSafetensors(safetensorsBytes(`{"a":${a},"\\u0061":${a}}`, eight)), 'option', /'a' twice/);
  const inner = '{"dtype":"F32","shape":[2],"data_offsets":[0,8],"shape":[2]}';
  refuses(() => readSafetensors(safetensorsBytes(`{"a":${inner}}`, eight)), 'option', /'shape' twice/);
});

test('strings in the header that look like keys or brackets are no keys', () => {
  const header = { __metadata__: { a: '{"a":1,"a":2}', b: ']}":', c: 'a' }, a: entry('F32', [2], 0, 8) };
  assert.deepEqual(Object.keys(readSafetensors(safetensorsBytes(header, eight))), ['a']);
});

test('headers that are not the JSON they should be are refused', () => {
  for (const header of [
    '',
    '[]',
    'null',
    '1',
    '{',
    '{"a":1}',
    '{"a":null}',
    '{"a":[]}',
    '{"__metadata__":{"x":1}}',
    '\ufeff{}',
  ]) {
    refuses(() => readSafetensors(safetensorsBytes(header)), 'option', /header|description|__metadata__/);
  }
  const invalid = Uint8Array.from([1, 0, 0, 0, 0, 0, 0, 0, 0xff]);
  refuses(() => readSafetensors(invalid), 'option', /damaged header/);
  refuses(() => readSafetensors(safetensorsBytes({ a: { shape: [0], data_offsets: [0, 0] } })), 'option', /no dtype/);
  refuses(() => readSafetensors(safetensorsBytes({ a: entry('toString', [0], 0, 0) })), 'unsupported', /toString/);
});

test('wrong arguments are refused by name', () => {
  refuses(() => readSafetensors(/** @type {any} */ (new Float32Array(4))), 'type', /readSafetensors takes the bytes/);
  refuses(() => writeSafetensors(/** @type {any} */ (null)), 'type', /tensors by name/);
  const x = { data: Float32Array.of(1), shape: [1] };
  refuses(() => writeSafetensors({ __metadata__: x }), 'option', /reserved/);
  refuses(() => writeSafetensors({ x }, { metadata: /** @type {any} */ ({ a: 1 }) }), 'option', /strings/);
  refuses(() => writeSafetensors({ x: { ...x, shape: [2] } }), 'shape', /tensor 'x'/);
  refuses(() => writeSafetensors({ x }, /** @type {any} */ ({ meta: {} })), 'unknown-option', /'meta'/);
});

test('headers that nest deeper than any stack, and names of any length, are refused in a few words', () => {
  const deep = '['.repeat(300_000) + ']'.repeat(300_000);
  for (const text of [
    `{"a":{"dtype":"F32","shape":${deep},"data_offsets":[0,0]}}`,
    `{"a":{"dtype":"F32","shape":[0],"data_offsets":${deep}}}`,
    `{"a":{"dtype":${deep},"shape":[0],"data_offsets":[0,0]}}`,
    `{"a":${deep}}`,
    `{"__metadata__":{"a":${deep}}}`,
    `{"${'x'.repeat(20_000_000)}":1}`,
    `{"a":{"dtype":"${'x'.repeat(1_000_000)}","shape":[0],"data_offsets":[0,0]}}`,
  ]) {
    assert.throws(
      () => readSafetensors(safetensorsFile(text)),
      (error) => {
        assert.ok(AttentionError.is(error), String(error));
        assert.ok(error.message.length < 1000, `${error.message.length} characters`);
        return true;
      },
    );
  }
});

/** @param {string} text of the header @returns {Uint8Array} without data */
function safetensorsFile(text) {
  const length = new Uint8Array(8);
  new DataView(length.buffer).setBigUint64(0, BigInt(text.length), true);
  return Buffer.concat([length, Buffer.from(text)]);
}
