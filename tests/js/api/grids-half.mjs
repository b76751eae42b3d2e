// float16 and bfloat16 numbers for the sweeps.

import { halfToNumber } from '../helpers/reference.mjs';

const float = new Float32Array(1);
const bits = new Uint32Array(float.buffer);

/** float16 bits of a number, to nearest, ties to even. @param {number} x */
function halfBits(x) {
  const size = Math.abs(x);
  const sign = x < 0 || Object.is(x, -0) ? 0x8000 : 0;
  if (size >= 65520) return sign | 0x7c00;
  // Below 2^-14 numbers are multiples of 2^-24; from there on of 2^-10 of the power of two below.
  const exponent = Math.max(-14, Math.floor(Math.log2(size)));
  const steps = roundToEven(size * 2 ** (10 - exponent));
  return sign | (exponent === -14 && steps < 1024 ? steps : ((exponent + 14) << 10) + steps);
}

/** @param {number} x at least 0 */
function roundToEven(x) {
  const below = Math.floor(x);
  const rest = x - below;
  return below + (rest > 0.5 || (rest === 0.5 && below % 2 === 1) ? 1 : 0);
}

/** bfloat16 bits of a float32 number. @param {number} x */
function brainBits(x) {
  float[0] = x;
  return ((bits[0] + 0x7fff + ((bits[0] >>> 16) & 1)) >>> 16) & 0xffff;
}

/** @param {number} x the bits */
function brainNumber(x) {
  bits[0] = x << 16;
  return float[0];
}

/**
 * The numbers that the bits stand for.
 * @param {Uint16Array} stored
 * @param {'float16' | 'bfloat16'} dtype
 */
export const fromHalf = (stored, dtype) => Float32Array.from(stored, dtype === 'float16' ? halfToNumber : brainNumber);

/**
 * The tensor in a 16-bit type, and the numbers that it then holds.
 * @param {{ data: ArrayLike<number>, shape: number[] }} tensor
 * @param {'float16' | 'bfloat16'} [dtype]
 */
export function toHalf({ data, shape }, dtype = 'float16') {
  const stored = Uint16Array.from(data, dtype === 'float16' ? halfBits : brainBits);
  return { data: stored, shape, dtype, numbers: fromHalf(stored, dtype) };
}
