// Aborts: at any moment, in any number, without a trace.

import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { assertSameBits, longCall, watchWorkers } from '../helpers/workers.mjs';

/** @param {Promise<unknown>} promise @param {unknown} reason */
const rejectsWith = (promise, reason) => assert.rejects(promise, (error) => error === reason);

/** @param {number} tasks */
async function pass(tasks) {
  for (let i = 0; i < tasks; i++) await new Promise((done) => setImmediate(done));
}

for (const threads of [0, 2]) {
  const how = threads ? 'on workers' : 'on this thread';

  test(`${how}: a signal that is aborted already rejects with its reason, and nothing is computed`, async (t) => {
    const { workers } = watchWorkers(t);
    const sdpa = await loadVariant({ threads });
    const { query, key, value } = longCall();
    const onProgress = () => assert.fail('something was computed');
    const reason = { any: 'value' };
    await rejectsWith(
      sdpa.attentionAsync(query, key, value, { signal: AbortSignal.abort(reason), onProgress }),
      reason,
    );
    await assert.rejects(sdpa.attentionAsync(query, key, value, { signal: AbortSignal.abort(), onProgress }), {
      name: 'AbortError',
    });
    assert.equal(workers.length, 0);
    sdpa.dispose();
  });

  test(`${how}: no slice is begun after an abort`, async (t) => {
    const { slices } = watchWorkers(t);
    const sdpa = await loadVariant({ threads });
    const { query, key, value } = longCall();
    const controller = new AbortController();
    let seen = 0;
    let sent = 0;
    const promise = sdpa.attentionAsync(query, key, value, {
      signal: controller.signal,
      onProgress: () => {
        seen++;
        controller.abort('enough');
        sent = slices().length;
      },
    });
    await rejectsWith(promise, 'enough');
    await pass(50);
    assert.equal(seen, 1);
    assert.equal(slices().length, sent);
    // What has been sent already goes to nobody; the next call gets its own results.
    assertSameBits(await sdpa.attentionAsync(query, key, value), sdpa.attention(query, key, value));
    assert.equal(seen, 1);
    sdpa.dispose();
  });

  test(`${how}: an abort ends the call at once, also one that waits for its turn`, async () => {
    const sdpa = await loadVariant({ threads });
    const { query, key, value } = longCall();
    const [first, second] = [new AbortController(), new AbortController()];
    let progress = 0;
    const calls = [
      sdpa.attentionAsync(query, key, value, { signal: first.signal, onProgress: () => progress++ }),
      sdpa.attentionAsync(query, key, value, { signal: second.signal, onProgress: () => progress++ }),
      sdpa.attentionAsync(query, key, value),
    ];
    second.abort('second');
    await rejectsWith(calls[1], 'second');
    assert.equal(progress, 0, 'the abort waited for the call before');
    first.abort('first');
    await rejectsWith(calls[0], 'first');
    assert.equal(progress, 0);
    assertSameBits(await calls[2], sdpa.attention(query, key, value));
    sdpa.dispose();
  });

  test(`${how}: an abort after the end does nothing, and no listener is left`, async () => {
    const sdpa = await loadVariant({ threads });
    const { query, key, value } = longCall();
    const controller = new AbortController();
    const { signal } = controller;
    const promise = sdpa.attentionAsync(query, key, value, { signal });
    assert.equal(getEventListeners(signal, 'abort').length, 1);
    const result = await promise;
    assert.equal(getEventListeners(signal, 'abort').length, 0);
    const failing = sdpa.attentionAsync(query, key, value, {
      signal,
      onProgress: () => {
        throw new Error('mine');
      },
    });
    await assert.rejects(failing, /mine/);
    assert.equal(getEventListeners(signal, 'abort').length, 0);
    controller.abort();
    assertSameBits(result, sdpa.attention(query, key, value));
    sdpa.dispose();
  });

  test(`${how}: two hundred aborts at random moments leave the instance as it was`, async () => {
    const sdpa = await loadVariant({ threads });
    const { query, key, value } = longCall();
    const { uniform } = randomSource(22);
    const want = sdpa.attention(query, key, value, { causal: true });
    await sdpa.attentionAsync(query, key, value);
    const { held } = sdpa.memory();
    let [aborted, finished] = [0, 0];
    for (let i = 0; i < 200; i++) {
      const controller = new AbortController();
      const options = { causal: true, signal: controller.signal };
      const promise = sdpa.attentionAsync(query, key, value, options).then(
        (got) => {
          assertSameBits(got, want);
          finished++;
        },
        (error) => {
          assert.equal(error, i);
          aborted++;
        },
      );
      await pass(Math.floor(uniform() ** 3 * 200));
      controller.abort(i);
      await promise;
      assert.equal(getEventListeners(controller.signal, 'abort').length, 0);
    }
    assert.equal(aborted + finished, 200);
    assert.ok(aborted > 0, `${finished} calls finished before their abort`);
    assertSameBits(await sdpa.attentionAsync(query, key, value, { causal: true }), want);
    await pass(10);
    assert.ok(sdpa.memory().held <= held, 'memory was lost');
    sdpa.dispose();
  });
}

test('long rows are computed in slices that are short enough to be stopped between', async (t) => {
  const { slices } = watchWorkers(t);
  const { tensor } = randomSource(23);
  const [query, key] = [tensor(96, 8), tensor(60_000, 8)];
  for (const threads of [0, 1]) {
    const sdpa = await loadVariant({ threads });
    /** @type {number[]} */
    const done = [];
    const got = await sdpa.attentionAsync(query, key, key, { onProgress: (progress) => done.push(progress.done) });
    // A slice of a whole block of rows is 46 million multiply-adds; the first is to be shorter, as the speed is not known yet.
    assert.ok(done[0] <= 24, `${done[0]} rows in the first slice`);
    assertSameBits(got, sdpa.attention(query, key, key));
    sdpa.dispose();
  }
  assert.ok(slices()[0].work.rows % 8 === 0, 'rows come in whole panels');
});
