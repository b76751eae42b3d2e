// Rotary position embedding: each pair of a row's first rotaryDim columns is turned by its position times the pair's frequency.
// θ = position·f_k is computed in float64, so that it is right for positions far behind 2^24; so is the rotation, which is rounded
// once.

import { outOfMemory, rangeError, show, typeError } from './errors.js';
import { fromBfloat16Bits, fromFloat16Bits, toBfloat16Bits, toFloat16Bits } from './half.js';
import { readNamed } from './named-options.js';
import { readOperand, viewOf } from './operand.js';
import { finite, flag, oneOf, whole } from './option-values.js';
import { ropeFrequencies } from './rope-frequencies.js';
import { fitPlaces, readPlaces, readSizes } from './rope-places.js';
import { arrayBuffer, arrayKind, arrayLength, arrayOffset, SdpaTensor } from './tensor.js';
import { Turner } from './turner.js';

/**
 * @typedef {import('./operand.js').Operand} Operand
 * @typedef {import('./runtime.js').Runtime} Runtime
 * @typedef {import('./tensor.js').DType} DType
 * @typedef {import('./tensor.js').Float16Data} Float16Data
 * @typedef {import('./rope-places.js').Places} Places
 * @typedef {import('./rope-places.js').Sizes} Sizes
 * @typedef {import('./rope-frequencies.js').RopeScaling} RopeScaling
 */

/**
 * What the angles depend on. D head size.
 * @typedef {object} RopeAngles
 * @property {number} [base] θ = position·base^(-2k/rotaryDim); 10 000
 * @property {'half' | 'interleaved'} [pairing] 'half' (default) turns columns k and k + rotaryDim/2 together (NeoX, Llama),
 *   'interleaved' 2k and 2k + 1 (GPT-J)
 * @property {number} [rotaryDim] even; columns from there on pass as they are; D where absent
 * @property {RopeScaling | null} [scaling] for texts longer than the model was trained on
 */

/**
 * @typedef {object} RopePlaces B batch, L length
 * @property {Int32Array | { readonly data: Int32Array, readonly shape: ArrayLike<number> }} [positions] of the tokens: (L), or (B, L)
 * @property {number | Int32Array} [offset] position of the first token, the others follow: one number, or one per batch row (B). 0
 *   where neither is given
 * @property {boolean} [inverse] turns back by the same angles (and divides by YaRN's factor): rope(rope(x), inverse) is x
 * @property {'bhld' | 'blhd'} [layout] order of x's dimensions; (B, H, L, D) where absent
 * @property {Float32Array | Uint16Array | Float16Data | SdpaTensor} [out] receives the result, in x's type; may be x itself
 */

/** Options of rope(). @typedef {RopeAngles & RopePlaces} RopeOptions */

/**
 * A rotated tensor in x's type: 16-bit ones as Uint16Array, or as Float16Array where x's data is one.
 * @typedef {{ data: any, shape: number[], dtype: DType }} RopeResult
 */

const angleNames = ['base', 'pairing', 'rotaryDim', 'scaling'];
const names = [...angleNames, 'positions', 'offset', 'inverse', 'layout', 'out'];

/**
 * @param {Record<string, any>} given read by name
 * @param {number} headDim
 * @param {boolean} inverse
 * @returns {import('./turner.js').Angles}
 */
function readAngles(given, headDim, inverse) {
  const { base = 10000, pairing = 'half', rotaryDim = headDim, scaling } = given;
  if (finite('base', base) <= 0) throw rangeError('option', `base must be more than 0, got ${base}`);
  const interleaved = oneOf('pairing', pairing, { half: 0, interleaved: 1 }) === 1;
  whole('rotaryDim', rotaryDim, 1);
  if (rotaryDim % 2 !== 0 || rotaryDim > headDim) {
    throw rangeError('option', `rotaryDim must be even and at most the head size ${headDim}, got ${rotaryDim}`);
  }
  const { frequencies, amplitude } = ropeFrequencies(base, rotaryDim, scaling);
  return inverse
    ? { frequencies: frequencies.map((f) => -f), amplitude: 1 / amplitude, interleaved }
    : { frequencies, amplitude, interleaved };
}

/**
 * The rotation itself, for rows that a caller has at hand.
 * @param {unknown} options a RopeAngles
 * @param {number} headDim elements of a row
 * @returns {Turner}
 * @throws TypeError or RangeError with a `code`
 */
export function makeRope(options, headDim) {
  return new Turner(readAngles(readNamed('rope', options, angleNames), headDim, false));
}

