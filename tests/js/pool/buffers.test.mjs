// Buffers of copies and results are used again by later slices and calls: none may be written while another still needs it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { assertSameBits } from '../helpers/workers.mjs';

/** Sizes whose pieces fit into each other's buffers. */
const shapes = [
  [4, 300, 32],
  [3, 411, 24],
  [6, 256, 32],
  [2, 700, 16],
];

for (const threads of [0, 1, 2]) {
  test(`calls at the same time and one after the other keep their bits, aborted ones among them (threads: ${threads})`, async () => {
    const sdpa = await loadVariant({ threads });
    const random = randomSource(threads + 1);
    const calls = shapes.map((shape) => {
      const count = shape.reduce((a, b) => a * b);
      const tensor = () => ({ data: Float32Array.from({ length: count }, random.normal), shape });
      const inputs = /** @type {const} */ ([tensor(), tensor(), tensor()]);
      return { inputs, want: sdpa.attention(...inputs, { returnLse: true }) };
    });
    for (let round = 0; round < 3; round++) {
      const controller = new AbortController();
      const doomed = calls.map(({ inputs }) => sdpa.attentionAsync(...inputs, { signal: controller.signal }));
      const pending = calls.map(({ inputs }) => sdpa.attentionAsync(...inputs, { returnLse: true }));
      controller.abort();
      for (const promise of doomed) await assert.rejects(promise, { name: 'AbortError' });
      const results = await Promise.all(pending);
      // Results are the caller's: what comes later must not write into them either.
      for (const { inputs, want } of calls) {
        assertSameBits(await sdpa.attentionAsync(...inputs, { returnLse: true }), want, `round ${round}`);
      }
      results.forEach((result, i) => assertSameBits(result, calls[i].want, `round ${round}, together, call ${i}`));
    }
    sdpa.dispose();
  });
}
