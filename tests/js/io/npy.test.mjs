import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readNpy, writeNpy } from 'sdpa/io';
import { npyBytes, npyHeader } from './craft.mjs';
import { aValues, numpyFiles } from './numpy-files.mjs';
import { refuses } from './refuses.mjs';

/** @param {string} name */
const read = (name) => readNpy(numpyFiles[name]());

for (const [name, dtype, array] of /** @type {const} */ ([
  ['float32', 'float32', Float32Array],
  ['float64', 'float64', Float64Array],
  ['float32BigEndian', 'float32', Float32Array],
  ['float64BigEndian', 'float64', Float64Array],
  ['float32Fortran', 'float32', Float32Array],
  ['float32FortranBigEndian', 'float32', Float32Array],
  ['version2', 'float32', Float32Array],
  ['version3', 'float32', Float32Array],
])) {
  test(`the NumPy file '${name}' is read as ${dtype} in C order`, () => {
    assert.deepEqual(read(name), { data: array.from(aValues), shape: [2, 3, 4], dtype });
  });
}

test('float16 is read as the bit patterns', () => {
  const { data, dtype } = read('float16');
  assert.equal(dtype, 'float16');
  assert.ok(data instanceof Uint16Array);
  // -1, -0.875, …, 0 (element 8), …, 1 (element 16)
  assert.deepEqual([data[0], data[1], data[8], data[16]], [0xbc00, 0xbb00, 0, 0x3c00]);
});

test('integers, booleans, a scalar and an empty array keep type, shape and every bit', () => {
  assert.deepEqual(read('int16BigEndian'), { data: Int16Array.of(1, -2, 300), shape: [3], dtype: 'int16' });
  const int64 = BigInt64Array.of(1n, -(2n ** 63n), 2n ** 63n - 1n, 0n);
  assert.deepEqual(read('int64'), { data: int64, shape: [2, 2], dtype: 'int64' });
  assert.deepEqual(read('uint64'), { data: BigUint64Array.of(2n ** 64n - 1n), shape: [1], dtype: 'uint64' });
  assert.deepEqual(read('bool'), { data: Uint8Array.of(1, 0, 1), shape: [1, 3], dtype: 'bool' });
  assert.deepEqual(read('scalar'), { data: Float32Array.of(7), shape: [], dtype: 'float32' });
  assert.deepEqual(read('empty'), { data: new Float32Array(0), shape: [0, 3], dtype: 'float32' });
});

for (const [code, dtype, array] of /** @type {const} */ ([
  ['i1', 'int8', Int8Array],
  ['u1', 'uint8', Uint8Array],
  ['i4', 'int32', Int32Array],
  ['u2', 'uint16', Uint16Array],
  ['u4', 'uint32', Uint32Array],
])) {
  test(`${code} is read in either byte order`, () => {
    const size = array.BYTES_PER_ELEMENT;
    const little = Array.from({ length: 3 * size }, (_, i) => 250 - 7 * i);
    const big = [0, 1, 2].flatMap((i) => little.slice(i * size, (i + 1) * size).reverse());
    const expected = new array(Uint8Array.from(little).buffer);
    for (const [order, data] of /** @type {const} */ ([
      ['<', little],
      ['>', big],
    ])) {
      const file = npyBytes(npyHeader(`'${order}${code}'`, '(3,)'), data);
      assert.deepEqual(readNpy(file), { data: expected, shape: [3], dtype });
    }
  });
}

test('Fortran order of a 2 x 3 array of int8 by hand: columns in the file, rows in the result', () => {
  const file = npyBytes(npyHeader("'|i1'", '(2, 3)', 'True'), [1, 4, 2, 5, 3, 6]);
  assert.deepEqual(readNpy(file).data, Int8Array.of(1, 2, 3, 4, 5, 6));
});

test('headers of other writers: double quotes, other order, no spaces, long integers of Python 2', () => {
  const data = new Uint8Array(8);
  for (const header of [
    '{"shape":(2L,),"fortran_order":False,"descr":"<f4"}',
    "{'shape': (2,), 'descr': '<f4', 'fortran_order': False}   ",
    "{'descr':'<f4','fortran_order':True,'shape':[2]}",
  ]) {
    assert.deepEqual(readNpy(npyBytes(header, data)).shape, [2], header);
  }
});

test('an aligned file is read in place, an unaligned one is copied, with the same values', () => {
  const file = numpyFiles.float32();
  assert.equal(readNpy(file).data.buffer, file.buffer);
  for (const shift of [1, 2, 3, 4]) {
    const shifted = new Uint8Array(file.length + shift);
    shifted.set(file, shift);
    const { data } = readNpy(shifted.subarray(shift));
    assert.equal(data.buffer === shifted.buffer, shift === 4);
    assert.deepEqual(data, Float32Array.from(aValues));
  }
});

