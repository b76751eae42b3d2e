// The options of attention(), read once each: names, types and ranges that do not depend on the tensors' shapes.

import { rangeError, show, typeError } from './errors.js';
import { alignCodes, layoutCodes, scoresCodes } from './frame.js';
import { arrayKind } from './tensor.js';

/** @typedef {import('./operand.js').Operand} Operand */

/**
 * Options of attention(). B batch, Hq query heads, L query length, S key length.
 * @typedef {object} AttentionOptions
 * @property {number} [scale] factor of the scores; 1/√D where absent; any finite number
 * @property {number} [softcap] t = c·tanh(t/c) after scaling; 0 or absent = off
 * @property {import('./tensor.js').MaskLike | import('./tensor.js').SdpaTensor} [mask] boolean, non-zero = **attend** (to
 *   pass a mask whose true means "hide", invert it); each dimension 1 or that of (B, Hq, L, S), aligned on the right
 * @property {import('./tensor.js').TensorLike | import('./tensor.js').SdpaTensor} [bias] float, added to the scaled and
 *   capped scores; shapes as for mask; -Infinity = masked
 * @property {boolean} [causal] query i sees key j where j <= i + offset
 * @property {readonly [number, number]} [window] [left, right]: p - left <= j <= p + right for p = i + offset;
 *   the own position is not counted; Infinity = unlimited
 * @property {'lower-right' | 'upper-left'} [align] where query 0 stands when causal or window is used: offset = S - L (the
 *   last query at the last key; kvLengths[b] - L where given) or offset = 0. Required where L ≠ S, unless queryOffset is given
 * @property {number | Int32Array} [queryOffset] the offset itself, or one per batch row (B)
 * @property {Int32Array} [queryLengths] (B) queries from there on give zero rows
 * @property {Int32Array} [kvLengths] (B) keys from there on do not take part and are not read
 * @property {boolean} [returnLse] adds `lse`, the natural log of the sum of the exponentials: (B, Hq, L)
 * @property {'scaled' | 'capped' | 'biased' | 'weights'} [scores] adds the whole (B, Hq, L, S) matrix of that stage
 * @property {'bhld' | 'blhd'} [layout] order of the dimensions of query, key, value and out; (B, H, L, D) where absent
 * @property {Float32Array | import('./tensor.js').SdpaTensor} [out] receives the result
 */

/** Specified, and not in this version. */
const later = [
  'chunk',
  'globalKeys',
  'alibiSlopes',
  'segmentIds',
  'cuSeqlens',
  'blockMask',
  'sinks',
  'smoothSoftmax',
  'dropout',
];

const known = [
  'scale',
  'softcap',
  'mask',
  'bias',
  'causal',
  'window',
  'align',
  'queryOffset',
  'queryLengths',
  'kvLengths',
  'returnLse',
  'scores',
  'layout',
  'out',
];

/** One call: sizes, operands and options as the frame wants them. */
export class AttentionCall {
  query = /** @type {Operand} */ (/** @type {unknown} */ (null));
  key = this.query;
  value = this.query;
  mask = /** @type {Operand | null} */ (null);
  bias = /** @type {Operand | null} */ (null);
  out = /** @type {any} */ (undefined);
  givenMask = /** @type {any} */ (undefined);
  givenBias = /** @type {any} */ (undefined);

  rank = 4;
  batch = 1;
  numHeads = 1;
  numKvHeads = 1;
  seqlenQ = 0;
  seqlenKv = 0;
  headDim = 1;
  headDimV = 1;

  scale = NaN;
  softcap = 0;
  causal = false;
  windowLeft = Infinity;
  windowRight = Infinity;
  align = 0;
  offsetGiven = false;
  queryOffset = 0;
  queryOffsets = /** @type {Int32Array | null} */ (null);
  queryLengths = /** @type {Int32Array | null} */ (null);
  kvLengths = /** @type {Int32Array | null} */ (null);
  returnLse = false;
  scores = 0;
  layout = 0;
}

/**
 * @param {AttentionCall} call receives them; `scale` stays NaN where it is not given
 * @param {unknown} options
 */
