// Reads an ONNX operator's inputs and attributes: what a caller hands over becomes one checked form, and a fault becomes an
// error that says the operator's formal name.
import { rangeError, show, typeError } from '../errors.js';
import { arrayKind, product, readShape } from '../tensor.js';

/**
 * @typedef {'float32' | 'float16' | 'bfloat16'} FloatType types of float tensors
 * @typedef {Float32Array | Uint16Array} FloatData elements of a float tensor; 16-bit ones by their bits
 * @typedef {object} OnnxTensor what a caller hands over: any object with `data` and `shape` (or `dims`), and `dtype` (or `type`)
 *   where the kind of array does not say it
 * @property {ArrayLike<number> | ArrayLike<bigint> | ArrayLike<boolean> | import('../tensor.js').Float16Data} data
 * @property {ArrayLike<number>} [shape]
 * @property {ArrayLike<number>} [dims]
 * @property {string} [dtype]
 * @property {string} [type]
 * @typedef {object} FloatInput a float tensor whose type is known
 * @property {string} name
 * @property {FloatData} data
 * @property {number[]} shape
 * @property {FloatType} dtype
 * @property {boolean} isFloat16Array the caller's own array is a Float16Array
 * @property {OnnxTensor} source what the caller gave
 */

/** Type that the kind of array says by itself. @type {Record<string, string>} */
const TYPE_OF_KIND = {
  Float32Array: 'float32',
  Float16Array: 'float16',
  Float64Array: 'float64',
  BigInt64Array: 'int64',
  Int32Array: 'int32',
  Int8Array: 'int8',
  Uint8Array: 'bool',
};

/** Types that an operator may have by its specification, and that are not taken here. */
const UNSUPPORTED = ['float64', 'int8', 'uint8'];

/** Kinds of array that hold a type. @type {Record<string, string[]>} */
const KINDS_OF_TYPE = {
  float32: ['Float32Array'],
  float16: ['Uint16Array', 'Float16Array'],
  bfloat16: ['Uint16Array'],
  bool: ['Uint8Array', 'Array'],
  int64: ['BigInt64Array', 'Int32Array', 'Array'],
  int32: ['Int32Array', 'Array'],
};

/**
 * The keys of an object of inputs or attributes, all of them known.
 * @param {string} kind 'input' or 'attribute'
 * @param {unknown} given
 * @param {readonly string[]} known
 * @param {string} [operator]
 */
export function checkNames(kind, given, known, operator = 'Attention') {
  if (typeof given !== 'object' || given === null) {
    throw typeError('type', `${kind}s must be an object keyed by formal name, not ${show(given)}`);
  }
  for (const name of Object.keys(given)) {
    if (!known.includes(name)) {
      throw typeError('unknown-option', `${operator} has no ${kind} ${name}; it has ${known.join(', ')}`);
    }
  }
}

/**
 * A float tensor, or undefined where an optional input is absent.
 * @param {Record<string, any>} inputs
 * @param {string} name
 * @returns {FloatInput | undefined}
 */
export function readFloat(inputs, name) {
  const tensor = readTensor(inputs, name);
  if (tensor === undefined) return undefined;
  const { data, dtype } = tensor;
  if (dtype !== 'float32' && dtype !== 'float16' && dtype !== 'bfloat16') {
    const taken = name === 'attn_mask' ? 'bool, float32, float16 or bfloat16' : 'float32, float16 or bfloat16';
    throw typeError(UNSUPPORTED.includes(dtype) ? 'unsupported' : 'type', `${name} is ${dtype}; it must be ${taken}`);
  }
  const isFloat16Array = kindOf(data) === 'Float16Array';
  return {
    ...tensor,
    name,
    dtype,
    data: isFloat16Array ? new Uint16Array(data.buffer, data.byteOffset, data.length) : data,
    isFloat16Array,
  };
}

