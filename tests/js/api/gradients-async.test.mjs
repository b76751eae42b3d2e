// attentionBackwardAsync() gives the bits of attentionBackward(), however many workers share the call.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertRejects } from '../helpers/errors.mjs';
import { randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { assertSameBits, untilWorkersRun, watchWorkers } from '../helpers/workers.mjs';
import { entries, problemOf } from './gradients-options.mjs';

/**
 * The forward pass, and what the backward pass is called with.
 * @param {import('sdpa').Sdpa} sdpa
 * @param {any} problem
 * @returns {[any, any, any, any, any]}
 */
function callOf(sdpa, { query, key, value, upstream, options }) {
  const { out, lse } = sdpa.attention(query, key, value, { ...options, returnLse: true });
  return [query, key, value, { out, lse, ...upstream }, options];
}

/** Gradients as tensors, dScale too. @param {any} result */
const tensors = ({ dScale, ...rest }) => ({ ...rest, dScale: { data: Float64Array.of(dScale), shape: [1] } });

const random = randomSource(11);
const sizes = { B: 3, Hq: 4, Hkv: 2 };
const { L, S } = problemOf([]).sizes;

/** Biases whose gradients are sums over several units, and one of each unit's own. @type {[string, any][]} */
const biases = [[S], [L, S], [4, 1, 1], [4, L, S], [3, 1, L, S], [3, 4, L, 1], [1, 1, 1, 1]].map((shape) => [
  `a bias of shape [${shape}]`,
  { ...problemOf([], sizes), options: { bias: random.tensor(...shape) } },
]);

/** @type {[string, any][]} */
const calls = [
  ...entries.map(
    (entry) => /** @type {[string, any]} */ ([entry.name, problemOf([entry], entry.sizes?.B ? {} : { B: 3 })]),
  ),
  ...biases,
  ['one key head for many query heads', problemOf([], { B: 1, Hq: 5, Hkv: 1 })],
  ['no dLse', { ...problemOf([], sizes), upstream: { dOut: problemOf([], sizes).upstream.dOut } }],
  ['no keys', problemOf([], { S: 0 })],
  ['no queries', problemOf([], { L: 0 })],
  ['tensors without a batch', withoutBatch()],
  ['rows before heads', rowsFirst()],
];

function withoutBatch() {
  const { query, key, value, upstream } = problemOf([], { B: 1, Hq: 4, Hkv: 2 });
  const cut = ({ data, shape }) => ({ data, shape: shape.slice(1) });
  return {
    query: cut(query),
    key: cut(key),
    value: cut(value),
    upstream: { dOut: cut(upstream.dOut), dLse: cut(upstream.dLse) },
    options: {},
  };
}

function rowsFirst() {
  const tensor = (/** @type {number[]} */ ...shape) => random.tensor(...shape);
  return {
    query: tensor(2, 40, 4, 6),
    key: tensor(2, 70, 2, 6),
    value: tensor(2, 70, 2, 5),
    upstream: { dOut: tensor(2, 40, 4, 5), dLse: tensor(2, 4, 40) },
    options: { layout: 'blhd', bias: tensor(40, 70) },
  };
}

for (const threads of [0, 1, 2, 3, 7]) {
  test(`${threads} workers give the bits of one call`, async (t) => {
    const { workers, slices } = watchWorkers(t);
    const sdpa = await loadVariant({ threads });
    if (threads > 0) await untilWorkersRun(sdpa, threads);
    for (const [name, problem] of calls) {
      const args = callOf(sdpa, problem);
      const want = tensors(sdpa.attentionBackward(...args));
      const before = slices().length;
      assertSameBits(tensors(await sdpa.attentionBackwardAsync(...args)), want, name);
      if (threads > 0 && !name.startsWith('no ')) {
        assert.ok(slices().length > before, `${name} was not computed by workers`);
      }
    }
    assert.equal(workers.length, threads);
    sdpa.dispose();
  });
}

test('calls that run at the same time, forward and backward, do not mix', async () => {
  const sdpa = await loadVariant({ threads: 2 });
  const both = await Promise.all(
    calls.slice(0, 8).map(async ([name, problem]) => {
      const args = callOf(sdpa, problem);
      const [query, key, value, , options] = args;
      const [backward, forward] = await Promise.all([
        sdpa.attentionBackwardAsync(...args),
        sdpa.attentionAsync(query, key, value, options),
      ]);
      assertSameBits(tensors(backward), tensors(sdpa.attentionBackward(...args)), name);
      assertSameBits(forward, sdpa.attention(query, key, value, options), name);
      return true;
    }),
  );
  assert.equal(both.length, 8);
  sdpa.dispose();
});

for (const threads of [0, 2]) {
  test(`${threads} workers: the inputs are copied before it returns, and rows are reported as they are done`, async () => {
    const sdpa = await loadVariant({ threads });
    const problem = problemOf(
      entries.filter(({ name }) => name === 'bias'),
      { B: 4 },
    );
    const args = callOf(sdpa, problem);
    const want = tensors(sdpa.attentionBackward(...args));
    /** @type {{ done: number, total: number }[]} */
    const reports = [];
    const onProgress = (/** @type {any} */ progress) => void reports.push(progress);
    const promise = sdpa.attentionBackwardAsync(args[0], args[1], args[2], args[3], { ...args[4], onProgress });
    for (const { data } of [args[0], args[1], args[2], args[4].bias, ...Object.values(args[3])]) data.fill(NaN);
    assertSameBits(tensors(await promise), want);
    assert.ok(reports.length > 0 && reports.every(({ total }) => total === 4 * 2 * 61));
    assert.ok(reports.every(({ done }, n) => done > (n === 0 ? 0 : reports[n - 1].done)));
    assert.equal(reports.at(-1)?.done, 4 * 2 * 61);
    sdpa.dispose();
  });

  test(`${threads} workers: an abort rejects with its reason, and the instance goes on`, async () => {
    const sdpa = await loadVariant({ threads });
    const args = callOf(sdpa, problemOf([], { B: 4, Hq: 4, Hkv: 4, L: 300, S: 300 }));
    const given = /** @type {[any, any, any, any]} */ (args.slice(0, 4));
    await assert.rejects(
      sdpa.attentionBackwardAsync(...given, { signal: AbortSignal.abort('at once') }),
      (error) => error === 'at once',
    );
    const controller = new AbortController();
    const onProgress = () => controller.abort('enough');
    const promise = sdpa.attentionBackwardAsync(...given, { signal: controller.signal, onProgress });
    await assert.rejects(promise, (error) => error === 'enough');
    const thrown = new Error('from the callback');
    await assert.rejects(
      sdpa.attentionBackwardAsync(...given, {
        onProgress: () => {
          throw thrown;
        },
      }),
      (error) => error === thrown,
    );
    assertSameBits(tensors(await sdpa.attentionBackwardAsync(...given)), tensors(sdpa.attentionBackward(...given)));
    sdpa.dispose();
  });
}

test('what attentionBackward() refuses is refused, as a rejection', async () => {
  const sdpa = await loadVariant({ threads: 0 });
  const [query, key, value, given] = callOf(sdpa, problemOf([]));
  const run = (/** @type {any} */ g, /** @type {any} */ options) =>
    sdpa.attentionBackwardAsync(query, key, value, g, options);
  await assertRejects(run({ ...given, lse: undefined }, {}), 'type', /^lse must be a tensor/);
  await assertRejects(run(given, { scores: 'weights' }), 'option', /does not take the option 'scores'/);
  await assertRejects(run(given, { signal: 7 }), 'type', /signal must be an AbortSignal/);
  await assertRejects(run(given, { casual: true }), 'unknown-option', /casual/);
  sdpa.dispose();
  await assertRejects(run(given, {}), 'disposed', /disposed/);
});
