// From numbers to places on the palette, 0 … 1.

/** @typedef {'linear' | 'log' | 'row'} ScaleName */

/** What the legend says of each. @type {Record<ScaleName, string>} */
export const scaleNames = { linear: 'linear', log: 'logarithmic', row: 'each row by itself' };

/** Least share of the largest number that the logarithmic scale still tells from nothing. */
const logFloor = 1e-7;

/**
 * @typedef {object} MapValues
 * @property {number} rows
 * @property {number} columns
 * @property {ArrayLike<number>} values (rows, columns)
 * @property {ArrayLike<number | boolean>} [masked] (rows, columns), non-zero = not attended
 * @property {readonly [least: number, most: number]} [range] of the colours; that of the values where absent
 */

/**
 * @param {MapValues} map
 * @returns {[least: number, most: number]} of the cells that are not masked; [0, 1] where there is none
 */
function rangeOf({ rows, columns, values, masked, range }) {
  if (range) return [range[0], range[1]];
  let [least, most] = [Infinity, -Infinity];
  for (let k = 0; k < rows * columns; k++) {
    if (masked?.[k] || !Number.isFinite(values[k])) continue;
    least = Math.min(least, values[k]);
    most = Math.max(most, values[k]);
  }
  return least <= most ? [least, most] : [0, 1];
}

/**
 * @param {MapValues} map
 * @param {ScaleName} name
 * @returns {{ place: (row: number, value: number) => number, least: number, most: number }} `least` and `most` for the legend
 */
export function makeScale(map, name) {
  const [least, most] = rangeOf(map);
  if (name === 'row') return { place: rowPlaces(map), least, most };
  if (name === 'log') {
    const from = Math.max(least, most * logFloor, Number.MIN_VALUE);
    const width = Math.log(most / from);
    const place = (/** @type {number} */ _row, /** @type {number} */ value) =>
      value > 0 && width > 0 ? cut(Math.log(value / from) / width) : value > 0 ? 1 : 0;
    return { place, least: from, most };
  }
  const width = most - least;
  return { place: (_row, value) => (width > 0 ? cut((value - least) / width) : value > 0 ? 1 : 0), least, most };
}

/** @param {MapValues} map */
function rowPlaces({ rows, columns, values, masked }) {
  const ranges = Array.from({ length: rows }, (_, i) => {
    const cells = { rows: 1, columns, values: slice(values, i, columns), masked: masked && slice(masked, i, columns) };
    return rangeOf(cells);
  });
  return (/** @type {number} */ row, /** @type {number} */ value) => {
    const [from, to] = ranges[row];
    return to > from ? cut((value - from) / (to - from)) : value > 0 ? 1 : 0;
  };
}

/**
 * @template T
 * @param {ArrayLike<T>} cells
 * @param {number} row
 * @param {number} columns
 * @returns {ArrayLike<T>}
 */
function slice(cells, row, columns) {
  const from = row * columns;
  return ArrayBuffer.isView(cells)
    ? /** @type {any} */ (cells).subarray(from, from + columns)
    : Array.prototype.slice.call(cells, from, from + columns);
}

/** @param {number} t */
const cut = (t) => (t > 0 ? (t < 1 ? t : 1) : 0);
