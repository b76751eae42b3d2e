// Tokens of windows, out of the image and back into it, a row of a window at a time.

/** @typedef {import('./window-grid.js').WindowClass} WindowClass */

/**
 * How a tensor has the tokens of an image: (batch, planes, height·width, token), with the heads outside, as planes, or inside a token.
 * Windows have them as (windows, planes, tokens of the window, token).
 * @typedef {object} TokenLayout
 * @property {number} batch
 * @property {number} planes
 * @property {number} token elements
 * @property {number} height
 * @property {number} width
 */

/**
 * Copies all windows of a size between an image and an array of windows.
 * @param {'gather' | 'scatter'} direction out of the image, or into it
 * @param {{ data: any, at: number }} image typed array, and the index of its first element
 * @param {any} windows typed array of the same kind, in other memory
 * @param {TokenLayout} layout
 * @param {WindowClass} size
 */
export function copyWindows(direction, image, windows, layout, size) {
  const { batch, planes, token, height, width } = layout;
  const run = size.width * token;
  const step = width * token;
  let near = 0;
  for (let b = 0; b < batch; b++) {
    for (const origin of size.origins) {
      for (let p = 0; p < planes; p++) {
        let far = image.at + ((b * planes + p) * height * width + origin) * token;
        for (let y = 0; y < size.height; y++) {
          if (direction === 'gather') windows.set(image.data.subarray(far, far + run), near);
          else image.data.set(windows.subarray(near, near + run), far);
          far += step;
          near += run;
        }
      }
    }
  }
}
