// What is timed beside plain calls: that its checks find what is wrong, and what the tables say.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from 'sdpa';
import { halfToNumber, randomSource } from '../../../tests/js/helpers/reference.mjs';
import { blockCalls } from '../../js/block-calls.mjs';
import { cacheCalls } from '../../js/cache-calls.mjs';
import { flops } from '../../js/cases.mjs';
import { SETS } from '../../js/comparisons.mjs';
import { gradientCalls } from '../../js/gradient-calls.mjs';
import { fillNormal } from '../../js/normals.mjs';
import { optionCalls } from '../../js/option-calls.mjs';
import { comparisonTables } from '../../js/report-comparisons.mjs';
import { toHalf, toInt8Row } from '../../js/rounding.mjs';
import { largestDifference } from '../../js/statistics.mjs';
import { StoredTokens, VALUE_START } from '../../js/stored-tokens.mjs';
import { timeTogether } from '../../js/together.mjs';
import { weightCalls } from '../../js/weight-calls.mjs';

/** @typedef {import('sdpa').Sdpa} Sdpa */

/**
 * @param {Sdpa} sdpa
 * @param {Record<string, Function>} methods to take instead of its own
 * @returns {Sdpa}
 */
const withMethods = (sdpa, methods) =>
  new Proxy(sdpa, {
    get(_, name) {
      const own = Reflect.get(sdpa, name);
      return methods[String(name)] ?? (typeof own === 'function' ? own.bind(sdpa) : own);
    },
  });

/** An instance that overlooks every option but causal. @param {Sdpa} sdpa */
const forgetful = (sdpa) =>
  withMethods(sdpa, {
    attention: (/** @type {any} */ q, /** @type {any} */ k, /** @type {any} */ v, /** @type {any} */ { causal, out }) =>
      sdpa.attention(q, k, v, { out, ...(causal && { causal }) }),
  });

test('each option and block mask that is timed is checked: one that is overlooked is found', async () => {
  const sdpa = await load({ variant: 'simd' });
  for (const { group, case: c, kinds } of SETS) {
    if (group !== 'options' && group !== 'blocks') continue;
    const calls = group === 'options' ? optionCalls : blockCalls;
    const length = group === 'blocks' ? 2048 : c.seqlenQ;
    const small = { ...c, numHeads: 1, numKvHeads: 1, seqlenQ: length, seqlenKv: length };
    for (const kind of kinds) {
      const { facts, dispose } = calls(sdpa, small, [kind]);
      assert.ok(facts[kind].error < 2e-6, `${kind}: ${facts[kind].error}`);
      dispose();
      assert.throws(() => calls(forgetful(sdpa), small, [kind]), /error in .* is /, kind);
    }
  }
  sdpa.dispose();
});

test('gradients and weights are checked, and counted as 2.5 forward passes and by their memory', async () => {
  const sdpa = await load({ variant: 'simd' });
  const small = { ...SETS[0].case, option: /** @type {const} */ ('causal'), numHeads: 4, numKvHeads: 2 };
  const { facts, dispose } = gradientCalls(sdpa, small, ['causal']);
  assert.ok(facts.causal.error > 0 && facts.causal.error < 5e-6, `error ${facts.causal.error}`);
  assert.equal(facts.causal.flops, 2.5 * flops(small));
  dispose();
  const wrong = withMethods(sdpa, {
    attentionBackward: (/** @type {Parameters<Sdpa['attentionBackward']>} */ ...args) => {
      const found = sdpa.attentionBackward(...args);
      found.dKey.data[found.dKey.data.length - 1] += 1e-3;
      return found;
    },
  });
  assert.throws(() => gradientCalls(wrong, small, ['causal']), /error of the gradients of bert512 is /);

  const one = { ...small, numHeads: 1, numKvHeads: 1, seqlenQ: 1024, seqlenKv: 1024 };
  const weights = await weightCalls(sdpa, one, ['pool-64x32']);
  assert.ok(weights.facts['pool-64x32'].error < 5e-6);
  assert.ok(Number(weights.facts['pool-64x32'].extra) > 64 * 32 * 4);
  weights.dispose();
  sdpa.dispose();
});

test('caches of each kind hold their tokens and give what follows from them', async () => {
  const sdpa = await load({ variant: 'simd' });
  const set = SETS.find(({ group }) => group === 'caches');
  assert.ok(set);
  const small = { ...set.case, numHeads: 4, numKvHeads: 2, seqlenKv: 2048 };
  const { facts, calls, dispose } = await cacheCalls(sdpa, small, set.kinds);
  assert.deepEqual(Object.keys(calls).sort(), [...set.kinds].sort());
  const elements = 2 * 2 * 2048 * 64;
  assert.equal(facts.float32.held, 4 * elements);
  assert.equal(facts.float16.held, 2 * elements);
  assert.equal(facts.int8.held, elements + (4 * elements) / 64);
  dispose();
  sdpa.dispose();
});

test('a result that is NaN anywhere is wrong', () => {
  assert.equal(largestDifference([1, 2, 3], [1, 2.5, 3]), 0.5);
  for (const found of [
    [NaN, 2],
    [1, NaN],
  ])
    assert.equal(largestDifference(found, [1, 2]), Infinity);
});

