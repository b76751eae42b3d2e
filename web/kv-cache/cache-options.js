// The options of createKVCache(), read once each and checked against one another.

import { rangeError, typeError } from '../errors.js';
import { dtypeCodes } from '../frame.js';
import { readNamed } from '../named-options.js';
import { flag, oneOf, whole } from '../option-values.js';
import { makeRope } from '../rope.js';

/**
 * Options of createKVCache().
 * @typedef {object} KVCacheOptions
 * @property {number} batch rows; each has a length of its own
 * @property {number} numKvHeads heads of keys and values
 * @property {number} headDim elements of a key
 * @property {number} [headDimV] elements of a value; headDim where absent
 * @property {'float32' | 'float16' | 'int8'} [dtype] how keys and values are kept; 'float32' where absent. float16: each number rounded
 *   to nearest, ties to even (from 65520 on to infinity). int8: one float32 scale, max|x|/127, for each token and head, and x/scale
 *   rounded to nearest, ties to even, so that no number is off by more than scale/2 = max|x|/254
 * @property {number} [capacity] tokens of each row that memory is taken for at once; 64 where absent. Twice as much is taken
 *   whenever it does not do
 * @property {boolean} [fixed] memory never grows: an append that does not fit into `capacity` is an error, `capacity`
 * @property {number} [window] makes the cache a ring: the last `window` tokens of each row stay, the newest included
 * @property {number} [globalKeys] of a ring: the first so many tokens of each row stay as well; 0 where absent
 * @property {number} [pageSize] keeps the tokens in pages of so many out of one pool, which caches made by fork() share; `capacity` is
 *   then what the pool has for each row at first, and with `fixed` what it has for all of them and their forks together
 * @property {import('../rope.js').RopeAngles} [rope] rotates keys as they are appended and queries as they attend, each by its position in
 *   its row
 */

/**
 * What a cache is made from: KVCacheOptions, checked.
 * @typedef {object} CacheSpec
 * @property {number} batch
 * @property {number} numKvHeads
 * @property {number} headDim
 * @property {number} headDimV
 * @property {'float32' | 'float16' | 'int8'} dtype
 * @property {number} capacity tokens of each row at first
 * @property {boolean} fixed
 * @property {number} window 0 = no ring
 * @property {number} globalKeys
 * @property {number} pageSize 0 = no pages
 * @property {Rope | null} rope
 * @property {number} firstHead which head of the caller's the first one is: of a shard
 */

/** @typedef {import('../turner.js').Turner} Rope */

const known = [
  'batch',
  'numKvHeads',
  'headDim',
  'headDimV',
  'dtype',
  'capacity',
  'fixed',
  'window',
  'globalKeys',
  'pageSize',
  'rope',
];

const storageTypes = { float32: dtypeCodes.float32, float16: dtypeCodes.float16, int8: dtypeCodes.int8 };

/** Tokens of each row where nothing is said. */
const usualCapacity = 64;

/** Lengths and positions are int32 in the kernel. */
export const mostTokens = 2 ** 31 - 1;

/**
 * @param {unknown} options
 * @param {string} what the method's name, for errors
 * @returns {CacheSpec}
 */
export function readCacheOptions(options, what = 'createKVCache') {
  const given = readNamed(what, options, known);
  for (const name of ['batch', 'numKvHeads', 'headDim']) {
    if (given[name] === undefined) throw typeError('type', `${what} needs the option ${name}, a whole number`);
  }
  const { batch, numKvHeads, headDim, headDimV = headDim, dtype = 'float32', window, pageSize } = given;
  const { capacity = usualCapacity, fixed = false, globalKeys = 0 } = given;
  whole('batch', batch, 1);
  whole('numKvHeads', numKvHeads, 1);
  whole('headDim', headDim, 1);
  whole('headDimV', headDimV, 1);
  oneOf('dtype', dtype, storageTypes);
  whole('capacity', capacity, 1);
  flag('fixed', fixed);
  if (window !== undefined) whole('window', window, 1);
  whole('globalKeys', globalKeys, 0);
  if (pageSize !== undefined) whole('pageSize', pageSize, 1);
  checkKind(given);
  const rope = given.rope === undefined ? null : makeRope(given.rope, headDim);
  return {
    batch,
    numKvHeads,
    headDim,
    headDimV,
    dtype,
    capacity,
    fixed,
    window: window ?? 0,
    globalKeys,
    pageSize: pageSize ?? 0,
    rope,
    firstHead: 0,
  };
}

/**
 * Options that exclude or need one another.
 * @param {Record<string, any>} given
 */
function checkKind({ capacity, fixed, window, globalKeys, pageSize }) {
  if (window !== undefined) {
    const size = `a cache with a window is a ring of window + globalKeys = ${window + (globalKeys ?? 0)} tokens`;
    if (pageSize !== undefined)
      throw rangeError('option', `window and pageSize exclude each other: ${size}, not paged`);
    if (capacity !== undefined) throw rangeError('option', `window and capacity exclude each other: ${size}`);
    if (fixed) throw rangeError('option', `window and fixed exclude each other: ${size} and is never full`);
  } else if (globalKeys) {
    throw rangeError('option', `globalKeys is ${globalKeys} but without a window a cache keeps every token`);
  }
  if (fixed && capacity === undefined) throw rangeError('option', 'fixed needs a capacity, the tokens of each row');
}

/**
 * @param {CacheSpec} spec
 * @throws RangeError `option` where a cache of this kind cannot be forked
 */
export function checkFork({ pageSize }) {
  if (!pageSize) throw rangeError('option', 'only a paged cache can fork: create it with the option pageSize');
}
