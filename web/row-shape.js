// Which dimensions of a tensor of rows are what: (B, H, L, D) or (B, L, H, D); without B at rank 3, without B and H at rank 2.

/**
 * @typedef {object} Rows
 * @property {number} batch
 * @property {number} heads
 * @property {number} length
 * @property {number} size columns of a row
 */

/**
 * @param {readonly number[]} shape of rank 2 to 4
 * @param {boolean} blhd whether tokens come before heads
 * @returns {Rows}
 */
export function rowsOf(shape, blhd) {
  const rank = shape.length;
  const turned = blhd && rank > 2;
  return {
    batch: rank === 4 ? shape[0] : 1,
    heads: rank === 2 ? 1 : shape[turned ? rank - 2 : rank - 3],
    length: shape[turned ? rank - 3 : rank - 2],
    size: shape[rank - 1],
  };
}

/**
 * @param {Rows} rows
 * @param {number} rank
 * @param {boolean} blhd
 * @returns {number[]}
 */
export function shapeOf({ batch, heads, length, size }, rank, blhd) {
  if (rank === 2) return [length, size];
  const inner = blhd ? [length, heads, size] : [heads, length, size];
  return rank === 4 ? [batch, ...inner] : inner;
}
