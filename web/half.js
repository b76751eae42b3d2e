// float32 to the 16-bit storage types and back: rounded to nearest, ties to even (IEEE 754, 4.3.1). NaN becomes the quiet NaN of its sign.

/** Added and taken away again, leaves a double of magnitude below 2^51 rounded to the nearest even integer. */
const ROUND_TO_INTEGER = 1.5 * 2 ** 52;

/**
 * @param {Float32Array} values
 * @returns {Uint16Array} IEEE binary16 bits; magnitudes from 65520 on become infinity, those up to 2^-25 zero
 */
export function toFloat16Bits(values) {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const out = new Uint16Array(values.length);
  for (let i = 0; i < out.length; ++i) {
    const sign = (bits[i] >>> 16) & 0x8000;
    const magnitude = bits[i] & 0x7fffffff;
    if (magnitude > 0x7f800000) out[i] = sign | 0x7e00;
    else if (magnitude >= 0x477ff000) out[i] = sign | 0x7c00;
    else if (magnitude >= 0x38800000) {
      // Normal in both types: 13 mantissa bits go, the exponent's bias falls from 127 to 15.
      const rebiased = magnitude - 0x38000000;
      out[i] = sign | ((rebiased + 0xfff + ((rebiased >>> 13) & 1)) >>> 13);
    } else {
      // Subnormal: a whole number of steps of 2^-24.
      out[i] = sign | (Math.abs(values[i]) * 2 ** 24 + ROUND_TO_INTEGER - ROUND_TO_INTEGER);
    }
  }
  return out;
}

/**
 * @param {Float32Array} values
 * @returns {Uint16Array} bfloat16 bits
 */
export function toBfloat16Bits(values) {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const out = new Uint16Array(values.length);
  for (let i = 0; i < out.length; ++i) {
    out[i] =
      values[i] !== values[i]
        ? ((bits[i] >>> 16) & 0x8000) | 0x7fc0
        : (bits[i] + 0x7fff + ((bits[i] >>> 16) & 1)) >>> 16;
  }
  return out;
}

/**
 * @param {Uint16Array} bits IEEE binary16
 * @returns {Float32Array} the same numbers, exactly
 */
export function fromFloat16Bits(bits) {
  const out = new Float32Array(bits.length);
  const words = new Uint32Array(out.buffer);
  for (let i = 0; i < out.length; ++i) {
    const magnitude = bits[i] & 0x7fff;
    if (magnitude >= 0x0400) {
      // 13 mantissa bits more, the exponent's bias rises from 15 to 127; infinity and NaN keep an exponent of all ones.
      words[i] = (magnitude << 13) + (magnitude >= 0x7c00 ? 0x70000000 : 0x38000000);
    } else {
      out[i] = magnitude * 2 ** -24;
    }
    words[i] |= (bits[i] & 0x8000) << 16;
  }
  return out;
}

/**
 * @param {Uint16Array} bits bfloat16
 * @returns {Float32Array} the same numbers, exactly
 */
export function fromBfloat16Bits(bits) {
  const out = new Float32Array(bits.length);
  const words = new Uint32Array(out.buffer);
  for (let i = 0; i < out.length; ++i) words[i] = bits[i] << 16;
  return out;
}
