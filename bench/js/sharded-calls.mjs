/** One token's query over a cache on this thread, and over the same tokens on one worker and on two. */

import { randomSource } from '../../tests/js/helpers/reference.mjs';
import { fillNormal } from './normals.mjs';
import { KEY_START, VALUE_START } from './stored-tokens.mjs';

/** @typedef {import('./cases.mjs').Case} Case */
/** @typedef {import('./workers.mjs').WorkerCalls} WorkerCalls */

/** Tokens that are appended at once. */
const CHUNK = 4096;

/**
 * @param {Record<'sync' | 'one' | 'two', import('sdpa').Sdpa>} instances `one` and `two` with so many threads
 * @param {Case} c
 * @returns {Promise<WorkerCalls>}
 */
export async function shardedCalls({ sync, one, two }, { numHeads, numKvHeads, seqlenKv, headDim }) {
  const options = { batch: 1, numKvHeads, headDim, capacity: seqlenKv, fixed: true };
  const whole = sync.createKVCache(options);
  const sharded = [one, two].map((sdpa) => sdpa.createShardedKVCache(options));
  for (let at = 0; at < seqlenKv; at += CHUNK) {
    const shape = [1, Math.min(CHUNK, seqlenKv - at), numKvHeads, headDim];
    const [key, value] = [KEY_START, VALUE_START].map((start) => {
      const data = new Float32Array(shape[1] * numKvHeads * headDim);
      fillNormal(data, start + at * numKvHeads * headDim);
      return { data, shape };
    });
    whole.append(key, value, { layout: 'blhd' });
    await Promise.all(sharded.map((cache) => cache.append(key, value, { layout: 'blhd' })));
  }
  const query = randomSource(3).tensor(1, numHeads, 1, headDim);
  const [first, second] = sharded;
  return {
    sync: { call: async () => whole.attend(query).out.data, ready: () => true },
    one: { call: async () => (await first.attend(query)).out.data, ready: () => first.threads === 1 },
    two: { call: async () => (await second.attend(query)).out.data, ready: () => second.threads === 2 },
    dispose: () => whole.dispose(),
  };
}
