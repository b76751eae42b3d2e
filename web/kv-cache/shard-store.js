// Shards of caches, on the thread that keeps them: each has some heads of a cache in the memory of this thread's module. Orders
// are plain data, and are obeyed as they come.

import { callOf, operand, outOver } from '../pool/slice-call.js';
import { Turner } from '../turner.js';
import { outShape } from '../validate.js';
import { beginAppend } from './append.js';
import { attendCall } from './attend.js';
import { beginEvict, shortenTo } from './evict.js';
import { makeRows } from './make-rows.js';

/**
 * @typedef {import('./rows.js').Rows} Rows
 * @typedef {import('./rows.js').Step} Step
 * @typedef {import('../tensor.js').DType} DType
 */

/** A CacheSpec as plain data. @typedef {Omit<import('./cache-options.js').CacheSpec, 'rope'> & { rope: import('../turner.js').Angles | null }} ShardSpec */

/**
 * What a store is told. `cache` is the shard's number. An append and an eviction take memory only; 'settle' then says whether they
 * are carried out, once all shards of the cache have answered.
 * @typedef {{ what: 'create', cache: number, spec: ShardSpec }} Create
 * @typedef {{ what: 'fork', cache: number, from: number }} Fork
 * @typedef {{ data: Float32Array | Uint16Array, dtype: DType }} Elements
 * @typedef {{ what: 'append', cache: number, key: Elements, value: Elements, tokens: number, added: Int32Array }} Append elements (batch, heads, tokens, size)
 * @typedef {{ what: 'evict', cache: number, gone: number[] }} Evict
 * @typedef {{ what: 'settle', cache: number, carryOut: boolean }} Settle
 * @typedef {{ what: 'shorten', cache: number, lengths: Int32Array }} Shorten
 * @typedef {{ what: 'attend', cache: number, work: import('../pool/slice-runner.js').SliceWork, segments: Int32Array | null, blocks: import('../options.js').Blocks | null }} Attend
 * @typedef {{ what: 'drop', cache: number }} Drop
 * @typedef {Create | Fork | Append | Evict | Settle | Shorten | Attend | Drop} ShardOrder
 */

/** Memory of a shard. @typedef {{ capacity: number, byteLength: number }} ShardMemory */

/** @typedef {ShardMemory | import('../pool/slice-runner.js').SliceResult | {}} ShardAnswer */

export class ShardStore {
  #runtime;
  /** @type {Map<number, Rows>} */
  #shards = new Map();
  /** What waits for 'settle'. @type {Map<number, Step>} */
  #steps = new Map();

  /** @param {import('../runtime.js').Runtime} runtime */
  constructor(runtime) {
    this.#runtime = runtime;
  }

  /**
   * @param {ShardOrder} order
   * @returns {ShardAnswer}
   * @throws what an order of that kind throws on a whole cache, with nothing changed
   */
  obey(order) {
    const { cache } = order;
    if (order.what === 'create') {
      const { spec } = order;
      const rope = spec.rope && new Turner(spec.rope);
      this.#shards.set(cache, makeRows(this.#runtime, { ...spec, rope }));
      return this.#memory(cache);
    }
    const rows = this.#shards.get(order.what === 'fork' ? order.from : cache);
    // Dropped meanwhile: by the time somebody hears of it, nobody wants it.
    if (!rows) return {};
    switch (order.what) {
      case 'fork':
        this.#shards.set(cache, /** @type {import('./paged-rows.js').PagedRows} */ (rows).fork());
        return {};
      case 'append':
        this.#steps.set(cache, beginAppend(rows, tokensOf(rows, order)));
        return this.#memory(cache);
      case 'evict':
        this.#steps.set(cache, beginEvict(rows, order.gone));
        return this.#memory(cache);
      case 'settle':
        this.#settle(cache, order.carryOut);
        return {};
      case 'shorten':
        shortenTo(rows, order.lengths);
        return {};
      case 'attend':
        return attend(rows, order);
      case 'drop':
        this.#settle(cache, false);
        rows.dispose();
        this.#shards.delete(cache);
        return {};
    }
  }

  /**
   * @param {number} cache
   * @param {boolean} carryOut
   */
  #settle(cache, carryOut) {
    const step = this.#steps.get(cache);
    this.#steps.delete(cache);
    if (carryOut) step?.settle();
    else step?.undo();
  }

  /** @param {number} cache @returns {ShardMemory} */
  #memory(cache) {
    const { capacity, storage } = /** @type {Rows} */ (this.#shards.get(cache));
    return { capacity, byteLength: storage.byteLength };
  }
}

/**
 * @param {Rows} rows
 * @param {Append} order
 * @returns {import('./append.js').Tokens}
 */
function tokensOf({ spec }, { key, value, tokens, added }) {
  /** @param {Elements} elements @param {number} dim */
  const read = ({ data, dtype }, dim) => operand(data, dtype, [spec.batch, spec.numKvHeads, tokens, dim], 0);
  return { keys: read(key, spec.headDim), values: read(value, spec.headDimV), tokens, blhd: false, added };
}

/**
 * @param {Rows} rows
 * @param {Attend} order
 * @returns {import('../pool/slice-runner.js').SliceResult}
 */
function attend(rows, { work, segments, blocks }) {
  const start = performance.now();
  const { batch, numKvHeads: heads, headDim, headDimV } = rows.spec;
  const sizes = { batch, heads, seqlen: rows.longest, headDim, headDimV };
  const call = callOf(work, { ...sizes, segments, queryStarts: null, keyStarts: null });
  call.queryOffsets = Int32Array.from(work.offsets);
  call.blockMask = blocks;
  const shape = outShape(call);
  const { out, lse, scores } = attendCall(rows, call, shape, outOver(work.query, shape));
  return { out: out.data, lse: lse?.data, scores: scores?.data, milliseconds: performance.now() - start };
}
