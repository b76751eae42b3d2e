// Draws the cells of a map and the numbers along its sides.

import { themeColour } from './dom.js';
import { colourAt, currentPalette, textOn } from './palette.js';
import { tickStep } from './heat-map-view.js';

const font = '12px system-ui, sans-serif';

/** Width up to which the numbers above columns are written level, in CSS pixels. */
const widestLevel = 34;

/** Cells that are hatched one by one however small they are. */
const mostHatched = 128 * 128;

/**
 * @typedef {object} Drawing
 * @property {import('./colour-scale.js').MapValues} map
 * @property {import('./heat-map-view.js').View} view
 * @property {(row: number, value: number) => number} place on the palette, 0 … 1
 * @property {number} cellWidth in CSS pixels
 * @property {number} cellHeight
 * @property {{ left: number, top: number, widest: number }} margin as tickMargin() gives it
 * @property {{ row: number, column: number } | null} focus
 * @property {(row: number) => string} rowTick
 * @property {(column: number) => string} columnTick
 * @property {(value: number) => string} cellText for cells that are large enough
 */

/**
 * @param {CanvasRenderingContext2D} canvas scaled to CSS pixels
 * @param {Drawing} drawing
 */
export function drawMap(canvas, drawing) {
  const { view, cellWidth, cellHeight, margin } = drawing;
  const width = view.columns * cellWidth;
  const height = view.rows * cellHeight;
  canvas.clearRect(0, 0, margin.left + width + 4, margin.top + height + 4);
  canvas.save();
  canvas.translate(margin.left, margin.top);
  drawCells(canvas, drawing, width, height);
  if (Math.min(cellWidth, cellHeight) >= 5 || view.rows * view.columns <= mostHatched) drawMasked(canvas, drawing);
  if (cellWidth >= 32 && cellHeight >= 18) drawTexts(canvas, drawing);
  canvas.strokeStyle = themeColour('soft');
  canvas.lineWidth = 1;
  canvas.strokeRect(-0.5, -0.5, width + 1, height + 1);
  drawTicks(canvas, drawing);
  drawFocus(canvas, drawing);
  canvas.restore();
}

/**
 * One pixel of a picture for each cell, or for several where cells are smaller than pixels: of these the largest counts.
 * @param {CanvasRenderingContext2D} canvas
 * @param {Drawing} drawing
 * @param {number} width
 * @param {number} height
 */
function drawCells(canvas, { map, view, place }, width, height) {
  const palette = currentPalette();
  const across = Math.min(view.columns, Math.ceil(width * devicePixelRatio));
  const down = Math.min(view.rows, Math.ceil(height * devicePixelRatio));
  const picture = new ImageData(across, down);
  const [hatch, ground] = [bytesOf('hatch'), bytesOf('page')];
  for (let y = 0; y < down; y++) {
    const rowFrom = view.row + Math.floor((y * view.rows) / down);
    const rowTo = Math.max(rowFrom + 1, view.row + Math.floor(((y + 1) * view.rows) / down));
    for (let x = 0; x < across; x++) {
      const from = view.column + Math.floor((x * view.columns) / across);
      const to = Math.max(from + 1, view.column + Math.floor(((x + 1) * view.columns) / across));
      let most = -1;
      for (let i = rowFrom; i < rowTo; i++) {
        for (let j = from; j < to; j++) {
          const at = i * map.columns + j;
          if (!map.masked?.[at]) most = Math.max(most, place(i, map.values[at]));
        }
      }
      // Hatched by pixels, too small to be hatched by lines.
      const colour = most >= 0 ? colourAt(palette, most) : (x + y) % 4 === 0 ? hatch : ground;
      picture.data.set(colour, 4 * (y * across + x));
    }
  }
  const cells = new OffscreenCanvas(across, down);
  /** @type {OffscreenCanvasRenderingContext2D} */ (cells.getContext('2d')).putImageData(picture, 0, 0);
  canvas.imageSmoothingEnabled = false;
  canvas.drawImage(cells, 0, 0, width, height);
}

/** A colour of the theme. @param {string} name */
function bytesOf(name) {
  const digits = Number.parseInt(themeColour(name).slice(1), 16);
  return [digits >> 16, (digits >> 8) & 255, digits & 255, 255];
}

/**
 * Masked cells are hatched: a zero that was computed looks different.
 * @param {CanvasRenderingContext2D} canvas
 * @param {Drawing} drawing
 */
