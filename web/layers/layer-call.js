// One call of a multi-head layer, read and checked: the call of attention() between its projections, on tensors that
// the projections will fill. Nothing is allocated before all is read: a view of wasm memory among the arguments would be
// empty once that has grown.

import { rangeError, show, typeError } from '../errors.js';
import { rowsOf } from '../kv-cache/kv-cache.js';
import { Operand, settleAll } from '../operand.js';
import { int32 } from '../option-values.js';
import { fitPlaces, readPlaces } from '../rope-places.js';
import { product } from '../tensor.js';
import { readCall, readQueryCall } from '../validate.js';
import { maskWithPadding } from './key-padding.js';
import { readInput } from './layer-input.js';

/**
 * @typedef {import('../kv-cache/kv-cache.js').KVCache} KVCache
 * @typedef {import('../kv-cache/rows.js').Rows} Rows
 * @typedef {import('../options.js').AttentionCall} AttentionCall
 * @typedef {import('../rope-places.js').Places} Places
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('./layer-input.js').LayerInput} LayerInput
 * @typedef {import('./packed-weights.js').PackedWeights} PackedWeights
 */

/**
 * What a layer is made of.
 * @typedef {object} LayerState
 * @property {Runtime} runtime
 * @property {PackedWeights} weights
 * @property {import('./weight-parts.js').LayerSizes} sizes
 * @property {{ rotate(array: Float32Array, offset: number, position: number): void } | null} rope
 * @property {() => void} checkLive throws where the layer or its instance has been disposed of
 */

/**
 * A cache that the call appends to.
 * @typedef {object} CacheUse
 * @property {KVCache} cache
 * @property {Rows} rows
 * @property {Int32Array} before lengths of its rows
 * @property {Int32Array} counts tokens that each row takes
 */

/**
 * @typedef {object} LayerCall
 * @property {LayerInput} input
 * @property {AttentionCall} call
 * @property {Operand} query (B, L, Hq, D), without a place yet, as are the next two
 * @property {Operand} key (B, S, Hkv, D)
 * @property {Operand} value (B, S, Hkv, Dv)
 * @property {number[]} headsShape (B, L, Hq, Dv): of what attention will give
 * @property {Places | null} places positions of the tokens of x, for rope
 * @property {CacheUse | null} use
 * @property {unknown} out as the caller gave it
 */

/** The layer's own options. */
const ownNames = /** @type {const} */ ([
  'cache',
  'keyPadding',
  'positions',
  'offset',
  'out',
  'mask',
  'queryLengths',
  'layout',
]);

/**
 * @param {any} options
 * @returns {Partial<Record<typeof ownNames[number], any>>} each read once
 */
function readOwn(options) {
  if (options === undefined) return {};
  if (Object.prototype.toString.call(options) !== '[object Object]') {
    throw typeError('type', `options must be an object, got ${show(options)}`);
  }
  /** @type {Record<string, any>} */
  const own = {};
  for (const name of ownNames) own[name] = options[name];
  if (own.layout !== undefined) {
    throw rangeError('option', 'a layer has no option layout: x is (batch, length, size) and the heads are its own');
  }
  return own;
}

/**
 * Reads everything of the caller's; from here on no code of the caller's runs.
 * @param {LayerState} layer
 * @param {unknown} x
 * @param {unknown} context
 * @param {unknown} options
 * @param {(rest: unknown) => unknown} readRest takes what else is needed out of the options of attention()
 * @returns {LayerCall}
 */
