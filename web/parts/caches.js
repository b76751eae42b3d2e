import { makePart } from '../combine-parts.js';
import { createKVCache } from '../kv-cache/index.js';
import { createShardedKVCache } from '../kv-cache/sharded-cache.js';
import { Keepers } from '../pool/keepers.js';

/**
 * @param {import('../runtime.js').Runtime} runtime
 * @param {import('../pool/station.js').Program} program
 * @param {number | 'auto'} threads
 */
const makeKeepers = (runtime, program, threads) => new Keepers(runtime, program, threads);

export const caches = /* @__PURE__ */ makePart('caches', { createKVCache, createShardedKVCache, makeKeepers });