/**
 * The mask: boolean (`dtype` 'bool', data 0 or 1 a byte) or float.
 * @param {Record<string, any>} inputs
 * @param {string} name
 * @returns {{ dtype: 'bool' | FloatType, data: Uint8Array | FloatData, shape: number[] } | undefined}
 */
export function readMask(inputs, name) {
  const tensor = readTensor(inputs, name, 'bool');
  if (tensor === undefined) return undefined;
  if (tensor.dtype !== 'bool') return readFloat(inputs, name);
  const { data, shape } = tensor;
  return {
    dtype: 'bool',
    data: kindOf(data) === 'Array' ? Uint8Array.from(data, (x) => toByte(x, name)) : data,
    shape,
  };
}

/**
 * @param {unknown} element of a plain array that stands for a boolean tensor
 * @param {string} name
 */
function toByte(element, name) {
  if (typeof element !== 'boolean' && element !== 0 && element !== 1) {
    throw typeError('type', `${name} is a boolean array but holds ${show(element)}`);
  }
  return Number(element);
}

/**
 * A vector of integers, one per batch.
 * @param {Record<string, any>} inputs
 * @param {string} name
 * @param {number} batch
 * @param {number} largest
 * @returns {Int32Array | undefined}
 */
export function readLengths(inputs, name, batch, largest) {
  const tensor = readIntegers(inputs, name);
  if (tensor === undefined) return undefined;
  const { shape, values } = tensor;
  if (shape.length !== 1 || shape[0] !== batch) {
    throw rangeError('shape', `${name} has shape [${shape}] but the batch size is ${batch}: it must be [${batch}]`);
  }
  return Int32Array.from(values, (length, b) => {
    if (length < 0 || length > largest) {
      throw rangeError(
        'option',
        `${name}[${b}] is ${length}; it must be an integer from 0 to the number of keys, ${largest}`,
      );
    }
    return length;
  });
}

/**
 * A tensor of whole numbers, int32 or int64 (the latter also as Int32Array), or a bare vector of them.
 * @param {Record<string, any>} inputs
 * @param {string} name
 * @returns {{ shape: number[], values: number[] } | undefined}
 */
export function readIntegers(inputs, name) {
  const given = inputs[name];
  const isVector = kindOf(given) !== undefined;
  const tensor = readTensor({ [name]: isVector ? vectorOf(given) : given }, name, 'int64');
  if (tensor === undefined) return undefined;
  const { dtype, shape, data } = tensor;
  if (dtype !== 'int64' && dtype !== 'int32') {
    throw typeError('type', `${name} is ${dtype}; it must be int64 or int32 (BigInt64Array or Int32Array)`);
  }
  const values = Array.from(data, Number);
  const wrong = values.findIndex((value) => !Number.isSafeInteger(value));
  if (wrong >= 0) throw rangeError('option', `${name}[${wrong}] is ${show(data[wrong])}; it must be an integer`);
  return { shape, values };
}

/** @param {Record<string, any>} inputs @param {string} name @returns {FloatInput} */
export function required(inputs, name) {
  const input = readFloat(inputs, name);
  if (input === undefined) throw typeError('type', `input ${name} is missing`);
  return input;
}

/**
 * One whole number: a tensor of shape [] or [1].
 * @param {Record<string, any>} inputs
 * @param {string} name
 * @returns {number | undefined}
 */
export function readScalar(inputs, name) {
  const tensor = readIntegers(inputs, name);
  if (tensor === undefined) return undefined;
  if (tensor.shape.length > 1 || tensor.values.length !== 1) {
    throw rangeError('shape', `${name} has shape [${tensor.shape}]; it must hold one number: [] or [1]`);
  }
  return tensor.values[0];
}

/** A bare vector as a tensor. @param {any} data */
function vectorOf(data) {
  return { data, shape: [data.length] };
}

