// Rotary embedding by its formula, element by element, in float64. Shares no code with the package.

import { halfToNumber } from '../helpers/reference.mjs';

/** Elements of a tensor as numbers. @param {any} tensor @returns {Float64Array} */
export function valuesOf({ data, dtype }) {
  const widen =
    dtype === 'float16'
      ? halfToNumber
      : dtype === 'bfloat16'
        ? (/** @type {number} */ x) => new Float32Array(new Uint32Array([x << 16]).buffer)[0]
        : Number;
  return Float64Array.from(data, (x) => widen(x));
}

/**
 * @param {any} x { data, shape, dtype? } of rank 2 to 4
 * @param {any} [options] those of rope(), with `frequency(k)` for whatever `base` and `scaling` make of it, and `amplitude`
 * @returns {Float64Array}
 */
export function referenceRope(x, options = {}) {
  const { base = 10000, pairing = 'half', layout = 'bhld', inverse = false, amplitude = 1 } = options;
  const values = valuesOf(x);
  const rank = x.shape.length;
  const D = x.shape[rank - 1];
  const r = options.rotaryDim ?? D;
  const frequency = options.frequency ?? ((/** @type {number} */ k) => Math.exp((-2 * k * Math.log(base)) / r));
  const blhd = layout === 'blhd' && rank > 2;
  const [L, H] =
    rank === 2
      ? [x.shape[0], 1]
      : blhd
        ? [x.shape[rank - 3], x.shape[rank - 2]]
        : [x.shape[rank - 2], x.shape[rank - 3]];
  return values.map((value, index) => {
    const d = index % D;
    if (d >= r) return value;
    const row = Math.floor(index / D);
    const i = blhd ? Math.floor(row / H) % L : row % L;
    const b = Math.floor(row / (H * L));
    const k = pairing === 'half' ? d % (r / 2) : Math.floor(d / 2);
    const isFirst = pairing === 'half' ? d < r / 2 : d % 2 === 0;
    const partner = values[index - d + (pairing === 'half' ? (d + r / 2) % r : d ^ 1)];
    const angle = positionOf(options, b, i, L) * frequency(k) * (inverse ? -1 : 1);
    const factor = inverse ? 1 / amplitude : amplitude;
    return factor * (value * Math.cos(angle) + (isFirst ? -1 : 1) * partner * Math.sin(angle));
  });
}

/**
 * @param {any} options
 * @param {number} b
 * @param {number} i
 * @param {number} L
 */
function positionOf({ positions, offset }, b, i, L) {
  if (positions) {
    const data = positions.data ?? positions;
    return data[data.length === L ? i : b * L + i];
  }
  return i + (offset === undefined ? 0 : typeof offset === 'number' ? offset : offset[b]);
}
