import { PagedRows } from './paged-rows.js';
import { RingRows } from './ring-rows.js';
import { PlainRows } from './rows.js';

/**
 * The rows of an empty cache of the kind that `spec` says.
 * @param {import('../runtime.js').Runtime} runtime
 * @param {import('./cache-options.js').CacheSpec} spec
 * @returns {import('./rows.js').Rows}
 * @throws RangeError `out-of-memory`
 */
export function makeRows(runtime, spec) {
  const { batch, numKvHeads, headDim, headDimV } = spec;
  // A token of each row, at the least: before the lists of the rows are made, which no limit counts.
  runtime.afford(batch * numKvHeads * (headDim + headDimV), `a KV cache of ${batch} rows`);
  const Kind = spec.window ? RingRows : spec.pageSize ? PagedRows : PlainRows;
  return new Kind(runtime, spec);
}

/**
 * Tokens of a row that a cache's first memory can hold.
 * @param {import('./cache-options.js').CacheSpec} spec
 */
export function firstCapacity({ batch, capacity, window, globalKeys, pageSize }) {
  if (window) return globalKeys + window;
  return pageSize ? batch * Math.ceil(capacity / pageSize) * pageSize : capacity;
}
