// Windows of an image under a cyclic shift whose tokens see only their own region of the image that was not shifted (Liu et al. 2021,
// "Swin Transformer", section 3.2). Within a shifted window that went round the border, the regions are the parts of the image that
// were cut apart; padding is seen by nobody. What is left is the image cut into rectangles: along an axis of `length` tokens at shift,
// shift + size, shift + 2·size, … So no token is moved, padded or masked. An axis that one window covers is neither cut nor shifted.

/**
 * Windows of one size in an image.
 * @typedef {object} WindowClass
 * @property {number} height tokens
 * @property {number} width
 * @property {number[]} origins y·(width of the image) + x of each window's first token
 */

/**
 * Where an axis is cut, its ends included.
 * @param {number} length tokens, 1 or more
 * @param {number} size of a window
 * @param {number} shift below size
 * @returns {number[]}
 */
function cutsAlong(length, size, shift) {
  if (length <= size) return [0, length];
  const cuts = [0];
  for (let at = shift === 0 ? size : shift; at < length; at += size) cuts.push(at);
  cuts.push(length);
  return cuts;
}

/**
 * @param {{ height: number, width: number, windowSize: readonly number[], shift: readonly number[] }} image
 * @returns {WindowClass[]} at most nine: whole windows, and those that an edge cuts
 */
export function windowClasses({ height, width, windowSize, shift }) {
  const rows = cutsAlong(height, windowSize[0], shift[0]);
  const columns = cutsAlong(width, windowSize[1], shift[1]);
  /** @type {Map<string, WindowClass>} */
  const classes = new Map();
  for (let r = 0; r + 1 < rows.length; r++) {
    for (let c = 0; c + 1 < columns.length; c++) {
      const size = { height: rows[r + 1] - rows[r], width: columns[c + 1] - columns[c] };
      const key = `${size.height} x ${size.width}`;
      const found = classes.get(key) ?? { ...size, origins: [] };
      classes.set(key, found);
      found.origins.push(rows[r] * width + columns[c]);
    }
  }
  return [...classes.values()];
}