export function readLayerCall(layer, x, context, options, readRest = (rest) => rest) {
  const { runtime, weights, sizes, rope } = layer;
  const { numHeads, numKvHeads, headDim, headDimV } = sizes;
  const own = readOwn(options);
  const input = readInput(runtime, weights, x, context);
  const { lead, batch, seqlenQ } = input;
  const places = rope ? readRopePlaces(input, own.positions, own.offset) : null;
  if (!rope && (own.positions !== undefined || own.offset !== undefined)) {
    const name = own.positions === undefined ? 'offset' : 'positions';
    throw rangeError(
      'option',
      `${name} says where rotary embedding turns the tokens, but the layer was made without rope`,
    );
  }
  const queryLengths = own.queryLengths === undefined ? undefined : int32('queryLengths', own.queryLengths);
  const use = own.cache === undefined ? null : readUse(layer, own.cache, input, context, queryLengths);
  const seqlenKv = use ? longestAfter(use) : input.seqlenKv;

  const query = unplaced([...lead, seqlenQ, numHeads, headDim]);
  const key = unplaced([...lead, input.seqlenKv, numKvHeads, headDim]);
  const value = unplaced([...lead, input.seqlenKv, numKvHeads, headDimV]);
  const mask =
    own.keyPadding === undefined ? own.mask : maskWithPadding(runtime, own.keyPadding, own.mask, batch, seqlenKv);
  const rest = readRest(attentionOptions(options, { mask, queryLengths, layout: 'blhd' }));
  const call = use
    ? readQueryCall(runtime, query, { batch, numKvHeads, seqlenKv, headDim, headDimV }, rest)
    : readCall(runtime, query, key, value, rest);
  input.settle(runtime);
  settleAll(runtime, call);
  layer.checkLive();
  if (use) {
    if (rowsOf(use.cache) !== use.rows || use.rows.lengths.some((length, b) => length !== use.before[b])) {
      throw rangeError('option', 'the cache was changed while the arguments of forward were read');
    }
    if (places && own.positions === undefined && own.offset === undefined) {
      places.at = (b, i) => use.before[b] + i;
      places.perBatch = true;
    }
  }
  return {
    input,
    call,
    query,
    key,
    value,
    headsShape: [...lead, seqlenQ, numHeads, headDimV],
    places,
    use,
    out: own.out,
  };
}

/**
 * An operand that will be given a place in wasm memory.
 * @param {number[]} shape
 */
const unplaced = (shape) => new Operand(null, 'float32', shape, product('heads', shape), 0);

/**
 * The caller's options, wherever the object keeps them, with the layer's own in their places.
 * @param {any} options
 * @param {Record<string, unknown>} set
 */
function attentionOptions(options, set) {
  /** @type {PropertyDescriptorMap} */
  const own = {};
  for (const name of ownNames) own[name] = { value: set[name], enumerable: set[name] !== undefined };
  return Object.create(options ?? {}, own);
}

/**
 * @param {LayerInput} input
 * @param {unknown} positions
 * @param {unknown} offset
 */
function readRopePlaces(input, positions, offset) {
  if (!input.isSelf) {
    throw rangeError('option', 'the layer has rope, which turns x and its own keys: it takes no context');
  }
  const places = readPlaces(positions, offset);
  const { batch, seqlenQ } = input;
  fitPlaces(places, /** @type {any} */ ({ batch, length: seqlenQ }));
  return places;
}

/**
 * @param {LayerState} layer
 * @param {any} cache
 * @param {LayerInput} input
 * @param {unknown} context
 * @param {Int32Array | undefined} queryLengths
 * @returns {CacheUse}
 */
function readUse({ runtime, sizes, rope }, cache, { batch, seqlenQ, isSelf }, context, queryLengths) {
  const rows = rowsOf(cache);
  if (!rows) throw typeError('type', `cache must be made by sdpa.createKVCache(), got ${show(cache)}`);
  if (rows.runtime !== runtime) throw rangeError('option', 'cache belongs to another sdpa instance');
  if (!isSelf) throw rangeError('option', `cache keeps the keys of x: it takes no context, got ${show(context)}`);
  const { spec } = rows;
  if (spec.rope && rope) {
    throw rangeError(
      'option',
      'both the layer and the cache have rope, and the keys would be turned twice: give it to one',
    );
  }
  const wanted = { batch, numKvHeads: sizes.numKvHeads, headDim: sizes.headDim, headDimV: sizes.headDimV };
  for (const name of /** @type {(keyof typeof wanted)[]} */ (Object.keys(wanted))) {
    if (spec[name] !== wanted[name]) {
      throw rangeError('shape', `the cache's ${name} is ${spec[name]} but the call's is ${wanted[name]}`);
    }
  }
  // Of another number the call of attention() says what is wrong.
  const counts = queryLengths?.length === batch ? queryLengths : new Int32Array(batch).fill(seqlenQ);
  return { cache, rows, before: rows.lengths.slice(), counts };
}

/** @param {CacheUse} use */
const longestAfter = ({ before, counts }) => before.reduce((most, length, b) => Math.max(most, length + counts[b]), 0);
