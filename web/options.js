// The options of attention(), read once each: names, types and ranges that do not depend on the tensors' shapes.

import { rangeError, show, typeError } from './errors.js';
import { alignCodes, layoutCodes, scoresCodes } from './frame.js';
import { unknownName } from './named-options.js';
import * as arrays from './option-arrays.js';
import { finite, flag, int32, offset, oneOf, whole, windowBounds } from './option-values.js';

/** @typedef {import('./operand.js').Operand} Operand */

/** Numbers of query heads, (Hq) or (B, Hq). @typedef {Float32Array | readonly number[] | ({ readonly data: Float32Array | readonly number[] } & import('./tensor.js').Shaped)} PerHeadLike */

/** Ids of tokens, (length), the same for each batch row, or (B, length). @typedef {Int32Array | ({ readonly data: Int32Array } & import('./tensor.js').Shaped)} SegmentsLike */

/**
 * Options of attention(). B batch, Hq query heads, L query length, S key length; p = i + offset is the position of query i, j that of
 * key j. Options that compare the two are positional: causal, window, chunk and alibiSlopes.
 * @typedef {object} AttentionOptions
 * @property {number} [scale] factor of the scores; 1/√D where absent; any finite number
 * @property {number} [softcap] t = c·tanh(t/c) after scaling; 0 or absent = off
 * @property {import('./tensor.js').MaskLike | import('./tensor.js').SdpaTensor} [mask] boolean, non-zero = **attend** (to
 *   pass a mask whose true means "hide", invert it); each dimension 1 or that of (B, Hq, L, S), aligned on the right
 * @property {import('./tensor.js').TensorLike | import('./tensor.js').SdpaTensor} [bias] float, added to the scaled and
 *   capped scores; shapes as for mask; -Infinity = masked
 * @property {boolean} [causal] query i sees key j where j <= p
 * @property {readonly [number, number]} [window] [left, right]: p - left <= j <= p + right; the own position is not counted;
 *   Infinity = unlimited
 * @property {number} [chunk] c, in tokens: query i sees key j where floor(p / c) = floor(j / c); a whole number, 1 or more
 * @property {number} [globalKeys] n: the first n keys are seen in spite of the window's left bound and of the chunk, but not in spite of
 *   anything else (causal, the window's right bound, lengths, masks); of each sequence with cuSeqlens. 0 or absent = none
 * @property {PerHeadLike} [alibiSlopes] (Hq) or (B, Hq), finite: -slope·|p - j| is added to the capped scores, beside the bias.
 *   `sdpa.alibiSlopes(Hq)` makes the usual ones
 * @property {'lower-right' | 'upper-left'} [align] where query 0 stands when a positional option is used: offset = S - L (the
 *   last query at the last key; kvLengths[b] - L where given) or offset = 0. Required where L ≠ S, unless queryOffset or cuSeqlens is
 *   given
 * @property {number | Int32Array} [queryOffset] the offset itself, or one per batch row (B)
 * @property {Int32Array} [queryLengths] (B) queries from there on give zero rows
 * @property {Int32Array} [kvLengths] (B) keys from there on do not take part and are not read
 * @property {{ readonly query: SegmentsLike, readonly key: SegmentsLike }} [segmentIds] query i of batch row b sees key j of it where
 *   their ids are equal: Int32Arrays of B·L and B·S ids, or of L and S for the same ids in every batch row, or tensors of those
 *   shapes. Positions stay those of the whole rows
 * @property {{ readonly query: Int32Array, readonly key: Int32Array }} [cuSeqlens] packed sequences, for B = 1: sequence s has the query
 *   rows query[s] … query[s + 1] - 1 and sees the keys key[s] … key[s + 1] - 1 alone. Both ascend from 0. Positions count from the starts
 *   of the sequence, whose last query stands at its last key unless align or queryOffset says otherwise. Rows behind the last sequence
 *   see nothing
 * @property {import('./masks/block-mask.js').BlockMask} [blockMask] made by `sdpa.masks`, of L rows and S columns; batch and heads 1 or
 *   all. Tiles in which nothing is allowed take no time
 * @property {PerHeadLike} [sinks] (Hq) or (B, Hq): one more logit of each head in the denominator of the softmax, that has no value, and is
 *   not scaled, capped or masked; -Infinity = none
 * @property {boolean} [smoothSoftmax] a sink of 0, "softmax plus one"; beside `sinks` one more
 * @property {{ readonly p: number, readonly seed: number }} [dropout] each weight is dropped with probability p, and what is kept is
 *   times 1/(1 - p); `lse` and `scores` are those before. Cell (b, h, i, j) is dropped where word j mod 4 of Philox 4x32-10 (Salmon et
 *   al. 2011) of the counter (floor(j / 4), i, h, b) and the key (seed mod 2^32, floor(seed / 2^32)) is less than p·2^32: the same
 *   cells for the same seed, a whole number below 2^53, however the call is cut
 * @property {boolean} [returnLse] adds `lse`, the natural log of the sum of the exponentials, sinks included: (B, Hq, L)
 * @property {'scaled' | 'capped' | 'biased' | 'weights'} [scores] adds the whole (B, Hq, L, S) matrix of that stage
 * @property {'bhld' | 'blhd'} [layout] order of the dimensions of query, key, value and out; (B, H, L, D) where absent
 * @property {Float32Array | import('./tensor.js').SdpaTensor} [out] receives the result
 */

