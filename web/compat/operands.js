// Query, key and value as the functions of other libraries get them: float tensors of one type, and a result of that type.
import { typeError } from '../errors.js';
import { readFloat } from './onnx-inputs.js';
import { fromFloat32, outputOf } from './onnx-layout.js';

/**
 * @typedef {import('./onnx-inputs.js').FloatInput} FloatInput
 * @typedef {import('./onnx-inputs.js').FloatType} FloatType
 * @typedef {import('../tensor.js').TensorLike} TensorLike
 * @typedef {import('../tensor.js').SdpaTensor} SdpaTensor
 * @typedef {TensorLike | SdpaTensor} TensorArgument what takes the place of a tensor
 * @typedef {{ data: any, shape: number[], dtype: FloatType }} ResultTensor `data` is a Float32Array; for 16-bit inputs a Uint16Array of
 *   the raw bits, or a Float16Array where the query's data is one
 */

/**
 * @param {Record<'query' | 'key' | 'value', unknown>} given
 * @returns {[FloatInput, FloatInput, FloatInput]} query, key and value, of one type
 */
export function readOperands(given) {
  const read = /** @type {const} */ (['query', 'key', 'value']).map((name) => {
    const tensor = readFloat(given, name);
    if (tensor === undefined) throw typeError('type', `${name} is missing`);
    return tensor;
  });
  const [query, key, value] = read;
  for (const { name, dtype } of [key, value]) {
    if (dtype !== query.dtype) {
      throw typeError(
        'type',
        `${name} is ${dtype} but query is ${query.dtype}: query, key and value must be of one type`,
      );
    }
  }
  return [query, key, value];
}

/**
 * @param {Float32Array} data
 * @param {number[]} shape
 * @param {FloatInput} query
 * @returns {ResultTensor} in the query's type, 16-bit ones rounded once
 */
export function resultOf(data, shape, query) {
  return outputOf(fromFloat32(data, shape, query.dtype), query.isFloat16Array);
}