/**
 * @param {Runtime} runtime
 * @param {unknown} x (B, H, L, D), (H, L, D) or (L, D)
 * @param {unknown} options a RopeOptions
 * @returns {RopeResult | SdpaTensor}
 */
export function rope(runtime, x, options) {
  void runtime.exports; // throws once the instance is disposed of
  const given = readNamed('rope', options, names);
  const { inverse = false, layout = 'bhld', out } = given;
  const blhd = oneOf('layout', layout, { bhld: 0, blhd: 1 }) === 1;
  const places = readPlaces(given.positions, given.offset);
  const operand = readOperand('x', x, false, runtime);
  // From here on no code of the caller's runs.
  const sizes = readSizes(operand.shape, blhd);
  const turner = new Turner(readAngles(given, sizes.headDim, flag('inverse', inverse)));
  fitPlaces(places, sizes);
  const target = readTarget(out, operand, runtime);
  const source = viewOf(runtime, operand);

  /** @type {any} */
  let data;
  if (operand.dtype === 'float32') {
    data = target ?? allocate(operand);
    data.set(source);
    turnAll(data, sizes, places, turner);
  } else {
    const isHalf = operand.dtype === 'float16';
    const wide = isHalf ? fromFloat16Bits(source) : fromBfloat16Bits(source);
    turnAll(wide, sizes, places, turner);
    data = isHalf ? toFloat16Bits(wide) : toBfloat16Bits(wide);
    target?.set(data);
  }
  if (out instanceof SdpaTensor) return out;
  const shape = [...operand.shape];
  return { data: out ?? likeInput(operand, data), shape, dtype: operand.dtype };
}

/**
 * @param {Float32Array} data turned in place
 * @param {Sizes} sizes
 * @param {Places} places
 * @param {Turner} turner
 */
function turnAll(data, { batch, heads, length, batchStride, headStride, rowStride }, { at, perBatch }, turner) {
  if (data.length === 0) return;
  // Position by position, because the sines cost more than the rest.
  const groups = perBatch ? batch : 1;
  const rowsOf = perBatch ? 1 : batch;
  for (let group = 0; group < groups; ++group) {
    for (let i = 0; i < length; ++i) {
      const position = at(group, i);
      for (let b = group; b < group + rowsOf; ++b) {
        for (let h = 0; h < heads; ++h) {
          turner.rotate(data, b * batchStride + h * headStride + i * rowStride, position);
        }
      }
    }
  }
}

const targetKinds = {
  float32: ['Float32Array'],
  float16: ['Uint16Array', 'Float16Array'],
  bfloat16: ['Uint16Array'],
};

/**
 * @param {unknown} out
 * @param {Operand} x
 * @param {Runtime} runtime
 * @returns {any} a Float32Array or Uint16Array over out's elements; null where there is no out
 */
function readTarget(out, x, runtime) {
  if (out === undefined) return null;
  if (out instanceof SdpaTensor) {
    const operand = readOperand('out', out, false, runtime);
    if (operand.pointer === 0 || operand.data) throw rangeError('option', 'out is a tensor of another sdpa instance');
    if (operand.dtype !== x.dtype) throw typeError('type', `out is a ${operand.dtype} tensor but x is ${x.dtype}`);
    if (operand.shape.length !== x.shape.length || operand.shape.some((size, i) => size !== x.shape[i])) {
      throw rangeError('shape', `out shape is ${show(operand.shape)} but the shape of x is ${show(x.shape)}`);
    }
    return viewOf(runtime, operand);
  }
  const kind = arrayKind(out);
  const kinds = targetKinds[/** @type {keyof typeof targetKinds} */ (x.dtype)];
  if (kind === undefined || !kinds.includes(kind)) {
    throw typeError(
      'type',
      `out must be a ${kinds.join(', a ')} or a tensor, because x is ${x.dtype}; got ${show(out)}`,
    );
  }
  if (arrayLength(out) !== x.count) {
    throw rangeError('shape', `out has ${arrayLength(out)} elements but the result ${show(x.shape)} has ${x.count}`);
  }
  return kind === 'Float16Array' ? new Uint16Array(arrayBuffer(out), arrayOffset(out), x.count) : out;
}

/** @param {Operand} x */
function allocate({ count, shape }) {
  try {
    return new Float32Array(count);
  } catch (cause) {
    throw outOfMemory(count * 4, 0, `a result of shape [${shape.join(', ')}]`, cause);
  }
}

/**
 * @param {Operand} x
 * @param {any} data
 */
function likeInput(x, data) {
  if (arrayKind(x.data) !== 'Float16Array') return data;
  return new /** @type {any} */ (globalThis).Float16Array(data.buffer, data.byteOffset, data.length);
}