function drawMasked(canvas, { map, view, cellWidth, cellHeight }) {
  if (!map.masked) return;
  canvas.save();
  canvas.beginPath();
  for (let i = 0; i < view.rows; i++) {
    const from = (view.row + i) * map.columns + view.column;
    for (let j = 0; j < view.columns; j++) {
      if (!map.masked[from + j]) continue;
      const first = j;
      while (j + 1 < view.columns && map.masked[from + j + 1]) j++;
      canvas.rect(first * cellWidth, i * cellHeight, (j + 1 - first) * cellWidth, cellHeight);
    }
  }
  canvas.clip();
  canvas.fillStyle = themeColour('page');
  const [width, height] = [view.columns * cellWidth, view.rows * cellHeight];
  canvas.fillRect(0, 0, width, height);
  canvas.beginPath();
  for (let x = -height; x < width; x += 5) {
    canvas.moveTo(x, height);
    canvas.lineTo(x + height, 0);
  }
  canvas.strokeStyle = themeColour('hatch');
  canvas.lineWidth = 1;
  canvas.stroke();
  canvas.restore();
}

/**
 * @param {CanvasRenderingContext2D} canvas
 * @param {Drawing} drawing
 */
function drawTexts(canvas, { map, view, place, cellWidth, cellHeight, cellText }) {
  const palette = currentPalette();
  canvas.font = font;
  canvas.textAlign = 'center';
  canvas.textBaseline = 'middle';
  for (let i = view.row; i < view.row + view.rows; i++) {
    for (let j = view.column; j < view.column + view.columns; j++) {
      const at = i * map.columns + j;
      if (map.masked?.[at]) continue;
      canvas.fillStyle = textOn(colourAt(palette, place(i, map.values[at])));
      const x = (j - view.column + 0.5) * cellWidth;
      canvas.fillText(cellText(map.values[at]), x, (i - view.row + 0.5) * cellHeight, cellWidth - 4);
    }
  }
}

/**
 * @param {CanvasRenderingContext2D} canvas
 * @param {Drawing} drawing
 */
function drawTicks(canvas, { view, cellWidth, cellHeight, margin: { widest }, rowTick, columnTick }) {
  canvas.font = font;
  canvas.fillStyle = themeColour('soft');
  canvas.textBaseline = 'middle';
  canvas.textAlign = 'right';
  const downStep = tickStep(15 / cellHeight);
  for (let i = 0; i < view.rows; i++) {
    if ((view.row + i) % downStep === 0) canvas.fillText(rowTick(view.row + i), -6, (i + 0.5) * cellHeight);
  }
  const turned = widest > widestLevel;
  const acrossStep = tickStep((turned ? 15 : Math.max(20, widest + 8)) / cellWidth);
  canvas.textAlign = turned ? 'left' : 'center';
  for (let j = 0; j < view.columns; j++) {
    if ((view.column + j) % acrossStep !== 0) continue;
    canvas.save();
    canvas.translate((j + 0.5) * cellWidth, turned ? -6 : -9);
    if (turned) canvas.rotate(-Math.PI / 2);
    canvas.fillText(columnTick(view.column + j), 0, 0);
    canvas.restore();
  }
}

/**
 * @param {CanvasRenderingContext2D} canvas
 * @param {import('./heat-map-view.js').View} view
 * @param {(column: number) => string} columnTick
 */
function widestTick(canvas, { column, columns }, columnTick) {
  canvas.font = font;
  let widest = 0;
  const step = Math.max(1, Math.floor(columns / 64));
  for (let j = column; j < column + columns; j += step)
    widest = Math.max(widest, canvas.measureText(columnTick(j)).width);
  return widest;
}

/**
 * Room for the numbers along the sides, and the width of the widest at the upper one.
 * @param {CanvasRenderingContext2D} canvas
 * @param {import('./heat-map-view.js').View} view
 * @param {(row: number) => string} rowTick
 * @param {(column: number) => string} columnTick
 */
export function tickMargin(canvas, view, rowTick, columnTick) {
  const widest = widestTick(canvas, view, columnTick);
  const beside = widestTick(canvas, { ...view, column: view.row, columns: view.rows }, rowTick);
  return { left: Math.ceil(beside) + 10, top: widest > widestLevel ? Math.ceil(widest) + 10 : 20, widest };
}

/**
 * A frame of two colours: one of them stands out on every ground.
 * @param {CanvasRenderingContext2D} canvas
 * @param {Drawing} drawing
 */
function drawFocus(canvas, { view, focus, cellWidth, cellHeight }) {
  if (!focus) return;
  const [i, j] = [focus.row - view.row, focus.column - view.column];
  if (i < 0 || j < 0 || i >= view.rows || j >= view.columns) return;
  const least = 8;
  const [width, height] = [Math.max(least, cellWidth), Math.max(least, cellHeight)];
  const x = (j + 0.5) * cellWidth - width / 2;
  const y = (i + 0.5) * cellHeight - height / 2;
  canvas.lineWidth = 4;
  canvas.strokeStyle = themeColour('page');
  canvas.strokeRect(x, y, width, height);
  canvas.lineWidth = 2;
  canvas.strokeStyle = themeColour('plain');
  canvas.strokeRect(x, y, width, height);
}
