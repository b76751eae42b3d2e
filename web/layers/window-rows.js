// Tokens of windows, out of the image and back into it, a row of a window at a time.

/** @typedef {import('./window-grid.js').WindowClass} WindowClass */

/**
 * How a tensor has the tokens of an image: (batch, planes, height·width, token), with the heads outside, as planes, or inside a token.
 * Windows have them as (windows, planes, tokens of the window, token).
 * @typedef {object} TokenLayout
 * @property {number} planes
 * @property {number} token elements
 * @property {number} height
 * @property {number} width
 */

/** Elements of a tensor. @typedef {{ array: Float32Array | Uint16Array, at: number }} Place `at`: index of the first */

/**
 * Copies windows between an image and an array of windows.
 * @param {'gather' | 'scatter'} direction out of the image, or into it
 * @param {Place} image
 * @param {Place} windows the first of these windows
 * @param {TokenLayout} layout
 * @param {WindowClass} size
 * @param {number} first number of the first window, counted over the batch: batch row · windows of an image + window
 * @param {number} count
 */
export function copyWindows(direction, image, windows, layout, size, first, count) {
  const { planes, token, height, width } = layout;
  const { origins } = size;
  const run = size.width * token;
  const step = width * token;
  const isGather = direction === 'gather';
  const copy = isGather ? copier(image.array, windows.array) : copier(windows.array, image.array);
  let near = windows.at;
  for (let n = first; n < first + count; n++) {
    const b = Math.floor(n / origins.length);
    const origin = origins[n % origins.length];
    for (let p = 0; p < planes; p++) {
      let far = image.at + ((b * planes + p) * height * width + origin) * token;
      for (let y = 0; y < size.height; y++) {
        if (isGather) copy(far, near, run);
        else copy(near, far, run);
        far += step;
        near += run;
      }
    }
  }
}

/**
 * @param {any} from a typed array
 * @param {any} to another of its kind, or itself
 * @returns {(at: number, target: number, count: number) => void}
 */
function copier(from, to) {
  if (from.buffer !== to.buffer) return (at, target, count) => to.set(from.subarray(at, at + count), target);
  return (at, target, count) => to.copyWithin(target, at, at + count);
}
