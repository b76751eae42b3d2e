// Swin (Liu et al. 2021): windows of a shifted image, in which tokens that were not neighbours before the shift do
// not see each other.

import { readNamed } from '../named-options.js';
import { wholeNumber } from './arguments.js';
import { fromIds } from './documents.js';

/**
 * Options of swin(), in tokens.
 * @typedef {object} SwinOptions
 * @property {number} height of the image
 * @property {number} width of the image
 * @property {number} windowSize side of a window
 * @property {number} [shift] of the image up and left, below windowSize; half a window, rounded down, where absent
 */

/**
 * The mask of one image's windows. The image is padded below and on the right to whole windows, then shifted in a
 * circle, up and left; windows go by rows, and so do the tokens of a window. Along an axis of n padded tokens, those
 * at 0 ... n - windowSize - 1 of the shifted image are one region, those up to n - shift - 1 the next and the rest,
 * which came round from the other end, the last; a token sees the tokens of its window in its own region of both
 * axes. Padding belongs to the region in which it lies, as in the original. An axis with one window is not shifted.
 * @param {SwinOptions} options
 * @returns {import('./block-mask.js').BlockMask} (windows, 1, windowSize², windowSize²): the windows are the batch
 * @throws TypeError or RangeError with a `code`
 */
export function swin(options) {
  const given = readNamed('swin', options, ['height', 'width', 'windowSize', 'shift']);
  const most = 2 ** 31 - 1;
  const height = wholeNumber('swin height', given.height, 1, most);
  const width = wholeNumber('swin width', given.width, 1, most);
  // The square of a side is a number of rows.
  const side = wholeNumber('swin windowSize', given.windowSize, 1, 46340);
  const shift = wholeNumber('swin shift', given.shift ?? Math.floor(side / 2), 0, side - 1);
  const down = regions(height, side, shift);
  const across = regions(width, side, shift);
  const windowsAcross = Math.ceil(width / side);
  const tokens = side * side;
  return fromIds(tokens, tokens, Math.ceil(height / side) * windowsAcross, (window) => {
    const y = Math.floor(window / windowsAcross) * side;
    const x = (window % windowsAcross) * side;
    const ids = new Int32Array(tokens);
    for (let t = 0; t < tokens; t++) ids[t] = 3 * down(y + Math.floor(t / side)) + across(x + (t % side));
    return [ids, ids];
  });
}

/**
 * @param {number} length of the image along an axis
 * @param {number} side
 * @param {number} shift
 * @returns {(at: number) => number} the region of each padded token of the shifted image
 */
function regions(length, side, shift) {
  const padded = Math.ceil(length / side) * side;
  if (shift === 0 || padded === side) return () => 0;
  return (at) => (at < padded - side ? 0 : at < padded - shift ? 1 : 2);
}
