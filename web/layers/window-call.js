// One call of windowAttention2d(), read and checked.

import { rangeError, show, typeError } from '../errors.js';
import { layoutCodes } from '../frame.js';
import { widened } from '../kv-cache/stage.js';
import { readNamed } from '../named-options.js';
import { readOperand, settleAll } from '../operand.js';
import { readNumbers } from '../option-arrays.js';
import { oneOf, whole } from '../option-values.js';
import { AttentionCall } from '../options.js';
import { readOut } from '../output.js';
import { shapeOf } from '../row-shape.js';
import { arrayKind, product, readShape } from '../tensor.js';
import { outShape, readCall } from '../validate.js';
import { windowClasses } from './window-grid.js';

/**
 * @typedef {import('../operand.js').Operand} Operand
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('../tensor.js').SdpaTensor} SdpaTensor
 * @typedef {import('../tensor.js').TensorLike} TensorLike
 * @typedef {import('./window-grid.js').WindowClass} WindowClass
 * @typedef {import('./window-rows.js').TokenLayout} TokenLayout
 */

/**
 * Options of windowAttention2d(). Sizes are in tokens.
 * @typedef {object} WindowAttention2dOptions
 * @property {number} height rows of the image
 * @property {number} width tokens of a row: L = height·width, row by row
 * @property {number | readonly [number, number]} windowSize side of a window, or [rows, columns]
 * @property {number | readonly [number, number]} [shift] of the image up and left in a circle, below the window's size; 0 where absent.
 *   Usual are 0 and half a window, in turns
 * @property {TensorLike | SdpaTensor} [relativeBias] table ((2·rows - 1)·(2·columns - 1), Hq), float, added to the scores of query (yi, xi)
 *   and key (yj, xj) from row (yi - yj + rows - 1)·(2·columns - 1) + (xi - xj + columns - 1). Of Swin V2 the table that its network gives,
 *   as it is added: 16·sigmoid
 * @property {'dot' | 'cosine'} [similarity] 'cosine' (Swin V2): the scores are the cosines of the angles between query and key, times
 *   exp(min(logitScale, ln 100)) of the head; 'dot' where absent
 * @property {import('../options.js').PerHeadLike} [logitScale] (Hq), or any shape of Hq numbers; for 'cosine', and required there
 * @property {number} [scale] for 'dot': factor of the scores; 1/√D where absent
 * @property {number} [softcap] as for attention()
 * @property {boolean} [returnLse] adds `lse`, (B, Hq, L)
 * @property {'bhld' | 'blhd'} [layout] (B, H, L, D) where absent
 * @property {Float32Array | SdpaTensor} [out] receives the result
 */

const ownNames = ['height', 'width', 'windowSize', 'shift', 'relativeBias', 'similarity', 'logitScale'];
const passed = ['scale', 'softcap', 'returnLse', 'layout', 'out'];

/** Largest logit scale of Swin V2, as its authors clamp it. */
const mostLogitScale = Math.log(100);

/**
 * @typedef {object} WindowCall
 * @property {AttentionCall} call of the image's tokens as one sequence, without windows
 * @property {number[]} shape of out
 * @property {import('../output.js').Out} out
 * @property {{ height: number, width: number, windowSize: [number, number], shift: [number, number] }} image
 * @property {WindowClass[]} classes of windows; none where there are no heads or no batch
 * @property {Float32Array | null} table of the relative position bias, a copy
 * @property {Float64Array | null} factors of the cosines of each head; null = the scores are products
 */

/**
 * Reads everything of the caller's; from here on no code of the caller's runs.
 * @param {Runtime} runtime
 * @param {unknown} query
 * @param {unknown} key
 * @param {unknown} value
 * @param {unknown} options
 * @returns {WindowCall}
 */
export function readWindowCall(runtime, query, key, value, options) {
  const given = readNamed('windowAttention2d', options, [...ownNames, ...passed]);
  for (const name of ['height', 'width', 'windowSize']) {
    if (given[name] === undefined) throw typeError('type', `windowAttention2d needs the option ${name}`);
  }
  const height = whole('height', given.height, 1);
  const width = whole('width', given.width, 1);
  const windowSize = pair('windowSize', given.windowSize, 1);
  const shift = pair('shift', given.shift ?? 0, 0);
  if (shift[0] >= windowSize[0] || shift[1] >= windowSize[1]) {
    throw rangeError('option', `shift ${show(shift)} must be below windowSize ${show(windowSize)}`);
  }
  const isCosine = oneOf('similarity', given.similarity ?? 'dot', { dot: 0, cosine: 1 }) === 1;
  checkSimilarity(isCosine, given);

  const rest = Object.fromEntries(passed.map((name) => [name, given[name]]));
  const call = readCall(runtime, query, key, value, rest);
  for (const [what, length] of /** @type {const} */ ([
    ['query', call.seqlenQ],
    ['key', call.seqlenKv],
  ])) {
    if (length === height * width) continue;
    throw rangeError(
      'shape',
      `${what} length is ${length} but height x width is ${height} x ${width} = ${height * width}`,
    );
  }
  const factors = isCosine ? readFactors(given.logitScale, call.numHeads) : null;
  if (isCosine) call.scale = 1;
  const shape = outShape(call);
  const count = product('out', shape);
  const table = readTable(runtime, given.relativeBias, windowSize, call.numHeads);
  const out = readOut(runtime, call, shape, count);
  settleAll(runtime, call);
  const image = { height, width, windowSize, shift };
  return { call, shape, out, image, classes: count === 0 ? [] : windowClasses(image), table, factors };
}

