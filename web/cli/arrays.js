import { rangeError } from '../errors.js';
import { product } from '../tensor.js';

/**
 * @param {string} name
 * @param {readonly number[]} shape
 * @returns {Float32Array<ArrayBuffer>} zeros
 */
export function allocateFloats(name, shape) {
  const count = product(name, shape);
  try {
    return new Float32Array(count);
  } catch {
    throw rangeError(
      'out-of-memory',
      `${name} [${shape.join(', ')}] needs ${count * 4} bytes, which this engine refuses to allocate`,
    );
  }
}
