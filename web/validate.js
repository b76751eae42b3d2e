// Every rule on the arguments of attention(), checked before anything is allocated.

import { rangeError, show, typeError } from './errors.js';
import { alignCodes, layoutCodes, scoresCodes } from './frame.js';
import { arrayKind, readOperand } from './tensor.js';

/** @typedef {import('./tensor.js').Operand} Operand */

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

const later = new Set([
  'chunk',
  'globalKeys',
  'alibiSlopes',
  'segmentIds',
  'cuSeqlens',
  'blockMask',
  'sinks',
  'smoothSoftmax',
  'dropout',
]);

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

/** One call, checked: sizes, operands and options as the frame wants them. */
export class AttentionCall {
  query = /** @type {Operand} */ (/** @type {unknown} */ (null));
  key = this.query;
  value = this.query;
  mask = /** @type {Operand | null} */ (null);
  bias = /** @type {Operand | null} */ (null);
  out = /** @type {any} */ (undefined);

  rank = 4;
  batch = 1;
  numHeads = 1;
  numKvHeads = 1;
  seqlenQ = 0;
  seqlenKv = 0;
  headDim = 1;
  headDimV = 1;

  scale = 0;
  softcap = 0;
  causal = false;
  windowLeft = Infinity;
  windowRight = Infinity;
  align = 0;
  queryOffset = 0;
  queryOffsets = /** @type {Int32Array | null} */ (null);
  queryLengths = /** @type {Int32Array | null} */ (null);
  kvLengths = /** @type {Int32Array | null} */ (null);
  returnLse = false;
  scores = 0;
  layout = 0;
}

/**
 * @param {import('./runtime.js').Runtime} runtime
 * @param {unknown} query
 * @param {unknown} key
 * @param {unknown} value
 * @param {unknown} options
 * @returns {AttentionCall}
 */
export function readCall(runtime, query, key, value, options) {
  const call = new AttentionCall();
  let mask;
  let bias;
  let scale;
  if (options !== undefined) {
    if (typeof options !== 'object' || options === null) {
      throw typeError('type', `options must be an object, got ${show(options)}`);
    }
    const given = /** @type {any} */ (options);
    for (const name in given) {
      const setting = given[name];
      if (setting === undefined && known.includes(name)) continue;
      switch (name) {
        case 'mask':
          mask = setting;
          break;
        case 'bias':
          bias = setting;
          break;
        case 'scale':
          scale = finite(name, setting);
          break;
        case 'softcap':
          call.softcap = finite(name, setting);
          if (setting < 0) throw rangeError('option', `softcap must be 0 (off) or more, got ${setting}`);
          break;
        case 'causal':
          call.causal = flag(name, setting);
          break;
        case 'returnLse':
          call.returnLse = flag(name, setting);
          break;
        case 'window':
          readWindow(call, setting);
          break;
        case 'align':
          call.align = oneOf(name, setting, alignNames);
          break;
        case 'scores':
          call.scores = oneOf(name, setting, scoresCodes);
          break;
        case 'layout':
          call.layout = oneOf(name, setting, layoutCodes);
          break;
        case 'queryOffset':
          readOffset(call, setting);
          break;
        case 'queryLengths':
          call.queryLengths = int32(name, setting);
          break;
        case 'kvLengths':
          call.kvLengths = int32(name, setting);
          break;
        case 'out':
          call.out = setting;
          break;
        default:
          throw unknown(name);
      }
    }
  }
  readSizes(
    call,
    readOperand('query', query, false, runtime),
    readOperand('key', key, false, runtime),
    readOperand('value', value, false, runtime),
  );
  call.scale = scale ?? 1 / Math.sqrt(call.headDim);
  if (mask !== undefined) call.mask = broadcast(call, 'mask', readOperand('mask', mask, true, runtime));
  if (bias !== undefined) call.bias = broadcast(call, 'bias', readOperand('bias', bias, false, runtime));
  checkPosition(call, /** @type {any} */ (options));
  checkLengths('queryLengths', call.queryLengths, call.batch, 'query length', call.seqlenQ);
  checkLengths('kvLengths', call.kvLengths, call.batch, 'key length', call.seqlenKv);
  return call;
}

const alignNames = { 'lower-right': alignCodes['lower-right'], 'upper-left': alignCodes['upper-left'] };

