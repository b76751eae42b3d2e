// A heat map of a part of something larger: zooming and leaving its sides ask for other cells.

import { csvText } from '../../parts/download.js';
import { whole } from '../../parts/format.js';
import { HeatMap } from '../../parts/heat-map.js';
import { cellStart } from './regions.js';

/** @typedef {import('./regions.js').Cells} Cells */

export class RegionMap extends HeatMap {
  /** @type {Cells | null} */
  cells = null;
  #onZoom;
  #onPan;

  /**
   * @param {Omit<import('../../parts/heat-map.js').HeatMapOptions, 'rowName' | 'columnName' | 'rowTick' | 'columnTick'>} options
   * @param {(factor: number) => void} onZoom 0 = everything
   * @param {(down: number, across: number) => boolean} onPan by one cell or more; false where there is nothing on that side
   */
  constructor(options, onZoom, onPan) {
    const range = (/** @type {'row' | 'column'} */ side, /** @type {number} */ cell) =>
      rangeText(this.bounds(side, cell));
    const first = (/** @type {'row' | 'column'} */ side, /** @type {number} */ cell) =>
      whole(this.bounds(side, cell)[0]);
    super({
      ...options,
      rowName: (i) => `${isOne(this.bounds('row', i)) ? 'query' : 'queries'} ${range('row', i)}`,
      columnName: (j) => `${isOne(this.bounds('column', j)) ? 'key' : 'keys'} ${range('column', j)}`,
      rowTick: (i) => first('row', i),
      columnTick: (j) => first('column', j),
    });
    this.#onZoom = onZoom;
    this.#onPan = onPan;
  }

  /** @param {Cells} cells */
  showCells(cells) {
    this.cells = cells;
    this.show(cells);
  }

  /**
   * First and last token of a cell.
   * @param {'row' | 'column'} side
   * @param {number} cell
   * @returns {[first: number, last: number]}
   */
  bounds(side, cell) {
    if (!this.cells) return [cell, cell];
    const { region, rows, columns } = this.cells;
    const [tokens, count] = side === 'row' ? [region.rows, rows] : [region.columns, columns];
    return [cellStart(region[side], tokens, count, cell), cellStart(region[side], tokens, count, cell + 1) - 1];
  }

  /** @param {number} factor @override */
  zoom(factor) {
    this.#onZoom(factor);
  }

  /** @param {number} row @param {number} column @param {boolean} [isSaid] @override */
  focusCell(row, column, isSaid = false) {
    const { rows, columns } = this.map;
    const down = beyond(row, rows);
    const across = beyond(column, columns);
    if (isSaid && (down !== 0 || across !== 0) && this.#onPan(down, across)) return;
    super.focusCell(row, column, isSaid);
  }

  /** A line for each cell, with the tokens that it stands for. @override */
  csv() {
    const { rows, columns, values } = this.map;
    const lines = [];
    for (let i = 0; i < rows; i++) {
      for (let j = 0; j < columns; j++)
        lines.push([...this.bounds('row', i), ...this.bounds('column', j), values[i * columns + j]]);
    }
    return csvText(['first_query', 'last_query', 'first_key', 'last_key', 'weight'], lines);
  }

  /** The same as JSON. @param {Record<string, unknown>} about */
  json(about) {
    const { rows, columns, values } = this.map;
    const bounds = (/** @type {'row' | 'column'} */ side, /** @type {number} */ count) =>
      Array.from({ length: count }, (_, cell) => this.bounds(side, cell));
    const lines = Array.from({ length: rows }, (_, i) =>
      Array.from({ length: columns }, (__, j) => Number(Number(values[i * columns + j]).toPrecision(9))),
    );
    return JSON.stringify({ ...about, queries: bounds('row', rows), keys: bounds('column', columns), weights: lines });
  }
}

/** @param {readonly [number, number]} bounds */
const isOne = ([first, last]) => first === last;

/** @param {readonly [number, number]} bounds */
const rangeText = ([first, last]) => (first === last ? whole(first) : `${whole(first)} to ${whole(last)}`);

/**
 * Cells beyond a side; Infinity only means the last one.
 * @param {number} cell
 * @param {number} count
 */
const beyond = (cell, count) => (cell < 0 ? cell : cell === Infinity ? 0 : Math.max(0, cell - count + 1));
