// Memory of attentionWeights(): the inputs, the result and a tile, whatever the lengths.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';

const { tensor: x } = randomSource(8);
const length = 4096;
const query = x(length, 64);
const key = x(length, 64);
const inputs = 2 * length * 64 * 4;
const MiB = 2 ** 20;

/** @type {[string, any, number][]} result bytes */
const wanted = [
  ['a map', { pool: { rows: 512, columns: 512 } }, 512 * 512 * 4],
  ['a map of maxima', { pool: { rows: 64, columns: 64, kind: 'max' } }, 64 * 64 * 4],
  ['sums of columns', { columnSums: true }, length * 4],
  ['statistics', { stats: true }, 3 * length * 4],
  ['the largest', { topK: 8 }, 2 * 8 * length * 4],
  ['rows', { rows: [0, 1000, 4095] }, 3 * length * 4],
  ['columns', { columns: [0, 1000, 4095] }, 3 * length * 4],
];

for (const [name, want, result] of wanted) {
  test(`${name}: less than 2 MiB beside inputs and result`, async () => {
    const sdpa = await loadVariant();
    const before = sdpa.memory().held;
    sdpa.attentionWeights(query, key, { causal: true, ...want });
    const { held, peak } = sdpa.memory();
    assert.equal(held, before);
    assert.ok(peak - before - inputs - result < 2 * MiB, `${(peak - before - inputs - result) / MiB} MiB`);
    sdpa.dispose();
  });
}

test('a call that memory does not hold leaves nothing behind', async () => {
  const sdpa = await loadVariant({ maxMemory: inputs + MiB });
  const before = sdpa.memory().held;
  assert.throws(() => sdpa.attentionWeights(query, key, { rows: Array.from({ length: 100 }, (_, i) => i) }), {
    code: 'out-of-memory',
  });
  assert.equal(sdpa.memory().held, before);
  assert.ok(sdpa.attentionWeights(query, key, { rows: [3] }));
  sdpa.dispose();
});