test('the check of a cache takes the mean of equal values, and nothing else', () => {
  const sizes = { batch: 1, numHeads: 1, numKvHeads: 1, seqlenQ: 1, seqlenKv: 2, headDim: 4 };
  const stored = new StoredTokens({ nickname: 'c', option: 'dense', ...sizes }, new Float32Array(4));
  const values = new Float32Array(4 * 3);
  fillNormal(values, VALUE_START);
  // A query of zeros sees both tokens alike.
  const mean = (/** @type {number} */ first) =>
    Float32Array.from({ length: 4 }, (_, d) => (values[first * 4 + d] + values[first * 4 + 4 + d]) / 2);
  assert.ok(stored.check('float32', 0, mean(0)) < 1e-7);
  assert.ok(stored.check('float32', 1, mean(1)) < 1e-7);
  for (const wrong of [mean(1), mean(0).map((x, d) => (d === 3 ? x + 3e-6 : x)), mean(0).fill(NaN, 2, 3)]) {
    assert.throws(() => stored.check('float32', 0, wrong), /the error of c over a cache of float32 is /);
  }
  assert.throws(() => stored.check('int8', 0, mean(0)), /over a cache of int8/);
});

test('float16 is rounded to nearest, ties to even', () => {
  const finite = Array.from({ length: 0x7c00 }, (_, bits) => halfToNumber(bits));
  finite.forEach((x, bits) => {
    assert.equal(toHalf(x), x);
    assert.ok(toHalf(-x) === -x, `${-x}`);
    const next = finite[bits + 1];
    if (next === undefined) return;
    assert.equal(toHalf((x + next) / 2), bits % 2 ? next : x);
    assert.equal(toHalf(x + (next - x) * 0.49), x);
    assert.equal(toHalf(x + (next - x) * 0.51), next);
  });
});

test('an int8 row is off by half a step of its largest number at the most', () => {
  const { normal } = randomSource(5);
  const row = Float32Array.from({ length: 64 }, normal);
  const step = Math.fround(row.reduce((most, x) => Math.max(most, Math.abs(x)), 0) / 127);
  const stored = toInt8Row(row);
  row.forEach((x, d) => {
    assert.ok(Number.isInteger(stored[d] / step), `${stored[d]} in steps of ${step}`);
    assert.ok(Math.abs(stored[d] - x) <= step / 2 + 1e-12, `${x} as ${stored[d]}`);
  });
  assert.deepEqual([...toInt8Row(new Float32Array(3))], [0, 0, 0]);
});

test('calls that are timed together all run in each turn, which begins with another one each time', () => {
  /** @type {string[]} */
  const order = [];
  const call = (/** @type {string} */ name) => () => {
    order.push(name);
    const start = performance.now();
    while (performance.now() - start < 50);
  };
  const { turns } = timeTogether({ a: call('a'), b: call('b'), c: call('c') }, 3);
  assert.deepEqual(order.slice(-9).join(''), 'abcbcacab');
  for (const turn of turns) for (const name of ['a', 'b', 'c']) assert.ok(turn[name] >= 50, JSON.stringify(turn));
});

test('the tables show times over the plain call’s, tiles, and what caches hold; old results have none', () => {
  const name = (/** @type {string} */ what) => ({ name: `attention/${what}`, nickname: 'n' });
  const timing = { variant: /** @type {const} */ ('simd'), ms: 2, plain: 10, ratio: 0.2, error: 1e-7, otherLoad: 0 };
  const tiles = { tiles: 8, full: 1, partial: 2, skipped: 5, cells: 100, density: 0.16 };
  const markdown = comparisonTables(
    /** @type {any} */ ({
      comparisons: {
        options: [
          { ...name('options/dense+sinks'), timings: [{ ...timing, ms: 11, ratio: 1.1 }] },
          { ...name('options/dense+window'), share: 0.18, timings: [{ ...timing, overIdeal: 1.11, otherLoad: 0.3 }] },
        ],
        blocks: [{ ...name('blocks/64x64'), tiles, share: 0.16, timings: [{ ...timing, overIdeal: 1.25 }] }],
        caches: [{ ...name('caches/int8'), held: 5e6, heldRatio: 0.25, timings: [{ ...timing, gbps: 2.5 }] }],
        backward: [{ ...name('backward/causal'), timings: [{ ...timing, ms: 30, ratio: 3, gflops: 25, speed: 0.83 }] }],
        weights: [{ ...name('weights/causal+pool-8x8'), timings: [{ ...timing, extra: 2e6 }] }],
      },
    }),
  ).join('\n');
  for (const line of [
    '| `options/dense+sinks` | – | 11.0 ms, 1.10× |',
    '| `options/dense+window` | 18 % | 2.00 ms, 0.20× (1.11×) (noisy) |',
    '| `blocks/64x64` | 1 full, 2 partial, 5 skipped tiles | 16 % | 2.00 ms, 0.20× (1.25×) |',
    '| `caches/int8` | 5.0 MB, 0.25× | 2.00 ms, 0.20×, 2.50 GB/s |',
    '| `backward/causal` | 30.0 ms, 25.0 GFLOP/s, 83 % of forward |',
    '| `weights/causal+pool-8x8` | 2.00 ms, 0.20×, 2.0 MB |',
  ]) {
    assert.ok(markdown.includes(`${line}\n`), `${line}\n\n${markdown}`);
  }
  assert.deepEqual(comparisonTables(/** @type {any} */ ({})), []);
});
