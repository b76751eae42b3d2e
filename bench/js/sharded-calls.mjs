/** One token's query over a cache on this thread, and over the same tokens on one worker and on two. */

import { randomSource } from '../../tests/js/helpers/reference.mjs';
import { QUERY_SEED, tokenChunks } from './stored-tokens.mjs';

/** @typedef {import('./cases.mjs').Case} Case */
/** @typedef {import('./workers.mjs').WorkerCalls} WorkerCalls */

/** Tokens that are appended at once. */
const CHUNK = 4096;

/**
 * @param {Record<'sync' | 'one' | 'two', import('sdpa').Sdpa>} instances `one` and `two` with so many threads
 * @param {Case} c
 * @returns {Promise<WorkerCalls>}
 */
export async function shardedCalls({ sync, one, two }, c) {
  const { numHeads, numKvHeads, seqlenKv, headDim } = c;
  const options = { batch: 1, numKvHeads, headDim, capacity: seqlenKv, fixed: true };
  const whole = sync.createKVCache(options);
  const sharded = [one, two].map((sdpa) => sdpa.createShardedKVCache(options));
  for (const { key, value } of tokenChunks(c, 0, seqlenKv, CHUNK)) {
    whole.append(key, value, { layout: 'blhd' });
    await Promise.all(sharded.map((cache) => cache.append(key, value, { layout: 'blhd' })));
  }
  const query = randomSource(QUERY_SEED).tensor(1, numHeads, 1, headDim);
  const [first, second] = sharded;
  return {
    sync: { call: async () => whole.attend(query).out.data, ready: () => true },
    one: { call: async () => (await first.attend(query)).out.data, ready: () => first.threads === 1 },
    two: { call: async () => (await second.attend(query)).out.data, ready: () => second.threads === 2 },
    dispose: () => whole.dispose(),
  };
}