/**
 * @param {boolean} isCosine
 * @param {Record<string, unknown>} given
 */
function checkSimilarity(isCosine, { scale, logitScale }) {
  if (isCosine && logitScale === undefined) {
    throw rangeError('option', "similarity: 'cosine' needs logitScale, one number per query head");
  }
  if (isCosine && scale !== undefined) {
    throw rangeError(
      'option',
      `scale is for similarity: 'dot'; of 'cosine' logitScale is the factor, got ${show(scale)}`,
    );
  }
  if (!isCosine && logitScale !== undefined) {
    throw rangeError('option', "logitScale is for similarity: 'cosine'; of 'dot' scale is the factor");
  }
}

/**
 * @param {string} name
 * @param {any} setting a number, or two
 * @param {number} least
 * @returns {[number, number]}
 */
function pair(name, setting, least) {
  if (!Array.isArray(setting)) {
    const side = whole(name, setting, least);
    return [side, side];
  }
  const sides = [...setting];
  if (sides.length !== 2) {
    throw rangeError('option', `${name} must be a number or [rows, columns], got ${show(setting)}`);
  }
  return [whole(`${name}[0]`, sides[0], least), whole(`${name}[1]`, sides[1], least)];
}

/**
 * @param {any} setting
 * @param {number} heads
 * @returns {Float64Array}
 */
function readFactors(setting, heads) {
  const bare = Array.isArray(setting) || arrayKind(setting) === 'Float32Array';
  if (!bare && (typeof setting !== 'object' || setting === null)) {
    throw typeError('type', `logitScale must be a Float32Array, number[] or tensor of them, got ${show(setting)}`);
  }
  const data = bare ? setting : setting.data;
  if (!Array.isArray(data) && arrayKind(data) !== 'Float32Array') {
    throw typeError('type', `logitScale data must be a Float32Array or number[], got ${show(data)}`);
  }
  const shape = bare ? null : readShape('logitScale', setting.shape ?? setting.dims);
  const numbers = readNumbers('logitScale', data);
  if (numbers.length !== heads || (shape && product('logitScale', shape) !== heads)) {
    const got = shape ? `shape ${show(shape)} with ${numbers.length} numbers` : `${numbers.length} numbers`;
    throw rangeError('shape', `logitScale must have one number per query head, ${heads}, got ${got}`);
  }
  return Float64Array.from(numbers, (number) => Math.exp(Math.min(number, mostLogitScale)));
}

/**
 * @param {Runtime} runtime
 * @param {unknown} setting
 * @param {readonly number[]} windowSize
 * @param {number} heads
 * @returns {Float32Array | null}
 */
function readTable(runtime, setting, [rows, columns], heads) {
  if (setting === undefined) return null;
  const operand = readOperand('relativeBias', setting, false, runtime);
  const wanted = [(2 * rows - 1) * (2 * columns - 1), heads];
  const { shape } = operand;
  if (shape.length !== 2 || shape[0] !== wanted[0] || shape[1] !== wanted[1]) {
    throw rangeError(
      'shape',
      `relativeBias must have shape ${show(wanted)} (relative positions in a window of ${rows} x ${columns}, query heads), got ${show(shape)}`,
    );
  }
  const table = widened(runtime, operand);
  return operand.dtype === 'float32' ? table.slice() : table;
}

/**
 * The windows of one size as a call of attention(): a batch of them, in the layout of the image.
 * @param {WindowCall} read
 * @param {WindowClass} size
 * @param {{ query: Operand, key: Operand, value: Operand, bias: Operand | null }} operands (windows, …)
 * @returns {AttentionCall}
 */
export function callOfWindows({ call }, { height, width }, operands) {
  const tokens = height * width;
  const batch = operands.query.shape[0];
  return Object.assign(new AttentionCall(), call, operands, { rank: 4, batch, seqlenQ: tokens, seqlenKv: tokens });
}

/**
 * How query, key, value, out and lse have the tokens of the image.
 * @param {WindowCall} read
 * @returns {Record<'query' | 'key' | 'value' | 'out' | 'lse', TokenLayout>}
 */
export function tokenLayouts({ call, image: { height, width } }) {
  const { batch, numHeads, numKvHeads, headDim, headDimV } = call;
  const image = { batch, height, width };
  const of = (/** @type {number} */ heads, /** @type {number} */ dim) =>
    headsInside(call) ? { ...image, planes: 1, token: heads * dim } : { ...image, planes: heads, token: dim };
  return {
    query: of(numHeads, headDim),
    key: of(numKvHeads, headDim),
    value: of(numKvHeads, headDimV),
    out: of(numHeads, headDimV),
    lse: { ...image, planes: numHeads, token: 1 },
  };
}

/** @param {AttentionCall} call */
const headsInside = ({ layout }) => layout === layoutCodes.blhd;

/**
 * The shape of windows.
 * @param {AttentionCall} call
 * @param {number} windows
 * @param {number} heads
 * @param {number} tokens of a window
 * @param {number} dim
 */
export const windowsShape = (call, windows, heads, tokens, dim) =>
  shapeOf({ batch: windows, heads, length: tokens, size: dim }, 4, headsInside(call));