/**
 * An integer attribute; the operator's integers are 64-bit, so a bigint is taken too.
 * @param {Record<string, any>} attributes
 * @param {string} name
 * @param {number | undefined} fallback
 * @param {(value: number) => boolean} accepts
 * @param {string} rule what is accepted, for the message
 * @returns {number | undefined}
 */
export function readInteger(attributes, name, fallback, accepts, rule) {
  const given = attributes[name];
  if (given === undefined || given === null) return fallback;
  if (typeof given !== 'number' && typeof given !== 'bigint' && typeof given !== 'boolean') {
    throw typeError('type', `${name} must be an integer, not ${show(given)}`);
  }
  const value = Number(given);
  if (!Number.isInteger(value) || !accepts(value))
    throw rangeError('option', `${name} is ${given}; it must be ${rule}`);
  return value;
}

/**
 * An integer attribute that must be there.
 * @param {Record<string, any>} attributes
 * @param {string} name
 * @param {(value: number) => boolean} accepts
 * @param {string} rule
 * @returns {number}
 */
export function requiredInteger(attributes, name, accepts, rule) {
  const value = readInteger(attributes, name, undefined, accepts, rule);
  if (value === undefined) throw rangeError('option', `${name} is required`);
  return value;
}

/**
 * A float attribute.
 * @param {Record<string, any>} attributes
 * @param {string} name
 * @param {(value: number) => boolean} accepts
 * @param {string} rule
 * @returns {number | undefined}
 */
export function readNumber(attributes, name, accepts, rule) {
  const given = attributes[name];
  if (given === undefined || given === null) return undefined;
  if (typeof given !== 'number') throw typeError('type', `${name} must be a number, not ${show(given)}`);
  if (!accepts(given)) throw rangeError('option', `${name} is ${given}; it must be ${rule}`);
  return given;
}

/**
 * A tensor of any type, or undefined where an optional input is absent.
 * @param {Record<string, any>} inputs
 * @param {string} name
 * @param {string} [plainArrayType] type of a plain array that does not say it
 * @returns {{ data: any, shape: number[], dtype: string, source: OnnxTensor } | undefined}
 */
function readTensor(inputs, name, plainArrayType) {
  const source = inputs[name];
  if (source === undefined || source === null) return undefined;
  if (typeof source !== 'object' || kindOf(source) !== undefined) {
    throw typeError('type', `${name} must be a tensor { data, shape }, got ${show(source)}`);
  }
  const shape = readShape(name, source.shape ?? source.dims);
  const data = source.data;
  const dtype = readType(name, source.dtype ?? source.type, data, plainArrayType);
  const elements = product(name, shape);
  if (data.length !== elements) {
    throw rangeError('shape', `${name} has ${data.length} elements but its shape [${shape}] needs ${elements}`);
  }
  return { data, shape, dtype, source };
}

/**
 * @param {string} name
 * @param {unknown} declared
 * @param {unknown} data
 * @param {string | undefined} plainArrayType
 */
function readType(name, declared, data, plainArrayType) {
  const kind = kindOf(data);
  if (kind === undefined) throw typeError('type', `${name} data must be a typed array, got ${show(data)}`);
  const dtype = declared ?? TYPE_OF_KIND[kind] ?? (kind === 'Array' ? plainArrayType : undefined);
  if (typeof dtype !== 'string') {
    throw typeError(
      'type',
      `${name} needs a dtype: its data is ${show(data)}, which does not say it, got ${show(dtype)}`,
    );
  }
  const kinds = KINDS_OF_TYPE[dtype];
  if (kinds !== undefined && !kinds.includes(kind)) {
    throw typeError(
      'type',
      `${name} has dtype ${dtype} but its data is ${show(data)}; it is held by ${kinds.join(' or ')}`,
    );
  }
  return dtype;
}

/** @param {unknown} value @returns {string | undefined} 'Float32Array' and so on, 'Array', or undefined for what is no array */
function kindOf(value) {
  return arrayKind(value) ?? (Array.isArray(value) ? 'Array' : undefined);
}
