import { readCacheOptions } from './cache-options.js';
import { KVCache } from './kv-cache.js';
import { PagedRows } from './paged-rows.js';
import { RingRows } from './ring-rows.js';
import { PlainRows } from './rows.js';

/**
 * @param {import('../runtime.js').Runtime} runtime
 * @param {unknown} options see KVCacheOptions
 * @returns {KVCache}
 * @throws TypeError or RangeError with a `code`, before anything is allocated; RangeError `out-of-memory`
 */
export function createKVCache(runtime, options) {
  void runtime.exports; // throws once the instance is disposed of
  const spec = readCacheOptions(options);
  const Kind = spec.window ? RingRows : spec.pageSize ? PagedRows : PlainRows;
  return new KVCache(new Kind(runtime, spec));
}
