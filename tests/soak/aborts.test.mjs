// A thousand aborts at random moments, of every asynchronous call: each call ends with its reason or its result, and the instance goes on as
// if nothing had been.

import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { setImmediate as pass, setTimeout as wait } from 'node:timers/promises';
import { randomSource } from '../js/helpers/reference.mjs';
import { loadVariant } from '../js/helpers/sdpa.mjs';
import { assertSameBits, longCall } from '../js/helpers/workers.mjs';

const aborts = 1000;
const { query, key, value } = longCall();

/** @param {any} sdpa @returns {Record<string, { sync: () => any, async: (signal?: AbortSignal) => Promise<any> }>} */
function callsOf(sdpa) {
  const options = { causal: true };
  const forward = sdpa.attention(query, key, value, { ...options, returnLse: true });
  const given = { out: forward.out, lse: forward.lse, dOut: forward.out };
  const image = { height: 30, width: 30, windowSize: 6, shift: 2 };
  return {
    attention: {
      sync: () => sdpa.attention(query, key, value, options),
      async: (signal) => sdpa.attentionAsync(query, key, value, { ...options, signal }),
    },
    weights: {
      sync: () => sdpa.attentionWeights(query, key, { ...options, stats: true }).stats,
      async: async (signal) =>
        (await sdpa.attentionWeightsAsync(query, key, { ...options, stats: true, signal })).stats,
    },
    backward: {
      sync: () => sdpa.attentionBackward(query, key, value, given, options),
      async: (signal) => sdpa.attentionBackwardAsync(query, key, value, given, { ...options, signal }),
    },
    windows: {
      sync: () => sdpa.windowAttention2d(query, key, value, image),
      async: (signal) => sdpa.windowAttention2dAsync(query, key, value, { ...image, signal }),
    },
  };
}

/** A gradient can also be a number. @param {any} result */
const tensorsOf = (result) => Object.fromEntries(Object.entries(result).filter(([, tensor]) => tensor?.data));

for (const threads of [0, 2]) {
  test(`${aborts} aborts ${threads ? 'on workers' : 'on this thread'} leave the instance as it was`, async () => {
    const sdpa = /** @type {any} */ (await loadVariant({ threads }));
    const { uniform } = randomSource(threads + 1);
    const calls = callsOf(sdpa);
    const names = Object.keys(calls);
    const wanted = Object.fromEntries(names.map((name) => [name, calls[name].sync()]));
    const check = (/** @type {string} */ name, /** @type {any} */ got) =>
      assertSameBits(tensorsOf(got), tensorsOf(wanted[name]), name);
    for (const name of names) check(name, await calls[name].async());
    const { held } = sdpa.memory();
    /** @type {Record<string, number>} */
    const ends = { aborted: 0, finished: 0 };
    for (let n = 0; n < aborts; n++) {
      const name = names[n % names.length];
      const controller = new AbortController();
      const promise = calls[name].async(controller.signal).then(
        (got) => {
          check(name, got);
          ends.finished++;
        },
        (error) => {
          assert.equal(error, n);
          ends.aborted++;
        },
      );
      // At once, after some turns of the event loop, or after some milliseconds.
      if (n % 3 === 1) for (let turns = uniform() ** 3 * 60; turns > 0; turns--) await pass();
      if (n % 3 === 2) await wait(uniform() * 12);
      controller.abort(n);
      await promise;
      assert.equal(getEventListeners(controller.signal, 'abort').length, 0);
      if (n % 100 === 0) check(name, await calls[name].async());
    }
    assert.ok(ends.aborted > aborts / 10, JSON.stringify(ends));
    for (const name of names) check(name, await calls[name].async());
    for (let turns = 0; turns < 20; turns++) await pass();
    assert.ok(sdpa.memory().held <= held, `${sdpa.memory().held - held} bytes were lost`);
    sdpa.dispose();
  });
}
