import assert from 'node:assert/strict';
import { test } from 'node:test';
import { constants, deflateRawSync } from 'node:zlib';
import { readNpz, writeNpy, writeNpz } from 'sdpa/io';
import { zipBytes } from './craft.mjs';
import { aValues, numpyFiles } from './numpy-files.mjs';
import { refuses } from './refuses.mjs';

const array = writeNpy({ data: Float32Array.of(1, 2, 3), shape: [3] });
const arrayCrc = crc(array);
const deflated = new Uint8Array(deflateRawSync(array));
const stored = { name: 'x.npy', content: array, crc: arrayCrc };
const packed = { name: 'x.npy', content: deflated, crc: arrayCrc, method: 8, size: array.length };

test('what numpy.savez wrote is read by name', () => {
  const tensors = readNpz(numpyFiles.npz());
  assert.deepEqual(Object.keys(tensors), ['query', 'mask']);
  assert.deepEqual(tensors.query, { data: Float32Array.from(aValues), shape: [2, 3, 4], dtype: 'float32' });
  assert.deepEqual(tensors.mask, {
    data: Uint8Array.from(aValues, (x) => Number(x > 0)),
    shape: [2, 3, 4],
    dtype: 'bool',
  });
});

test('what numpy.savez_compressed wrote is read, and the filter leaves out what no tensor can hold', () => {
  const { query } = readNpz(numpyFiles.npzCompressed(), { filter: (name) => name === 'query' });
  assert.deepEqual(query.data, Float32Array.from(aValues));
  refuses(() => readNpz(numpyFiles.npzCompressed()), 'unsupported', /array 'labels' of the .npz file.*'<U1'/);
});

for (const compress of [false, true]) {
  test(`tensors survive writing and reading, ${compress ? 'compressed' : 'stored'}`, () => {
    const tensors = {
      query: { data: Float32Array.from({ length: 5000 }, (_, i) => i % 7), shape: [50, 100], dtype: 'float32' },
      half: { data: Uint16Array.of(1, 2), shape: [2], dtype: 'float16' },
      mask: { data: Uint8Array.of(1, 0), shape: [1, 2], dtype: 'bool' },
      'layer/0': { data: BigInt64Array.of(5n), shape: [], dtype: 'int64' },
      7: { data: new Float64Array(0), shape: [0], dtype: 'float64' },
      Größe: { data: Int8Array.of(-1), shape: [1], dtype: 'int8' },
    };
    const file = writeNpz(tensors, { compress });
    assert.equal(file.length < 5000 * 4, compress);
    assert.deepEqual({ ...readNpz(file) }, tensors);
    assert.deepEqual(writeNpz(tensors, { compress }), file, 'the same bytes again');
  });
}

test('names that JavaScript gives a meaning to are names like any other', () => {
  const tensors = Object.fromEntries(
    ['__proto__', 'constructor', 'toString'].map((name) => [name, { data: Float32Array.of(1), shape: [1] }]),
  );
  const back = readNpz(writeNpz(tensors));
  assert.deepEqual(Object.keys(back), ['__proto__', 'constructor', 'toString']);
  assert.equal(Object.getPrototypeOf(back), null);
});

test('members that are not .npy are left out', () => {
  const readme = { name: 'readme.txt', content: Uint8Array.of(65), crc: crc(Uint8Array.of(65)) };
  assert.deepEqual(Object.keys(readNpz(zipBytes([readme, stored]))), ['x']);
});

test('stored, deflated and zip64 members give the same array', () => {
  for (const member of [stored, packed, { ...stored, zip64: true }, { ...packed, zip64: true }]) {
    assert.deepEqual(readNpz(zipBytes([member])).x.data, Float32Array.of(1, 2, 3));
  }
});

test('an archive with a comment, and one without members, are read', () => {
  const file = [...zipBytes([stored])];
  file[file.length - 2] = 5;
  assert.deepEqual(Object.keys(readNpz(Uint8Array.from([...file, 1, 2, 3, 4, 5]))), ['x']);
  assert.deepEqual(Object.keys(readNpz(zipBytes([]))), []);
});

test('a file cut anywhere is refused', () => {
  const file = numpyFiles.npz();
  for (let length = 0; length < file.length; length++) {
    refuses(() => readNpz(file.slice(0, length)), 'option', /cut short|damaged/);
  }
});

test('one flipped bit in the content is found by the CRC', () => {
  for (const member of [stored, packed]) {
    // the last byte of a deflated stream ends in bits without meaning
    for (let at = 0; at < member.content.length - 1; at++) {
      const content = member.content.slice();
      content[at] ^= 4;
      assert.throws(() => readNpz(zipBytes([{ ...member, content }])), RangeError);
    }
  }
  const content = array.slice();
  content[array.length - 1] ^= 1;
  refuses(() => readNpz(zipBytes([{ ...stored, content }])), 'option', /'x.npy'.*CRC-32/);
});

