import { readCacheOptions } from './cache-options.js';
import { KVCache } from './kv-cache.js';
import { makeRows } from './make-rows.js';

/**
 * @param {import('../runtime.js').Runtime} runtime
 * @param {unknown} options see KVCacheOptions
 * @returns {KVCache}
 * @throws TypeError or RangeError with a `code`, before anything is allocated; RangeError `out-of-memory`
 */
export function createKVCache(runtime, options) {
  void runtime.exports; // throws once the instance is disposed of
  return new KVCache(makeRows(runtime, readCacheOptions(options)));
}