/**
 * Options T without those named K, which a type checker refuses: where they are merely missing from T it lets them pass beside others.
 * @template T
 * @template {keyof T} K
 * @typedef {Omit<T, K> & { [P in K]?: never }} Without
 */

/** Names of the options, in the order in which they are read. */
export const optionNames = [
  'scale',
  'softcap',
  'mask',
  'bias',
  'causal',
  'window',
  'chunk',
  'globalKeys',
  'alibiSlopes',
  'align',
  'queryOffset',
  'queryLengths',
  'kvLengths',
  'segmentIds',
  'cuSeqlens',
  'blockMask',
  'sinks',
  'smoothSoftmax',
  'dropout',
  'returnLse',
  'scores',
  'layout',
  'out',
];

/**
 * Keys and values that lie in a cache in wasm memory. Row j of batch entry b lies in slot j, or with ringSize in slot
 * ringBegin + (j - ringBegin) mod ringSize from ringBegin on; with pages it is row slot mod pageSize of page
 * pages[b·pagesPerRow + floor(slot / pageSize)], whose number then stands for b in the strides.
 * @typedef {object} Storage
 * @property {number} keyPointer
 * @property {number} valuePointer
 * @property {keyof typeof import('./frame.js').dtypeCodes} keyDtype
 * @property {keyof typeof import('./frame.js').dtypeCodes} valueDtype
 * @property {readonly [number, number, number]} keyStrides elements from one batch entry or page, head and row to the next
 * @property {readonly [number, number, number]} valueStrides
 * @property {number} keyScales pointer to float32 scales of int8 rows, laid out as the rows are; 0 = none
 * @property {number} valueScales
 * @property {Int32Array | null} pages (B, pagesPerRow)
 * @property {number} pagesPerRow
 * @property {number} pageSize rows; 0 = no pages
 * @property {number} ringBegin slots before the ring
 * @property {number} ringSize slots of it; 0 = no ring
 * @property {Int32Array | null} heldFrom (B) keys from ringBegin to there have been written over and are not seen
 */

/** One call: sizes, operands and options as the frame wants them. */
export class AttentionCall {
  // Assigned, not declared as fields: that takes less of a small call.
  constructor() {
    this.query = /** @type {Operand} */ (/** @type {unknown} */ (null));
    /** Null where `storage` has them. */
    this.key = this.query;
    this.value = this.query;
    this.storage = /** @type {Storage | null} */ (null);
    /** Whether the keys are those of a cache, which says itself where the queries stand. */
    this.inCache = false;
    this.mask = /** @type {Operand | null} */ (null);
    this.bias = /** @type {Operand | null} */ (null);
    this.out = /** @type {any} */ (undefined);
    this.givenMask = /** @type {any} */ (undefined);
    this.givenBias = /** @type {any} */ (undefined);

    this.rank = 4;
    this.batch = 1;
    this.numHeads = 1;
    this.numKvHeads = 1;
    this.seqlenQ = 0;
    this.seqlenKv = 0;
    this.headDim = 1;
    this.headDimV = 1;

    this.scale = NaN;
    this.softcap = 0;
    this.causal = false;
    this.windowLeft = Infinity;
    this.windowRight = Infinity;
    this.chunk = 0;
    this.globalKeys = 0;
    this.align = 0;
    this.offsetGiven = false;
    this.queryOffset = 0;
    this.queryOffsets = /** @type {Int32Array | null} */ (null);
    this.queryLengths = /** @type {Int32Array | null} */ (null);
    this.kvLengths = /** @type {Int32Array | null} */ (null);
    this.alibiSlopes = /** @type {arrays.Numbers<Float32Array> | null} */ (null);
    /** smoothSoftmax is one of them once the sizes are known. */
    this.sinks = /** @type {arrays.Numbers<Float32Array> | null} */ (null);
    this.smoothSoftmax = false;
    /** (B, L) and (B, S) once the sizes are known; both or none. */
    this.querySegments = /** @type {arrays.Numbers<Int32Array> | null} */ (null);
    this.keySegments = /** @type {arrays.Numbers<Int32Array> | null} */ (null);
    /** (sequences + 1) each; both or none. */
    this.queryStarts = /** @type {Int32Array | null} */ (null);
    this.keyStarts = /** @type {Int32Array | null} */ (null);
    this.blockMask = /** @type {Blocks | null} */ (null);
    this.dropout = 0;
    this.seedLow = 0;
    this.seedHigh = 0;
    /** Where batch entry 0, query head 0 and query row 0 stand in the call that was asked for. */
    this.cellBatch = 0;
    this.cellHead = 0;
    this.cellRow = 0;
    this.returnLse = false;
    this.scores = 0;
    this.layout = 0;
  }
}