test('a member twice is refused', () => {
  refuses(() => readNpz(zipBytes([stored, packed])), 'option', /'x.npy' twice/);
});

test('a zip bomb is refused by the sizes that it declares, before anything is inflated', () => {
  const zeros = new Uint8Array(deflateRawSync(new Uint8Array(2 ** 24)));
  const bomb = { name: 'x.npy', content: zeros, crc: 0, method: 8, size: 2 ** 24 };
  refuses(() => readNpz(zipBytes([bomb]), { maxBytes: 2 ** 20 }), 'option', /16777216 bytes.*maxBytes 1048576/);
  const many = Array.from({ length: 300 }, (_, i) => ({ ...bomb, name: `${i}.npy` }));
  refuses(() => readNpz(zipBytes(many)), 'option', /5033164800 bytes.*maxBytes 4294967296/);
  refuses(
    () => readNpz(zipBytes([{ ...bomb, size: 2 ** 31 }])),
    'option',
    /more than its \d+ compressed bytes can hold/,
  );
});

test('a stream that goes on for 100 GB behind its declared size is not waited for', () => {
  const flushed = { finishFlush: constants.Z_FULL_FLUSH };
  // Pieces that end at a byte, none of them the last, can be put one after the other.
  const piece = deflateRawSync(new Uint8Array(2 ** 24), flushed);
  const content = Buffer.concat(Array.from({ length: 6000 }, () => piece));
  const head = zipBytes([{ ...packed, content: deflated, name: 'x.npy' }]);
  const at = 30 + 'x.npy'.length;
  // The archive put together anew around the long content: zipBytes() spreads its bytes over arguments.
  const directory = head.slice(at + deflated.length);
  const view = new DataView(directory.buffer);
  view.setUint32(20, content.length, true);
  view.setUint32(directory.length - 22 + 16, at + content.length, true);
  const file = Buffer.concat([head.subarray(0, at), content, directory]);
  refuses(() => readNpz(file), 'option', /'x.npy' of the .npz file declares 140 bytes and inflates to more/);
});

test('members that inflate to more or less than they declare are refused', () => {
  for (const size of [array.length - 1, array.length + 1, 0]) {
    refuses(() => readNpz(zipBytes([{ ...packed, size }])), 'option', /'x.npy'.*(declares|damaged)/);
    refuses(() => readNpz(zipBytes([{ ...stored, size }])), 'option', /'x.npy'.*declares/);
  }
});

test('encrypted members and other compressions are refused by name', () => {
  refuses(() => readNpz(zipBytes([{ ...stored, flags: 1 }])), 'unsupported', /'x.npy'.*encrypted/);
  refuses(() => readNpz(zipBytes([{ ...stored, method: 12 }])), 'unsupported', /'x.npy'.*method 12/);
});

test('a directory that lies about its entries is refused', () => {
  refuses(() => readNpz(zipBytes([stored], { count: 2 })), 'option', /zip directory/);
  refuses(() => readNpz(zipBytes([stored], { count: 60000 })), 'option', /60000 entries/);
  const file = zipBytes([stored]);
  const entry = file.length - 22 - 46 - 5;
  for (const [at, value] of [
    [entry + 45, 200], // offset of the local header, highest byte
    [entry + 28, 255], // length of the name
    [entry, 0], // signature
    [file.length - 22 + 19, 200], // start of the directory, highest byte
  ]) {
    const broken = file.slice();
    broken[at] = value;
    refuses(() => readNpz(broken), 'option', /zip directory/);
  }
});

test('a member that is no .npy file is named', () => {
  const content = Uint8Array.of(1, 2, 3);
  refuses(
    () => readNpz(zipBytes([{ name: 'q.npy', content, crc: crc(content) }])),
    'option',
    /array 'q' of the .npz file/,
  );
});

test('wrong arguments are refused by name', () => {
  refuses(() => readNpz(/** @type {any} */ ('q.npz')), 'type', /readNpz takes the bytes/);
  refuses(() => readNpz(numpyFiles.npz(), /** @type {any} */ ({ names: [] })), 'unknown-option', /'names'/);
  refuses(() => writeNpz(/** @type {any} */ (null)), 'type', /tensors by name/);
  refuses(() => writeNpz({}, /** @type {any} */ ({ compress: 1 })), 'type', /compress/);
  refuses(() => writeNpz({ q: { data: new Float32Array(1), shape: [2] } }), 'shape', /array 'q'/);
  refuses(() => writeNpz({ ['x'.repeat(70_000)]: { data: [true], shape: [1] } }), 'option', /70000 characters/);
});

/** @param {Uint8Array} bytes bit by bit, from the definition */
function crc(bytes) {
  let value = 0xffffffff;
  for (const byte of bytes) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  }
  return ~value >>> 0;
}
