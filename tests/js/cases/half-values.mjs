// float16 and bfloat16 for tests, by a table of all 65 536 values and a search in it: another way than the library's.

/** @type {Map<string, Float64Array>} magnitudes by bit pattern */
const tables = new Map();

export function isHalf(dtype) {
  return dtype === 'float16' || dtype === 'bfloat16';
}

/** Value of a 16-bit pattern. */
export function fromBits(dtype, bits) {
  const [exponentBits, mantissaBits] = dtype === 'float16' ? [5, 10] : [8, 7];
  const sign = bits >> 15 ? -1 : 1;
  const exponent = (bits >> mantissaBits) & ((1 << exponentBits) - 1);
  const fraction = (bits & ((1 << mantissaBits) - 1)) / 2 ** mantissaBits;
  const bias = 2 ** (exponentBits - 1) - 1;
  if (exponent === 2 ** exponentBits - 1) return fraction === 0 ? sign * Infinity : NaN;
  return sign * (exponent === 0 ? fraction * 2 ** (1 - bias) : (1 + fraction) * 2 ** (exponent - bias));
}

/** Bits of the nearest value, ties to the even pattern; NaN is the quiet NaN. */
export function toBits(dtype, value) {
  const infinity = dtype === 'float16' ? 0x7c00 : 0x7f80;
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  if (Number.isNaN(value)) return infinity | ((infinity & -infinity) >> 1);
  const magnitude = Math.abs(value);
  // Patterns 0..infinity are in the order of their values; infinity stands for the next power of two in rounding.
  let low = 0;
  let high = infinity;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (ladder(dtype)[middle] <= magnitude) low = middle;
    else high = middle - 1;
  }
  if (low === infinity || magnitude === ladder(dtype)[low]) {
    return sign | (magnitude >= ladder(dtype)[infinity] ? infinity : low);
  }
  const below = magnitude - ladder(dtype)[low];
  const above = ladder(dtype)[low + 1] - magnitude;
  return sign | (below < above || (below === above && low % 2 === 0) ? low : low + 1);
}

/** The value rounded to what the dtype stores. */
export function roundTo(dtype, value) {
  if (dtype === 'float32') return Math.fround(value);
  return isHalf(dtype) ? fromBits(dtype, toBits(dtype, value)) : value;
}

function ladder(dtype) {
  let values = tables.get(dtype);
  if (values === undefined) {
    const infinity = dtype === 'float16' ? 0x7c00 : 0x7f80;
    values = Float64Array.from({ length: infinity + 1 }, (_, bits) => fromBits(dtype, bits));
    values[infinity] = dtype === 'float16' ? 2 ** 16 : 2 ** 128;
    tables.set(dtype, values);
  }
  return values;
}
