// A map as an SVG picture, which stays sharp at any size.

import { makeScale } from '../../parts/colour-scale.js';
import { colourAt, currentPalette } from '../../parts/palette.js';

/**
 * @param {import('../../parts/colour-scale.js').MapValues} map
 * @param {import('../../parts/colour-scale.js').ScaleName} scale
 * @param {string} title
 * @returns {string} one unit for each cell; neighbours of one colour in a row are one rectangle
 */
export function svgOf(map, scale, title) {
  const { rows, columns, values, masked } = map;
  const { place } = makeScale(map, scale);
  const palette = currentPalette();
  const colour = (/** @type {number} */ i, /** @type {number} */ j) => {
    if (masked?.[i * columns + j]) return 'none';
    const [red, green, blue] = colourAt(palette, place(i, values[i * columns + j]));
    return `rgb(${red},${green},${blue})`;
  };
  let cells = '';
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns;) {
      const fill = colour(i, j);
      let end = j + 1;
      while (end < columns && colour(i, end) === fill) end++;
      if (fill !== 'none') cells += `<rect x="${j}" y="${i}" width="${end - j}" height="1" fill="${fill}"/>`;
      j = end;
    }
  }
  const name = title.replace(/[<&>]/g, ' ');
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${columns} ${rows}" width="${columns * 4}" height="${rows * 4}" ` +
    `shape-rendering="crispEdges"><title>${name}</title>${cells}</svg>`
  );
}
