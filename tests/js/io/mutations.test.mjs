import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AttentionError } from 'sdpa';
import { readNpy, readNpz, readSafetensors, writeNpz, writeSafetensors } from 'sdpa/io';
import { randomSource } from '../helpers/reference.mjs';
import { numpyFiles } from './numpy-files.mjs';

const tensors = {
  query: { data: Float32Array.of(1, 2, 3, 4, 5, 6), shape: [2, 3] },
  mask: { data: [true, false], shape: [2, 1] },
};

for (const [name, read, files] of /** @type {[string, (bytes: Uint8Array) => unknown, Uint8Array[]][]} */ ([
  ['readNpy', readNpy, ['float32', 'float64BigEndian', 'float32Fortran', 'version2'].map((key) => numpyFiles[key]())],
  ['readNpz', readNpz, [numpyFiles.npz(), numpyFiles.npzCompressed(), writeNpz(tensors, { compress: true })]],
  ['readSafetensors', readSafetensors, [writeSafetensors(tensors, { metadata: { a: 'b' } })]],
])) {
  test(`${name} answers 3000 damaged files with a tensor or an AttentionError, never with anything else`, () => {
    const { uniform } = randomSource(name.length);
    const below = (/** @type {number} */ limit) => Math.floor(uniform() * limit);
    let refused = 0;
    for (let i = 0; i < 3000; i++) {
      const file = files[i % files.length].slice();
      for (let change = below(4); change >= 0; change--) {
        const at = below(file.length);
        if (uniform() < 0.3) file.copyWithin(at, below(file.length), below(file.length));
        else file[at] = uniform() < 0.5 ? below(256) : file[at] ^ (1 << below(8));
      }
      const damaged = uniform() < 0.2 ? file.subarray(below(file.length)) : file;
      try {
        read(damaged);
      } catch (error) {
        refused++;
        if (!AttentionError.is(error)) {
          assert.fail(
            `change ${i}: ${/** @type {Error} */ (error).stack} for ${Buffer.from(damaged).toString('base64')}`,
          );
        }
      }
    }
    assert.ok(refused > 300, `${refused} refused`);
  });
}
