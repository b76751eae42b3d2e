// The buffers that go to the workers and come back: no two pieces share one, and not too many are kept.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Buffers } from '../../../dist/pool/buffers.js';

test('a buffer is given to one piece at a time, whole pieces only', () => {
  const buffers = new Buffers();
  const first = buffers.take(Float32Array, 10_000);
  assert.equal(first.length, 10_000);
  buffers.give(first.buffer);
  assert.equal(buffers.bytes, 40_000);
  const second = buffers.take(Uint16Array, 15_000);
  assert.equal(second.buffer, first.buffer);
  assert.equal(second.length, 15_000);
  assert.equal(second.byteOffset, 0);
  assert.equal(buffers.bytes, 0);
  assert.notEqual(buffers.take(Float32Array, 10_000).buffer, first.buffer);
});

test('a buffer is not spent on a piece of less than half its size, and the best one is taken', () => {
  const buffers = new Buffers();
  const [small, large] = [new ArrayBuffer(50_000), new ArrayBuffer(80_000)];
  buffers.give(large);
  buffers.give(small);
  assert.notEqual(buffers.take(Uint8Array, 20_000).buffer, small);
  assert.equal(buffers.take(Uint8Array, 45_000).buffer, small);
  assert.equal(buffers.take(Uint8Array, 45_000).buffer, large);
});

test('no more than 32 MiB are kept, and nothing that was sent away or is small', () => {
  const buffers = new Buffers();
  for (let i = 0; i < 40; i++) buffers.give(new ArrayBuffer(2 ** 20));
  assert.equal(buffers.bytes, 2 ** 25);
  buffers.clear();
  assert.equal(buffers.bytes, 0);
  const sent = new ArrayBuffer(2 ** 20);
  structuredClone(sent, { transfer: [sent] });
  for (const buffer of [sent, new ArrayBuffer(100), new ArrayBuffer(2 ** 26), undefined]) buffers.give(buffer);
  assert.equal(buffers.bytes, 0);
});