test('an ArrayBuffer and a view inside a larger buffer are read alike', () => {
  const file = numpyFiles.float32();
  assert.deepEqual(readNpy(/** @type {ArrayBuffer} */ (file.buffer)), readNpy(file));
  const larger = new Uint8Array(file.length + 128).fill(255);
  larger.set(file, 64);
  assert.deepEqual(readNpy(larger.subarray(64, 64 + file.length)), readNpy(file));
});

test('writing gives the very bytes that NumPy writes', () => {
  for (const name of ['float32', 'float64', 'float16', 'int64', 'uint64', 'bool', 'scalar', 'empty']) {
    assert.deepEqual(writeNpy(read(name)), numpyFiles[name](), name);
  }
});

test('each dtype survives writing and reading', () => {
  for (const data of [
    Float64Array.of(Math.PI, -0, Infinity, NaN),
    Float32Array.of(1, 2, 3, 4),
    BigInt64Array.of(1n, -2n, 3n, 4n),
    BigUint64Array.of(1n, 2n, 3n, 4n),
    Int32Array.of(1, -2, 3, 4),
    Int16Array.of(1, -2, 3, 4),
    Int8Array.of(1, -2, 3, 4),
    Uint32Array.of(1, 2, 3, 2 ** 32 - 1),
    Uint16Array.of(1, 2, 3, 4),
    Uint8Array.of(1, 2, 3, 4),
  ]) {
    const back = readNpy(writeNpy({ data, shape: [2, 2] }));
    assert.deepEqual(back.data, data);
    assert.equal(back.dtype, data.constructor.name.replace(/Big|Array/g, '').toLowerCase());
  }
  const half = { data: Uint16Array.of(0x3c00, 0x8000), shape: [2], dtype: 'float16' };
  assert.deepEqual(readNpy(writeNpy(half)), half);
});

test('a view writes its own elements, dims serves as shape, booleans may be a plain array', () => {
  const inside = new Float32Array([9, 1, 2, 9]).subarray(1, 3);
  assert.deepEqual(readNpy(writeNpy({ data: inside, dims: [2, 1] })).data, Float32Array.of(1, 2));
  const bool = { data: Uint8Array.of(1, 0), shape: [2], dtype: 'bool' };
  assert.deepEqual(readNpy(writeNpy({ data: [true, false], shape: [2] })), bool);
  assert.deepEqual(readNpy(writeNpy(bool)), bool);
});

test('the elements start at a multiple of 64, whatever the shape', () => {
  for (let rank = 0; rank < 30; rank++) {
    const file = writeNpy({ data: Float32Array.of(1), shape: new Array(rank).fill(1) });
    assert.equal((file.length - 4) % 64, 0);
    assert.equal(readNpy(file).shape.length, rank);
  }
});

test('what is no plain array of numbers is named and refused, pickles above all', () => {
  refuses(() => read('object'), 'unsupported', /pickled Python objects/);
  refuses(() => read('structured'), 'unsupported', /structured array/);
  refuses(() => read('complex'), 'unsupported', /element type '<c8'/);
  refuses(() => read('text'), 'unsupported', /element type '<U2'/);
  refuses(() => readNpy(npyBytes(npyHeader("'<V2'", '(1,)'), [0, 0])), 'unsupported', /bfloat16/);
});

test('a file cut anywhere is refused', () => {
  const file = numpyFiles.float32();
  for (let length = 0; length < file.length; length++) {
    refuses(
      () => readNpy(file.slice(0, length)),
      length < 128 ? 'option' : 'shape',
      /cut short|signature|damaged|no '/,
    );
  }
});

test('bytes after the array are refused', () => {
  refuses(() => readNpy(Uint8Array.from([...numpyFiles.float32(), 0])), 'shape', /goes on after.*96 bytes, 97/);
});

test('a header that claims 4 GB, or more than the file has, is refused without reading on', () => {
  const header = npyHeader("'<f4'", '(1,)');
  refuses(() => readNpy(npyBytes(header, [], { major: 2, headerBytes: 2 ** 32 - 1 })), 'option', /4294967295 bytes/);
  refuses(() => readNpy(npyBytes(header, [], { headerBytes: 20_000 })), 'option', /cut short.*20000/);
});

