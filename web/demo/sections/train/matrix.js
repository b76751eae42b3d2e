// Products of small matrices, row after row in one array: what surrounds attention in the model of this section.

/**
 * @typedef {Float32Array} Numbers
 */

/**
 * x·w.
 * @param {Numbers} x (rows, inner)
 * @param {Numbers} w (inner, columns)
 * @param {number} inner
 * @param {number} columns
 * @returns {Float32Array} (rows, columns)
 */
export function times(x, w, inner, columns) {
  const rows = x.length / inner;
  const out = new Float32Array(rows * columns);
  for (let i = 0; i < rows; i++) {
    for (let k = 0; k < inner; k++) {
      const factor = x[i * inner + k];
      if (factor === 0) continue;
      for (let j = 0; j < columns; j++) out[i * columns + j] += factor * w[k * columns + j];
    }
  }
  return out;
}

/**
 * xᵀ·g: the gradient of w in x·w.
 * @param {Numbers} x (rows, inner)
 * @param {Numbers} g (rows, columns)
 * @param {number} inner
 * @param {number} columns
 * @returns {Float32Array} (inner, columns)
 */
export function transposedTimes(x, g, inner, columns) {
  const rows = x.length / inner;
  const out = new Float32Array(inner * columns);
  for (let i = 0; i < rows; i++) {
    for (let k = 0; k < inner; k++) {
      const factor = x[i * inner + k];
      if (factor === 0) continue;
      for (let j = 0; j < columns; j++) out[k * columns + j] += factor * g[i * columns + j];
    }
  }
  return out;
}

/**
 * g·wᵀ: the gradient of x in x·w.
 * @param {Numbers} g (rows, columns)
 * @param {Numbers} w (inner, columns)
 * @param {number} inner
 * @param {number} columns
 * @returns {Float32Array} (rows, inner)
 */
export function timesTransposed(g, w, inner, columns) {
  const rows = g.length / columns;
  const out = new Float32Array(rows * inner);
  for (let i = 0; i < rows; i++) {
    for (let k = 0; k < inner; k++) {
      let sum = 0;
      for (let j = 0; j < columns; j++) sum += g[i * columns + j] * w[k * columns + j];
      out[i * inner + k] = sum;
    }
  }
  return out;
}
