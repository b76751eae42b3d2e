// Memory that is refused, at every allocation of everything that takes some: nothing is lost, nothing has changed, and the next call is right.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertThrows } from '../helpers/errors.mjs';
import { memoryUsers } from '../helpers/memory-users.mjs';
import { randomSource } from '../helpers/reference.mjs';
import { refuseEachAllocation, refuseGrowth } from '../helpers/refuse-memory.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { assertSameBits } from '../helpers/workers.mjs';

const limit = 2 ** 25;
const small = randomSource(1).tensor(1, 1, 9, 8);

/** What takes no wasm memory. */
const free = ['append to a ring', 'rotated positions', 'merged parts'];

const roomy = await loadVariant();

/** @param {any[]} got @param {any[]} want */
function assertSame(got, want) {
  const tensors = (/** @type {any} */ result) =>
    Object.fromEntries(Object.entries(result ?? {}).filter(([, tensor]) => ArrayBuffer.isView(tensor?.data)));
  want.forEach((result, n) => assertSameBits(tensors(got[n]), tensors(result)));
}

/**
 * Who refuses, the instance's options, and what goes on until nothing is refused. The block of small calls is there all the same.
 * @type {[string, import('sdpa').LoadOptions, typeof refuseGrowth][]}
 */
const refusers = [
  [
    'by the limit, allocation by allocation',
    { maxMemory: limit },
    (sdpa, ...rest) => refuseEachAllocation(sdpa, limit, ...rest),
  ],
  ['by the engine', {}, refuseGrowth],
];

for (const [name, make] of Object.entries(memoryUsers)) {
  for (const [how, options, refuse] of refusers) {
    test(`${name}: refused ${how}`, async () => {
      const sdpa = await loadVariant(options);
      const model = make(roomy);
      const want = [model.act(), model.after?.()];
      model.dispose?.();
      const control = sdpa.attention(small, small, small);
      const { held } = sdpa.memory();
      const user = make(sdpa);
      const state = user.state?.();
      const { result, refusals } = refuse(sdpa, user.act, () => {
        assert.equal(user.state?.(), state);
        assertSameBits(sdpa.attention(small, small, small), control);
      });
      assertSame([result, user.after?.()], want);
      user.dispose?.();
      assert.equal(sdpa.memory().held, held, 'memory was lost');
      if (!free.includes(name)) assert.ok(refusals > 0, 'nothing was refused');
      sdpa.dispose();
    });
  }
}

test('what would take more than 4 GB is refused by name before anything is taken', async () => {
  const sdpa = /** @type {any} */ (await loadVariant());
  const { held } = sdpa.memory();
  const long = { data: new Float32Array(70_000), shape: [1, 1, 70_000, 1] };
  const dOut = { out: long, lse: { data: new Float32Array(70_000), shape: [1, 1, 70_000] }, dOut: long };
  for (const [call, message] of /** @type {[() => any, RegExp][]} */ ([
    [() => sdpa.attention(long, long, long, { scores: 'weights' }), /^attention needs 196\d{8} bytes/],
    [
      () => sdpa.attentionWeights(long, long, { rows: Int32Array.from(long.data.keys()) }),
      /^the result 'rows' needs 196\d{8} bytes/,
    ],
    [() => sdpa.tensor([2 ** 31]), /^a float32 tensor of shape \[2147483648\] needs 8589934592 bytes/],
    [
      () => sdpa.createKVCache({ batch: 8, numKvHeads: 8, headDim: 128, capacity: 2 ** 20 }),
      /^a float32 KV cache of 8 x 1048576 tokens needs/,
    ],
  ])) {
    const error = assertThrows(call, 'out-of-memory', message);
    assert.ok(/** @type {number} */ (error.needed) > 2 ** 32);
    assert.ok(/** @type {number} */ (error.allowed) < 2 ** 32);
    assert.equal(sdpa.memory().held, held);
  }
  // The gradient of a bias that spreads over heads and rows alone does not.
  assert.ok(sdpa.attentionBackward(long, long, long, dOut, { window: [0, 0] }).dQuery.data.length === 70_000);
  sdpa.dispose();
});

test('sizes beside one of 0, which no data bounds, are not looped over', async () => {
  const sdpa = /** @type {any} */ (await loadVariant());
  for (const huge of [2 ** 31, 2 ** 53 - 1]) {
    for (const shape of [
      [0, huge, 3, 2],
      [0, 2, huge, 2],
      [0, 2, 3, huge],
      [huge, 0, 3, 2],
      [huge, 2, 0, 2],
    ]) {
      const x = { data: new Float32Array(0), shape };
      for (const call of [
        () => sdpa.attention(x, x, x, { smoothSoftmax: true }),
        () => sdpa.attentionWeights(x, x, { stats: true }),
        () => sdpa.attentionWeights(x, x, { pool: { rows: huge, columns: huge } }),
        () => sdpa.rope(x),
        () => sdpa.merge([{ out: x, lse: { data: x.data, shape: shape.slice(0, 3) } }]),
        () => sdpa.tensor(shape),
      ]) {
        assertThrows(call, 'shape', /has no element, and then no size may be beyond 16777216/);
      }
    }
  }
  const none = { data: new Float32Array(0), shape: [0, 12, 100_000, 64] };
  assert.deepEqual(sdpa.attention(none, none, none).out.shape, none.shape);
  sdpa.dispose();
});
