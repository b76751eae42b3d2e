// Workers that are ended in the middle of calls, over and over: each call is answered, with the right bits or with an error.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { randomSource } from '../js/helpers/reference.mjs';
import { AttentionError } from 'sdpa';
import { loadVariant } from '../js/helpers/sdpa.mjs';
import {
  assertSameBits,
  endsOfWorkers,
  longCall,
  mortal,
  untilWorkersRun,
  watchWorkers,
} from '../js/helpers/workers.mjs';

const losses = 60;
const { query, key, value } = longCall();

for (const [how, kill] of endsOfWorkers) {
  test(`${losses} workers that are ${how} take no call with them`, async (t) => {
    const { workers } = watchWorkers(t, { program: mortal });
    const sdpa = /** @type {any} */ (await loadVariant({ threads: 3 }));
    const { uniform } = randomSource(3);
    const wanted = {
      attention: sdpa.attention(query, key, value, { causal: true }),
      weights: sdpa.attentionWeights(query, key, { columnSums: true }),
    };
    await untilWorkersRun(sdpa, 1);
    for (let n = 0; n < losses; n++) {
      const calls = [
        sdpa.attentionAsync(query, key, value, { causal: true }),
        sdpa.attentionWeightsAsync(query, key, { columnSums: true }),
        sdpa.attentionAsync(query, key, value, { causal: true }),
      ];
      await wait(uniform() * 15);
      kill(workers[workers.length - 1 - (n % Math.min(2, workers.length))]);
      if (n % 10 === 9) workers.forEach((worker) => kill(worker));
      const [first, weights, third] = await Promise.all(calls);
      assertSameBits(first, wanted.attention);
      assertSameBits(weights, wanted.weights);
      assertSameBits(third, wanted.attention);
    }
    // And it still works with workers.
    await untilWorkersRun(sdpa, 1);
    sdpa.dispose();
  });

  test(`a sharded cache whose workers are ${how} answers every call, and a new one works`, async (t) => {
    const { workers } = watchWorkers(t, { program: mortal });
    const sdpa = /** @type {any} */ (await loadVariant({ threads: 2 }));
    const { uniform, tensor } = randomSource(4);
    const x = tensor(1, 4, 900, 32);
    const plain = sdpa.createKVCache({ batch: 1, numKvHeads: 4, headDim: 32 });
    plain.append(x, x);
    const want = plain.attend(x);
    // The end of a worker is noticed a moment later: a cache that is made until then may be given to it.
    const filled = async () => {
      for (let attempt = 1; ; attempt++) {
        const cache = sdpa.createShardedKVCache({ batch: 1, numKvHeads: 4, headDim: 32 });
        try {
          await cache.append(x, x);
          return cache;
        } catch (error) {
          assert.ok(AttentionError.is(error) && attempt < 10, /** @type {any} */ (error).stack);
          cache.dispose();
          await wait(5);
        }
      }
    };
    let [answered, refused] = [0, 0];
    for (let n = 0; n < losses / 3; n++) {
      const cache = await filled();
      const calls = [cache.attend(x), cache.attend(x), cache.append(x, x)];
      // While the first is computed, or the second, or at once.
      if (n % 3 === 0) await calls[0];
      if (n % 3 === 1) await wait(uniform() * 20);
      if (workers.length > 0) kill(workers[workers.length - 1]);
      for (const [index, end] of (await Promise.allSettled(calls)).entries()) {
        if (end.status === 'fulfilled') {
          answered++;
          if (index < 2) assertSameBits(end.value, want);
        } else {
          refused++;
          assert.ok(AttentionError.is(end.reason), String(end.reason?.stack));
        }
      }
      cache.dispose();
    }
    assert.equal(answered + refused, losses);
    assert.ok(answered >= losses / 9, `${answered} answered`);
    assert.ok(workers.length > 2, 'no worker was ever replaced');
    const cache = await filled();
    assertSameBits(await cache.attend(x), want);
    cache.dispose();
    sdpa.dispose();
  });
}
