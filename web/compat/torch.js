// Entry `sdpa/torch`: scaled_dot_product_attention of torch.nn.functional, by PyTorch's names and rules, on a loaded instance.
import { rangeError, show, typeError } from '../errors.js';
import { readNamed } from '../named-options.js';
import { finite, flag, whole } from '../option-values.js';
import { arrayKind } from '../tensor.js';
import { broadcastShapes, count, expandBlocks } from './broadcast.js';
import { readMask } from './onnx-inputs.js';
import { readOperands, resultOf } from './operands.js';

/**
 * @typedef {import('./onnx-inputs.js').FloatInput} FloatInput
 * @typedef {import('./operands.js').TensorArgument} TensorArgument
 * @typedef {import('./operands.js').ResultTensor} ResultTensor
 * @typedef {import('../options.js').AttentionOptions} AttentionOptions
 * @typedef {object} TorchOptions options of scaledDotProductAttention()
 * @property {TensorArgument | import('../tensor.js').MaskLike | null} [attnMask] its type decides: booleans (Uint8Array or boolean[]),
 *   true = **attend**; or floats that are added to the scaled scores. Broadcast to (..., L, S). Not together with isCausal
 * @property {number} [dropoutP] share of the weights that are dropped, 0 to 1; 0. Applied whenever it is more than 0: pass 0 to
 *   evaluate
 * @property {boolean} [isCausal] query i sees the keys up to i, also where L ≠ S (the mask is a lower triangle from the upper left)
 * @property {number | null} [scale] 1/√E where absent
 * @property {boolean} [enableGqa] whether query may have a multiple of the heads of key and value (their third dimension from the right)
 * @property {number} [seed] of the dropout, a whole number from 0 to 2^53 - 1: the same seed drops the same weights. Drawn anew for
 *   each call where absent
 * @typedef {object} TorchFunctional functions of torch.nn.functional
 * @property {(query: TensorArgument, key: TensorArgument, value: TensorArgument, options?: TorchOptions) => ResultTensor} scaledDotProductAttention
 *   query (..., L, E), key (..., S, E) and value (..., S, Ev) to (..., L, Ev), of one type, which is the result's too: 16-bit results are
 *   rounded once. The dimensions before the last two, any number of them, broadcast as in torch.matmul. A row that may attend to nothing
 *   is zeros, as in PyTorch from 2.5 on. Throws TypeErrors and RangeErrors with a `code`
 */

const NAMES = ['attnMask', 'dropoutP', 'isCausal', 'scale', 'enableGqa', 'seed'];

/**
 * The functions of torch.nn.functional that compute with the given instance.
 * @param {import('../sdpa.js').Sdpa} sdpa what `load` resolved to
 * @returns {TorchFunctional}
 */
export function torchFunctional(sdpa) {
  return {
    scaledDotProductAttention: (query, key, value, options) =>
      scaledDotProductAttention(sdpa, { query, key, value }, options),
  };
}

/**
 * @param {import('../sdpa.js').Sdpa} sdpa
 * @param {Record<'query' | 'key' | 'value', unknown>} given
 * @param {unknown} options
 * @returns {ResultTensor}
 */
function scaledDotProductAttention(sdpa, given, options) {
  const settings = readNamed('scaledDotProductAttention', options, NAMES);
  const attention = readOptions(settings);
  const [query, key, value] = readOperands(given);
  const sizes = readSizes(query, key, value, flag('enableGqa', settings.enableGqa ?? false));
  const { lead, heads, kvHeads, rows, keys, size, sizeV } = sizes;
  Object.assign(attention, readAttnMask(settings.attnMask, sizes));

  const shape = [...sizes.full, rows, sizeV];
  if (count(shape) === 0) return resultOf(new Float32Array(0), shape, query);
  const batch = count(lead);
  /** @param {FloatInput} tensor @param {number} ofHeads @param {number} length @param {number} width */
  const operand = ({ data, shape: own, dtype }, ofHeads, length, width) => ({
    data: expandBlocks(data, own.slice(0, -2), [...lead, ofHeads], length * width),
    shape: [batch, ofHeads, length, width],
    dtype,
  });
  const { out } = sdpa.attention(
    operand(query, heads, rows, size),
    operand(key, kvHeads, keys, size),
    operand(value, kvHeads, keys, sizeV),
    attention,
  );
  return resultOf(out.data, shape, query);
}

/**
 * @param {Record<string, any>} settings
 * @returns {AttentionOptions}
 */
function readOptions({ attnMask, dropoutP = 0, isCausal = false, scale, seed }) {
  /** @type {AttentionOptions} */
  const options = {};
  if (flag('isCausal', isCausal)) {
    if (attnMask !== undefined && attnMask !== null) {
      throw rangeError('option', 'attnMask and isCausal exclude each other: put the causal part into the mask');
    }
    options.causal = true;
    options.align = 'upper-left';
  }
  if (scale !== undefined && scale !== null) options.scale = finite('scale', scale);
  if (typeof dropoutP !== 'number') throw typeError('type', `dropoutP must be a number, got ${show(dropoutP)}`);
  if (!(dropoutP >= 0 && dropoutP <= 1)) {
    throw rangeError('option', `dropoutP must be between 0 and 1, got ${dropoutP}`);
  }
  if (seed !== undefined) whole('seed', seed, 0);
  if (dropoutP > 0) options.dropout = { p: dropoutP, seed: seed ?? drawSeed() };
  return options;
}