/**
 * What a call needs of a block mask; the pointers say where the arrays lie where they lie in wasm memory.
 * @typedef {object} Blocks
 * @property {number} rows
 * @property {number} columns
 * @property {number} batch
 * @property {number} heads
 * @property {Uint32Array} tiles
 * @property {Uint32Array} bits
 * @property {number} [tilesPointer]
 * @property {number} [bitsPointer]
 */

/**
 * @param {AttentionCall} call receives them; `scale` stays NaN where it is not given
 * @param {unknown} options
 * @param {string} [who] the function, as errors name it
 * @param {readonly string[]} [refused] options that it does not take, so that errors do not offer them; the caller refuses them
 */
export function readOptions(call, options, who = 'attention', refused = []) {
  if (options === undefined) return;
  if (
    typeof options !== 'object' ||
    options === null ||
    Object.prototype.toString.call(options) !== '[object Object]'
  ) {
    throw typeError('type', `options must be an object, got ${show(options)}`);
  }
  const given = /** @type {any} */ (options);
  const taken = () => optionNames.filter((name) => !refused.includes(name));
  for (const name in given) if (!optionNames.includes(name)) throw unknownName(who, name, taken());
  // By name, so that an option counts wherever the object keeps it: a getter of its class, a property that is not enumerable.
  for (const name of optionNames) {
    const setting = given[name];
    if (setting !== undefined) readOption(call, name, setting);
  }
}

/**
 * @param {AttentionCall} call
 * @param {string} name
 * @param {any} setting
 */
function readOption(call, name, setting) {
  switch (name) {
    case 'mask':
      call.givenMask = setting;
      return;
    case 'bias':
      call.givenBias = setting;
      return;
    case 'out':
      call.out = setting;
      return;
    case 'scale':
      call.scale = finite(name, setting);
      return;
    case 'softcap':
      call.softcap = finite(name, setting);
      if (setting < 0) throw rangeError('option', `softcap must be 0 (off) or more, got ${setting}`);
      return;
    case 'causal':
    case 'returnLse':
    case 'smoothSoftmax':
      call[name] = flag(name, setting);
      return;
    case 'window':
      [call.windowLeft, call.windowRight] = windowBounds(setting);
      return;
    case 'chunk':
      call.chunk = whole(name, setting, 1);
      return;
    case 'globalKeys':
      call.globalKeys = whole(name, setting, 0);
      return;
    case 'alibiSlopes':
    case 'sinks':
      call[name] = arrays.perHead(name, setting);
      return;
    case 'align':
      call.align = oneOf(name, setting, alignNames);
      return;
    case 'scores':
      call.scores = oneOf(name, setting, scoresCodes);
      return;
    case 'layout':
      call.layout = oneOf(name, setting, layoutCodes);
      return;
    case 'queryOffset': {
      const given = offset(setting);
      call.offsetGiven = true;
      if (typeof given === 'number') call.queryOffset = given;
      else call.queryOffsets = given;
      return;
    }
    case 'queryLengths':
    case 'kvLengths':
      call[name] = int32(name, setting);
      return;
    case 'segmentIds':
      ({ query: call.querySegments, key: call.keySegments } = arrays.segmentIds(setting));
      return;
    case 'cuSeqlens':
      ({ query: call.queryStarts, key: call.keyStarts } = arrays.cuSeqlens(setting));
      return;
    case 'blockMask':
      call.blockMask = arrays.blockMask(setting);
      return;
    case 'dropout':
      ({ probability: call.dropout, seedLow: call.seedLow, seedHigh: call.seedHigh } = arrays.dropout(setting));
      return;
    default:
      throw unknownName('attention', name, optionNames);
  }
}

const alignNames = { 'lower-right': alignCodes['lower-right'], 'upper-left': alignCodes['upper-left'] };