export function readOptions(call, options) {
  if (options === undefined) return;
  if (
    typeof options !== 'object' ||
    options === null ||
    Object.prototype.toString.call(options) !== '[object Object]'
  ) {
    throw typeError('type', `options must be an object, got ${show(options)}`);
  }
  const given = /** @type {any} */ (options);
  for (const name in given) {
    if (!known.includes(name) && !(later.includes(name) && given[name] === undefined)) throw unknown(name);
  }
  // By name, so that an option counts wherever the object keeps it: a getter of its class, a property that is not enumerable.
  for (const name of known) {
    const setting = given[name];
    if (setting !== undefined) readOption(call, name, setting);
  }
  for (const name of later) if (given[name] !== undefined) throw unknown(name);
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
    case 'scale':
      call.scale = finite(name, setting);
      return;
    case 'softcap':
      call.softcap = finite(name, setting);
      if (setting < 0) throw rangeError('option', `softcap must be 0 (off) or more, got ${setting}`);
      return;
    case 'causal':
      call.causal = flag(name, setting);
      return;
    case 'returnLse':
      call.returnLse = flag(name, setting);
      return;
    case 'window':
      readWindow(call, setting);
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
    case 'queryOffset':
      readOffset(call, setting);
      return;
    case 'queryLengths':
      call.queryLengths = int32(name, setting);
      return;
    case 'kvLengths':
      call.kvLengths = int32(name, setting);
      return;
    case 'out':
      call.out = setting;
      return;
    default:
      throw unknown(name);
  }
}

const alignNames = { 'lower-right': alignCodes['lower-right'], 'upper-left': alignCodes['upper-left'] };

/** @param {string} name */
function unknown(name) {
  if (later.includes(name)) {
    return rangeError('unsupported', `option '${name}' is not in this version of sdpa`);
  }
  const close = known.find((other) => other.toLowerCase() === name.replace(/[_-]/g, '').toLowerCase());
  const hint = close ? `did you mean '${close}'?` : `the options are ${known.join(', ')}`;
  return typeError('unknown-option', `attention has no option '${name}'; ${hint}`);
}

/**
 * @param {string} name
 * @param {unknown} setting
 * @returns {number}
 */
function finite(name, setting) {
  if (typeof setting !== 'number') throw typeError('type', `${name} must be a number, got ${show(setting)}`);
  if (!Number.isFinite(setting)) throw rangeError('option', `${name} must be finite, got ${setting}`);
  return setting;
}

/**
 * @param {string} name
 * @param {unknown} setting
 * @returns {boolean}
 */
function flag(name, setting) {
  if (typeof setting !== 'boolean') throw typeError('type', `${name} must be true or false, got ${show(setting)}`);
  return setting;
}

/**
 * @param {string} name
 * @param {unknown} setting
 * @param {Readonly<Record<string, number>>} codes
 * @returns {number}
 */
function oneOf(name, setting, codes) {
  if (typeof setting === 'string' && Object.hasOwn(codes, setting)) return codes[setting];
  const message = `${name} must be '${Object.keys(codes).join("' or '")}', got ${show(setting)}`;
  throw typeof setting === 'string' ? rangeError('option', message) : typeError('type', message);
}

/**
 * @param {string} name
 * @param {unknown} setting
 * @returns {Int32Array}
 */
function int32(name, setting) {
  if (arrayKind(setting) !== 'Int32Array') {
    throw typeError('type', `${name} must be an Int32Array with one number per batch row, got ${show(setting)}`);
  }
  // A copy: what was checked is what the kernel gets, wherever the caller's array lies.
  return new Int32Array(/** @type {Int32Array} */ (setting));
}

/**
 * @param {AttentionCall} call
 * @param {any} setting
 */
function readWindow(call, setting) {
  if (!Array.isArray(setting) || setting.length !== 2) {
    throw typeError('type', `window must be [left, right], got ${show(setting)}`);
  }
  const [left, right] = setting;
  for (const bound of [left, right]) {
    if (typeof bound !== 'number') throw typeError('type', `window must be two numbers, got ${show(setting)}`);
    if (bound !== Infinity && !(Number.isSafeInteger(bound) && bound >= 0)) {
      throw rangeError('option', `window must be whole numbers, 0 or more, or Infinity, got ${show(setting)}`);
    }
  }
  call.windowLeft = left;
  call.windowRight = right;
}

/**
 * @param {AttentionCall} call
 * @param {any} setting
 */
function readOffset(call, setting) {
  call.offsetGiven = true;
  if (typeof setting !== 'number') {
    if (arrayKind(setting) !== 'Int32Array') {
      throw typeError('type', `queryOffset must be a number or an Int32Array, got ${show(setting)}`);
    }
    call.queryOffsets = int32('queryOffset', setting);
  } else if (Number.isInteger(setting) && Math.abs(setting) <= 2 ** 31) {
    call.queryOffset = setting;
  } else {
    throw rangeError('option', `queryOffset must be a whole number between -2^31 and 2^31, got ${setting}`);
  }
}