/** @returns {number} a whole number below 2^53 */
function drawSeed() {
  const { crypto } = /** @type {any} */ (globalThis);
  if (typeof crypto?.getRandomValues !== 'function') return Math.floor(Math.random() * 2 ** 53);
  const [high, low] = crypto.getRandomValues(new Uint32Array(2));
  return (high % 2 ** 21) * 2 ** 32 + low;
}

/**
 * Sizes of a call.
 * @typedef {object} Sizes
 * @property {number[]} full leading dimensions of the result, the heads included
 * @property {number[]} lead those before the heads
 * @property {number} heads
 * @property {number} kvHeads heads of key and value, which query heads share
 * @property {number} rows L
 * @property {number} keys S
 * @property {number} size E
 * @property {number} sizeV Ev
 */

/**
 * @param {FloatInput} query
 * @param {FloatInput} key
 * @param {FloatInput} value
 * @param {boolean} gqa
 * @returns {Sizes}
 */
function readSizes(query, key, value, gqa) {
  const shapes = [query, key, value].map(({ name, shape }) => {
    if (shape.length < 2) throw rangeError('shape', `${name} must have at least 2 dimensions, got shape [${shape}]`);
    return shape;
  });
  const [[rows, size], [keys, sizeK], [keysV, sizeV]] = shapes.map((shape) => shape.slice(-2));
  if (sizeK !== size) throw rangeError('shape', `key has rows of ${sizeK} but query of ${size}: ${list(shapes)}`);
  if (keysV !== keys) throw rangeError('shape', `value has length ${keysV} but key ${keys}: ${list(shapes)}`);
  const inner = { rows, keys, size, sizeV };
  const leads = shapes.map((shape) => shape.slice(0, -2));
  if (!gqa) {
    const full = broadcastShapes(leads);
    if (full === null) {
      const [q = 1, k = 1, v = 1] = leads.map((lead) => lead[lead.length - 1]);
      const hint =
        k === v && k > 0 && q % k === 0 ? '; enableGqa: true lets query heads share heads of key and value' : '';
      throw rangeError('shape', `leading dimensions do not broadcast: ${list(shapes)}${hint}`);
    }
    const heads = full[full.length - 1] ?? 1;
    // A head of key and value that all query heads share is not repeated.
    const shared = [leads[1], leads[2]].every((lead) => (lead[lead.length - 1] ?? 1) === 1);
    return { full, lead: full.slice(0, -1), heads, kvHeads: shared ? 1 : heads, ...inner };
  }
  if (leads.some((lead) => lead.length === 0)) {
    throw rangeError(
      'shape',
      `enableGqa needs at least 3 dimensions, the third from the right are heads: ${list(shapes)}`,
    );
  }
  const [heads, kvHeads, valueHeads] = leads.map((lead) => lead[lead.length - 1]);
  if (kvHeads !== valueHeads || kvHeads === 0 || heads % kvHeads !== 0) {
    const rule = 'with enableGqa key and value have the same number of heads, and query a multiple of it';
    throw rangeError('shape', `query has ${heads} heads, key ${kvHeads}, value ${valueHeads}; ${rule}`);
  }
  const lead = broadcastShapes(leads.map((all) => all.slice(0, -1)));
  if (lead === null) throw rangeError('shape', `leading dimensions do not broadcast: ${list(shapes)}`);
  return { full: [...lead, heads], lead, heads, kvHeads, ...inner };
}

/** @param {number[][]} shapes of query, key and value */
const list = ([q, k, v]) => `query [${q}], key [${k}], value [${v}]`;

/**
 * @param {any} attnMask
 * @param {Sizes} sizes
 * @returns {AttentionOptions} `mask` or `bias`, of four dimensions; nothing where there is no mask
 */
function readAttnMask(attnMask, { full, lead, rows, keys }) {
  if (attnMask === undefined || attnMask === null) return {};
  const given = readMask({ attnMask: arrayOfBooleans(attnMask) }, 'attnMask');
  const { data, shape, dtype } = /** @type {NonNullable<typeof given>} */ (given);
  const wanted = [...full, rows, keys];
  const missing = wanted.length - shape.length;
  if (missing < 0 || shape.some((size, i) => size !== 1 && size !== wanted[missing + i])) {
    throw rangeError('shape', `attnMask has shape [${shape}], which does not broadcast to (..., L, S) = [${wanted}]`);
  }
  const padded = [...Array(Math.max(0, missing, 3 - shape.length)).fill(1), ...shape];
  const [ownLead, inner] = [padded.slice(0, -3), padded.slice(-3)];
  // Of the dimensions before the heads attention() has one, 1 or full.
  const repeated = count(ownLead) === 1 ? [1] : lead;
  const fitted = {
    data: expandBlocks(data, ownLead, repeated, count(inner)),
    shape: [count(repeated), ...inner],
  };
  return dtype === 'bool' ? { mask: /** @type {any} */ (fitted) } : { bias: /** @type {any} */ ({ ...fitted, dtype }) };
}

/**
 * The mask with its properties read once. An array that is not typed holds booleans: numbers in it would leave open what they are.
 * @param {any} mask
 */
function arrayOfBooleans(mask) {
  if (typeof mask !== 'object' || arrayKind(mask) !== undefined || Array.isArray(mask)) return mask;
  const { data } = mask;
  const wrong = Array.isArray(data) ? data.findIndex((element) => typeof element !== 'boolean') : -1;
  if (wrong >= 0) {
    throw typeError(
      'type',
      `attnMask data[${wrong}] must be true or false, got ${show(data[wrong])}; numbers that are added come in a Float32Array`,
    );
  }
  return { data, shape: mask.shape ?? mask.dims, dtype: mask.dtype ?? mask.type };
}
