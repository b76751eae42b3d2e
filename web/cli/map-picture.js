// The picture of a map of weights: the cells, the ends of both axes, and a colour bar with its numbers.

import { kNotANumber, makeColours } from './colours.js';
import { drawText, textHeight, textWidth } from './letters.js';
import { Picture } from './png.js';

/** Pixels that the longer side of the map has at least; cells are squares of whole pixels. */
const kLeastSide = 512;

const kMargin = 12;
const kBarWidth = 20;

/** Numbers beside the colour bar. */
const kTicks = 5;

/** Decades that the logarithmic scale goes down from the largest weight. */
const kDecades = 4;

/** @typedef {{ data: Float32Array, rows: number, columns: number }} WeightsMap */

/**
 * Query rows run down, keys to the right.
 * @param {WeightsMap} map
 * @param {{ kind: 'mean' | 'max', scale: 'linear' | 'log', queries: number, keys: number }} settings `queries`, `keys`: how many the map
 *   covers
 * @returns {Uint8Array} a PNG file
 */
export function drawMap(map, { kind, scale, queries, keys }) {
  const { rows, columns, data } = map;
  const size = Math.max(1, Math.ceil(kLeastSide / Math.max(rows, columns)));
  const colours = makeColours();
  const most = data.reduce((largest, x) => (x > largest ? x : largest), 0);
  const shares = scale === 'log' ? logarithmic(most) : linear(most);
  const [first, lastRow, lastKey] = ['0', String(queries - 1), String(keys - 1)];

  // Room for words: numbers and "query" at the left, numbers and "key" below.
  const left = kMargin + Math.max(textWidth('query'), textWidth(lastRow)) + 4;
  const [width, height] = [columns * size, Math.max(rows * size, 2 * textHeight * kTicks)];
  const ticks = Array.from({ length: kTicks }, (_, i) => shares.number(i / (kTicks - 1)));
  const labels = ticks.map((x) => labelOf(x));
  const title = `${kind} weight`;
  const barX = left + width + kMargin;
  const right = Math.max(kBarWidth + 6 + Math.max(...labels.map(textWidth)), textWidth(title));
  const top = kMargin + textHeight + 6;
  const picture = new Picture(barX + right + kMargin, top + height + 6 + textHeight + kMargin);

  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) {
      const x = data[r * columns + c];
      const colour = Number.isNaN(x) ? kNotANumber : colours[Math.round(shares.share(x) * (colours.length - 1))];
      picture.fill({ x: left + c * size, y: top + r * size, width: size, height: size }, colour);
    }
  }
  const endOf = (/** @type {string} */ text) => left - 4 - textWidth(text);
  drawText(picture, 'query', endOf('query'), top + Math.floor((rows * size - textHeight) / 2));
  drawText(picture, first, endOf(first), top);
  if (rows * size > 4 * textHeight) drawText(picture, lastRow, endOf(lastRow), top + rows * size - textHeight);
  const below = top + height + 6;
  drawText(picture, first, left, below);
  drawText(picture, 'key', left + Math.floor((width - textWidth('key')) / 2), below);
  drawText(picture, lastKey, left + width - textWidth(lastKey), below);

  drawText(picture, title, barX, kMargin);
  for (let y = 0; y < height; y++) {
    const share = height === 1 ? 1 : 1 - y / (height - 1);
    picture.fill(
      { x: barX, y: top + y, width: kBarWidth, height: 1 },
      colours[Math.round(share * (colours.length - 1))],
    );
  }
  labels.forEach((label, i) => {
    const y = top + Math.round((1 - i / (kTicks - 1)) * (height - 1));
    picture.fill({ x: barX + kBarWidth, y, width: 3, height: 1 }, [0, 0, 0]);
    drawText(picture, label, barX + kBarWidth + 6, Math.min(top + height - textHeight, Math.max(top, y - 3)));
  });
  return picture.encode();
}

/**
 * From weights to shares of the colour bar, and back.
 * @typedef {{ share: (weight: number) => number, number: (share: number) => number }} Scale
 */

/**
 * @param {number} most
 * @returns {Scale}
 */
const linear = (most) => ({
  share: (weight) => (most > 0 ? weight / most : 0),
  number: (share) => share * most,
});

/**
 * @param {number} most
 * @returns {Scale} weights further down than kDecades, and 0, have the share 0
 */
const logarithmic = (most) => ({
  share: (weight) => (weight > 0 ? Math.max(0, 1 + Math.log10(weight / most) / kDecades) : 0),
  number: (share) => most * 10 ** ((share - 1) * kDecades),
});

/**
 * @param {number} x
 * @returns {string} three digits, in letters that can be drawn
 */
function labelOf(x) {
  if (x === 0) return '0';
  if (x >= 0.001 && x < 1000) return String(Number(x.toPrecision(3)));
  const [digits, exponent] = x.toExponential(2).split('e');
  return `${Number(digits)}e${exponent}`;
}