/** @param {string} name */
function unknown(name) {
  if (later.has(name)) {
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

/**
 * @param {AttentionCall} call
 * @param {Operand} query
 * @param {Operand} key
 * @param {Operand} value
 */
function readSizes(call, query, key, value) {
  const rank = query.shape.length;
  if (rank < 2 || rank > 4) {
    throw rangeError('shape', `query must have 2, 3 or 4 dimensions, got ${rank}: ${show(query.shape)}`);
  }
  if (key.shape.length !== rank) throw mismatch('key', 'dimensions', key.shape.length, 'query', rank);
  if (value.shape.length !== rank) throw mismatch('value', 'dimensions', value.shape.length, 'query', rank);
  call.query = query;
  call.key = key;
  call.value = value;
  call.rank = rank;
  const blhd = call.layout === layoutCodes.blhd;
  // (B, H, L, D) or (B, L, H, D), without B at rank 3, without B and H at rank 2.
  const row = blhd && rank > 2 ? rank - 3 : rank - 2;
  const head = blhd ? rank - 2 : rank - 3;
  const q = query.shape;
  const k = key.shape;
  const v = value.shape;
  call.seqlenQ = q[row];
  call.seqlenKv = k[row];
  call.headDim = q[rank - 1];
  call.headDimV = v[rank - 1];
  if (rank === 4) {
    call.batch = q[0];
    if (k[0] !== q[0]) throw mismatch('key', 'batch', k[0], 'query', q[0]);
    if (v[0] !== q[0]) throw mismatch('value', 'batch', v[0], 'query', q[0]);
  }
  if (rank > 2) {
    call.numHeads = q[head];
    call.numKvHeads = k[head];
    if (v[head] !== k[head]) throw mismatch('value', 'number of heads', v[head], 'key', k[head]);
    if (q[head] === 0 || k[head] === 0 || q[head] % k[head] !== 0) {
      throw rangeError(
        'shape',
        `query has ${q[head]} heads, which is not a multiple of the ${k[head]} heads of key and value`,
      );
    }
  }
  if (v[row] !== k[row]) throw mismatch('value', 'length', v[row], 'key', k[row]);
  if (call.headDim === 0) throw rangeError('shape', `query head size must be 1 or more, got shape ${show(q)}`);
  if (k[rank - 1] !== call.headDim) throw mismatch('key', 'head size', k[rank - 1], 'query', call.headDim);
  if (call.headDimV === 0) throw rangeError('shape', `value head size must be 1 or more, got shape ${show(v)}`);
}

/**
 * @param {string} name
 * @param {string} what
 * @param {number} got
 * @param {string} other
 * @param {number} want
 */
function mismatch(name, what, got, other, want) {
  const verb = what === 'dimensions' ? 'are' : 'is';
  return rangeError('shape', `${name} ${what} ${verb} ${got} but ${other} ${what} ${verb} ${want}`);
}

/**
 * @param {AttentionCall} call
 * @param {'mask' | 'bias'} name
 * @param {Operand} operand
 * @returns {Operand} with its shape padded on the left to rank 4
 */
function broadcast(call, name, operand) {
  const full = [call.batch, call.numHeads, call.seqlenQ, call.seqlenKv];
  const { shape } = operand;
  const missing = 4 - shape.length;
  let fits = missing >= 0;
  for (let i = 0; fits && i < shape.length; i++) fits = shape[i] === 1 || shape[i] === full[missing + i];
  if (!fits) {
    throw rangeError(
      'shape',
      `${name} shape [${shape.join(', ')}] does not broadcast to [${full.join(', ')}] (batch, query heads, query length, key length)`,
    );
  }
  if (missing > 0) operand.shape = [1, 1, 1, 1].slice(0, missing).concat(shape);
  return operand;
}

/**
 * @param {AttentionCall} call
 * @param {{ queryOffset?: unknown } | undefined} options
 */
function checkPosition(call, options) {
  const offsetGiven = options !== undefined && options.queryOffset !== undefined;
  if (offsetGiven) {
    if (call.align !== alignCodes.none) {
      throw rangeError('option', 'align and queryOffset both say where query 0 stands: give one of them');
    }
    call.align = alignCodes.offset;
    if (call.queryOffsets && call.queryOffsets.length !== call.batch) {
      throw rangeError('shape', `queryOffset has ${call.queryOffsets.length} numbers but the batch is ${call.batch}`);
    }
    return;
  }
  if (call.align !== alignCodes.none || call.seqlenQ === call.seqlenKv) return;
  const windowed = call.windowLeft !== Infinity || call.windowRight !== Infinity;
  if (!call.causal && !windowed) return;
  throw rangeError(
    'align-required',
    `${call.causal ? 'causal' : 'window'} needs to know where query 0 stands, because query length is ${call.seqlenQ} but key length is ${call.seqlenKv}: ` +
      "give align: 'lower-right' (the last query stands at the last key), align: 'upper-left' (query 0 at key 0) or queryOffset",
  );
}

/**
 * @param {string} name
 * @param {Int32Array | null} lengths
 * @param {number} batch
 * @param {string} what
 * @param {number} most
 */
function checkLengths(name, lengths, batch, what, most) {
  if (!lengths) return;
  if (lengths.length !== batch) {
    throw rangeError('shape', `${name} has ${lengths.length} numbers but the batch is ${batch}`);
  }
  for (let b = 0; b < batch; b++) {
    if (lengths[b] < 0 || lengths[b] > most) {
      throw rangeError('option', `${name}[${b}] is ${lengths[b]} but must be between 0 and the ${what} ${most}`);
    }
  }
}

/**
 * Shapes of the results, in the query's rank.
 * @param {AttentionCall} call
 */
export function outShape(call) {
  const { rank, batch, numHeads, seqlenQ, headDimV } = call;
  if (rank === 2) return [seqlenQ, headDimV];
  const inner = call.layout === layoutCodes.blhd ? [seqlenQ, numHeads, headDimV] : [numHeads, seqlenQ, headDimV];
  return rank === 4 ? [batch, ...inner] : inner;
}

/** @param {AttentionCall} call */
export function lseShape({ rank, batch, numHeads, seqlenQ }) {
  return rank === 4 ? [batch, numHeads, seqlenQ] : rank === 3 ? [numHeads, seqlenQ] : [seqlenQ];
}

/** @param {AttentionCall} call */
export function scoresShape(call) {
  return [...lseShape(call), call.seqlenKv];
}