test('shapes that overflow, are negative or are no integers are refused', () => {
  for (const shape of [
    '(4294967296, 4294967296)',
    '(9007199254740993,)',
    '(99999999999999999999999999,)',
    '(-1,)',
    '(-1, -4)',
    '(3037000500, 3037000500, 4)',
  ]) {
    refuses(() => readNpy(npyBytes(npyHeader("'<f4'", shape), [0, 0, 0, 0])), 'shape', /shape \[/);
  }
  for (const shape of ['(1.5,)', "('a',)", '5', 'None', '{}', '(', '(1', '(1 2)', '(True,)', `(${'1,'.repeat(65)})`]) {
    assert.throws(() => readNpy(npyBytes(npyHeader("'<f4'", shape), [0, 0, 0, 0])), RangeError, shape);
  }
});

test('a huge shape with a zero in it is an empty array', () => {
  assert.equal(readNpy(npyBytes(npyHeader("'<f4'", '(9007199254740991, 9007199254740991, 0)'))).data.length, 0);
});

test('damaged headers are refused with the place of the damage', () => {
  for (const [header, message] of /** @type {const} */ ([
    ['', /no '{'/],
    ["{'descr': '<f4'", /no '}'/],
    ["{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", /text after/],
    ["{'descr': '<f4', 'descr': '<f8', 'fortran_order': False, 'shape': (1,)}", /'descr' twice/],
    ["{'fortran_order': False, 'shape': (1,)}", /no 'descr'/],
    ["{'descr': '<f4', 'shape': (1,)}", /no 'fortran_order'/],
    ["{'descr': '<f4', 'fortran_order': False}", /no 'shape'/],
    ["{'descr': '<f4', 'fortran_order': 1, 'shape': (1,)}", /fortran_order 1/],
    ["{'descr': 'f4', 'fortran_order': False, 'shape': (1,)}", /byte order/],
    ["{'descr': '<f4, 'fortran_order': False, 'shape': (1,)}", /damaged/],
    ["{'descr': __import__('os'), 'fortran_order': False, 'shape': (1,)}", /damaged/],
    ['{1: 2}', /key that is not a string/],
    [`{'descr': ${'('.repeat(5000)}`, /nested deeper/],
  ])) {
    refuses(() => readNpy(npyBytes(header, [0, 0, 0, 0])), 'option', message);
  }
});

test('unknown versions and files of another kind are refused', () => {
  const header = npyHeader("'<f4'", '(1,)');
  refuses(() => readNpy(npyBytes(header, [0, 0, 0, 0], { major: 4 })), 'unsupported', /version 4.0/);
  refuses(() => readNpy(npyBytes(header, [0, 0, 0, 0], { minor: 1 })), 'unsupported', /version 1.1/);
  refuses(() => readNpy(new TextEncoder().encode('<!doctype html>')), 'option', /3c 21 64 6f/);
});

test('maxBytes bounds what is read', () => {
  const file = numpyFiles.float32();
  assert.equal(readNpy(file, { maxBytes: 96 }).data.length, 24);
  refuses(() => readNpy(file, { maxBytes: 95 }), 'option', /96 bytes.*maxBytes 95/);
  refuses(() => readNpy(file, { maxBytes: -1 }), 'option', /maxBytes/);
  refuses(() => readNpy(file, /** @type {any} */ ({ maxBytes: '1' })), 'type', /maxBytes/);
  refuses(() => readNpy(file, /** @type {any} */ ({ maxbytes: 1 })), 'unknown-option', /'maxbytes'.*maxBytes/);
});

test('arguments of a wrong type are refused by name', () => {
  for (const value of [undefined, null, 'q.npy', 3, [], {}, new Float32Array(2), new DataView(new ArrayBuffer(2))]) {
    refuses(() => readNpy(/** @type {any} */ (value)), 'type', /readNpy takes the bytes/);
  }
});

test('tensors that cannot be written are refused by name', () => {
  refuses(() => writeNpy({ data: new Float32Array(3), shape: [2, 2] }), 'shape', /\[2, 2\] = 4 elements.*3/);
  refuses(() => writeNpy({ data: new Float32Array(1), shape: [1.5] }), 'shape', /1.5/);
  refuses(() => writeNpy({ data: new Float32Array(1), shape: [-1, -1] }), 'shape', /-1/);
  refuses(() => writeNpy({ data: new Uint16Array(1), shape: [1], dtype: 'bfloat16' }), 'unsupported', /safetensors/);
  refuses(
    () => writeNpy({ data: new Float32Array(1), shape: [1], dtype: 'float16' }),
    'type',
    /'float16'.*Float32Array/,
  );
  refuses(() => writeNpy({ data: new Float32Array(1), shape: [1], dtype: 'constructor' }), 'type', /'constructor'/);
  refuses(() => writeNpy({ data: [1, 2], shape: [2] }), 'type', /typed array/);
  refuses(() => writeNpy({ data: new DataView(new ArrayBuffer(4)), shape: [1] }), 'type', /typed array/);
  refuses(() => writeNpy(/** @type {any} */ (new Float32Array(2))), 'type', /{ data, shape }/);
  refuses(() => writeNpy(/** @type {any} */ (undefined)), 'type', /{ data, shape }/);
});
