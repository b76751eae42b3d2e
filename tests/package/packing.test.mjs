// The builds inside the JavaScript: what packBuilds() packs, it also unpacks with the module that the package carries, and throws where
// that gives something else. Its data here is what the builds themselves do not have.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { packBuilds } from '../../scripts/build/pack.mjs';
import { BUILD } from '../../scripts/lib/project.mjs';

const unpacker = readFileSync(join(BUILD, 'wasm-scalar', 'unpack.wasm'));

/** Bytes that look random, the same in each run. @param {number} size @param {number} seed */
function noise(size, seed) {
  let state = seed;
  return Buffer.from(
    Array.from({ length: size }, () => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return state >>> 24;
    }),
  );
}

/** @param {Buffer} relaxed @param {Buffer} simd @param {Buffer} scalar */
const pack = (relaxed, simd, scalar) => packBuilds({ glue: '', unpacker, wasm: { relaxed, simd, scalar } });

/** @param {string} packed */
const sizeOf = (packed) => Buffer.from(packed, 'base64').length;

test('no bytes, one byte and bytes that cannot be packed come back', () => {
  pack(Buffer.alloc(0), Buffer.from([255]), noise(40_000, 1));
});

test('one byte repeated comes back, in copies of every length', () => {
  const runs = Array.from({ length: 300 }, (_, i) => Buffer.concat([noise(3, i), Buffer.alloc(i, i)]));
  pack(Buffer.concat(runs), Buffer.concat(runs.toReversed()), Buffer.alloc(1000));
  assert.ok(sizeOf(pack(Buffer.alloc(1e6), Buffer.alloc(1e5), Buffer.alloc(10)).packed) < 400);
});

test('copies from near and far, in turn from several places, come back', () => {
  const far = noise(3_000_000, 2);
  const mixed = Buffer.concat(
    Array.from({ length: 20_000 }, (_, i) => {
      const from = Math.floor((((i * 2654435761) >>> 0) / 2 ** 32) ** 4 * (far.length - 300));
      const near = (i % 4) * 70_000 + 11 * i;
      return i % 3 === 0 ? far.subarray(from, from + 2 + (i % 290)) : far.subarray(near, near + 9 + (i % 5));
    }),
  );
  const { packed } = pack(far, mixed, Buffer.concat([mixed, far.subarray(0, 999), mixed]));
  assert.ok(sizeOf(packed) < 1.05 * far.length);
});

test('each build costs little more than its difference from those before it', () => {
  const base = noise(200_000, 3);
  const edited = Buffer.from(base);
  for (let i = 0; i < edited.length; i += 2000) edited[i] ^= 1;
  const alone = sizeOf(pack(base, Buffer.alloc(0), Buffer.alloc(0)).packed);
  assert.ok(sizeOf(pack(base, edited, Buffer.alloc(0)).packed) - alone < 1500);
});

test('a module that unpacks wrongly is noticed when the package is built', () => {
  const idle = Buffer.from(unpacker);
  // The least change of its code: the bits that a probability moves by.
  const shift = Buffer.from([0x41, 5, 0x76]);
  const at = idle.indexOf(shift);
  assert.ok(at > 0);
  idle[at + 1] = 4;
  assert.throws(
    () =>
      packBuilds({
        glue: '',
        unpacker: idle,
        wasm: { relaxed: noise(5000, 4), simd: noise(10, 5), scalar: noise(10, 6) },
      }),
    /the relaxed build unpacks to something else|out of bounds/,
  );
});
