// The fixed position embedding of the first transformers (arXiv 1706.03762, 3.5): sines and cosines of pos/base^(2i/dim).

import { rangeError, outOfMemory } from './errors.js';
import { readNamed } from './named-options.js';
import { finite, oneOf, whole } from './option-values.js';

/**
 * Options of sinusoidal().
 * @typedef {object} SinusoidalOptions
 * @property {'interleaved' | 'sines-first'} [order] 'interleaved' (default): column 2i holds sin(pos/base^(2i/dim)), column 2i + 1 its
 *   cosine; 'sines-first': all sines, then all cosines (Marian, RoFormer). Where dim is odd there is one more sine than cosines
 * @property {number} [base] 10 000
 * @property {number} [offset] position of the first row; 0
 */

/**
 * @param {number} length rows
 * @param {number} dim columns
 * @param {SinusoidalOptions} [options]
 * @returns {import('./tensor.js').Tensor} of shape [length, dim]; each element is the nearest float32 of its formula in float64
 * @throws TypeError or RangeError with a `code`
 */
export function sinusoidal(length, dim, options) {
  whole('length', length, 0);
  whole('dim', dim, 1);
  const {
    order = 'interleaved',
    base = 10000,
    offset = 0,
  } = readNamed('sinusoidal', options, ['order', 'base', 'offset']);
  const apart = oneOf('order', order, { interleaved: 0, 'sines-first': 1 }) === 1;
  if (finite('base', base) <= 0) throw rangeError('option', `base must be more than 0, got ${base}`);
  whole('offset', offset, -Number.MAX_SAFE_INTEGER);
  const sines = Math.ceil(dim / 2);
  const frequencies = Float64Array.from({ length: sines }, (_, i) => base ** ((-2 * i) / dim));
  const data = allocate(length, dim);
  for (let row = 0; row < length; ++row) {
    for (let i = 0; i < sines; ++i) {
      const angle = (offset + row) * frequencies[i];
      data[row * dim + (apart ? i : 2 * i)] = Math.sin(angle);
      if (2 * i + 1 < dim) data[row * dim + (apart ? sines + i : 2 * i + 1)] = Math.cos(angle);
    }
  }
  return { data, shape: [length, dim], dtype: 'float32' };
}

/** @param {number} length @param {number} dim */
function allocate(length, dim) {
  try {
    return new Float32Array(length * dim);
  } catch (cause) {
    throw outOfMemory(length * dim * 4, 0, `a result of shape [${length}, ${dim}]`, cause);
  }
}
