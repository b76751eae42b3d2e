// A map of numbers, query by key: for the eye, the keyboard and the ear.

import { makeScale, scaleNames } from './colour-scale.js';
import { dataTable, most as tableMost } from './data-table.js';
import { freshId, make, onTheme } from './dom.js';
import { cellText, shortNumber } from './format.js';
import { csvText } from './download.js';
import { queueDrawing } from './draw-queue.js';
import { drawMap, tickMargin } from './heat-map-draw.js';
import { listenToKeys, listenToPointer } from './heat-map-input.js';
import { mapTools } from './heat-map-tools.js';
import { cellSize, reveal, zoom } from './heat-map-view.js';
import { drawBar } from './palette.js';

/** Height of the cells at most, in CSS pixels. */
const tallest = 460;

/**
 * @typedef {object} HeatMapOptions
 * @property {string} label what is shown, for the title of tables and for screen readers
 * @property {string} file name of exported files
 * @property {readonly [rows: string, columns: string]} [sides] what rows and columns are; query and key where absent
 * @property {(row: number) => string} [rowName] 'query 3'
 * @property {(column: number) => string} [columnName] 'key 7'
 * @property {(row: number) => string} [rowTick] along the side; the number where absent
 * @property {(column: number) => string} [columnTick]
 * @property {(value: number) => string} [format] of a number in words and tables
 * @property {string} [maskedText] of a masked cell
 * @property {(value: number) => string} [cellText] in cells that are large enough
 * @property {number} [height] of the cells at most, in CSS pixels
 * @property {readonly import('./colour-scale.js').ScaleName[]} [scales] that can be chosen
 * @property {(cell: { row: number, column: number, isFirst: boolean }) => void} [onPick] by Enter, Space, a click, or while dragging
 *   (isFirst: the cell at which it began), while `isPainted`. Otherwise dragging moves a map that is zoomed
 * @property {(cell: { row: number, column: number }) => void} [onFocus] another cell has the focus or the pointer
 * @property {(view: import('./heat-map-view.js').View) => void} [onView] another part is shown
 */

export class HeatMap {
  /** Put it into the page. @type {HTMLElement} */
  element;
  /** @type {import('./heat-map-view.js').View} */
  view = { row: 0, column: 0, rows: 1, columns: 1 };
  focus = { row: 0, column: 0 };
  /** @type {import('./colour-scale.js').MapValues} */
  map = { rows: 1, columns: 1, values: [0] };

  #options;
  #canvas = make('canvas', { 'aria-hidden': 'true' });
  #stage = make('div', { class: 'map-stage', tabindex: 0, role: 'application', 'aria-roledescription': 'heat map' });
  #bar = make('canvas', { width: 128, height: 1, 'aria-hidden': 'true' });
  #legend = make('span', { class: 'map-range' });
  #readout = make('output', { class: 'map-readout' });
  #said = make('span', { class: 'visually-hidden', 'aria-live': 'polite' });
  #table = make('div', { hidden: true });
  #scale = make('select');
  #maskedKey = make('span', { class: 'map-masked-key', hidden: true }, 'masked');
  #cell = { cellWidth: 1, cellHeight: 1, margin: { left: 0, top: 0, widest: 0 } };
  #hasFocus = false;
  #isPainted = false;

  /** @param {HeatMapOptions} options */
  constructor(options) {
    this.#options = {
      sides: /** @type {const} */ (['query', 'key']),
      rowName: (/** @type {number} */ i) => `query ${i}`,
      columnName: (/** @type {number} */ j) => `key ${j}`,
      rowTick: String,
      columnTick: String,
      format: shortNumber,
      maskedText: 'masked',
      height: tallest,
      scales: /** @type {const} */ (['linear', 'log', 'row']),
      cellText,
      ...options,
    };
    const help = freshId('map-help');
    this.#stage.setAttribute('aria-label', options.label);
    this.#stage.setAttribute('aria-describedby', help);
    this.#stage.append(this.#canvas);
    this.#maskedKey.textContent = this.#options.maskedText;
    const picks = options.onPick ? ' While a pen is chosen, Enter or Space changes the cell.' : '';
    this.element = make(
      'div',
      { class: 'map' },
      this.#stage,
      make(
        'p',
        { id: help, class: 'visually-hidden' },
        `Arrow keys move over the cells, Home and End to the ends of a row, plus and minus zoom, zero shows all.${picks}`,
      ),
      make('p', { class: 'map-line' }, this.#readout, this.#said),
      make('p', { class: 'map-line note' }, this.#bar, this.#legend, this.#maskedKey),
      mapTools(this, {
        label: options.label,
        file: options.file,
        scales: this.#options.scales,
        select: this.#scale,
        canvas: this.#canvas,
        table: this.#table,
        fillTable: () => this.#fillTable(),
      }),
      this.#table,
    );
    const focused = (/** @type {boolean} */ has) => () => {
      this.#hasFocus = has;
      this.redraw();
    };
    this.#stage.addEventListener('focus', focused(true));
    this.#stage.addEventListener('blur', focused(false));
    listenToKeys(this, this.#stage);
    listenToPointer(this, this.#stage, (event) => this.#cellAt(event));
    new ResizeObserver(() => this.redraw()).observe(this.#stage);
    onTheme(() => this.redraw());
  }

  /** Whether dragging and Space pick cells. */
  get isPainted() {
    return this.#isPainted;
  }

  set isPainted(is) {
    this.#isPainted = is;
    this.#stage.classList.toggle('paints', is);
  }

  /** @returns {import('./colour-scale.js').ScaleName} */
  get scale() {
    return /** @type {any} */ (this.#scale.value);
  }

  set scale(name) {
    this.#scale.value = name;
    this.redraw();
  }

  /**
   * Shows other numbers; the view and the focus stay where the sizes do.
   * @param {import('./colour-scale.js').MapValues} map
   */
  show(map) {
    const isSameSize = map.rows === this.map.rows && map.columns === this.map.columns;
    this.map = map;
    if (!isSameSize) {
      this.view = { row: 0, column: 0, rows: map.rows, columns: map.columns };
      this.focus = {
        row: Math.min(this.focus.row, map.rows - 1),
        column: Math.min(this.focus.column, map.columns - 1),
      };
    }
    this.#maskedKey.hidden = !map.masked;
    this.#tell(false);
    if (!this.#table.hidden) this.#fillTable();
    this.redraw();
  }

  /** Draws at one of the next frames, once however often it is asked for. */
  redraw() {
    queueDrawing(this.#draw);
  }

  /** @param {number} row @param {number} column @param {boolean} [isSaid] by a screen reader */
  focusCell(row, column, isSaid = false) {
    const { rows, columns } = this.map;
    this.focus = { row: Math.min(rows - 1, Math.max(0, row)), column: Math.min(columns - 1, Math.max(0, column)) };
    const view = reveal(this.view, this.map, this.focus);
    if (view.row !== this.view.row || view.column !== this.view.column) this.setView(view);
    this.#tell(isSaid);
    this.#options.onFocus?.(this.focus);
    // Its frame is only drawn then.
    if (this.#hasFocus) this.redraw();
  }

  /** @param {number} factor above 1 = closer; 0 = everything */
  zoom(factor) {
    const { rows, columns } = this.map;
    this.setView(factor === 0 ? { row: 0, column: 0, rows, columns } : zoom(this.view, this.map, factor, this.focus));
  }

  /** What a cell says. @param {number} row @param {number} column */
  textOf(row, column) {
    const { rowName, columnName } = this.#options;
    return `${rowName(row)}, ${columnName(column)}: ${this.#valueText(row, column)}`;
  }

  /** @param {number} row @param {number} column */
  #valueText(row, column) {
    const { columns, values, masked } = this.map;
    const at = row * columns + column;
    return masked?.[at] ? this.#options.maskedText : this.#options.format(values[at]);
  }

  /** The cells in view as CSV: a line for each, query, key, number. */
  csv() {
    const { map, view } = this;
    const lines = [];
    for (let i = view.row; i < view.row + view.rows; i++) {
      for (let j = view.column; j < view.column + view.columns; j++) {
        lines.push([i, j, map.values[i * map.columns + j]]);
      }
    }
    return csvText([...this.#options.sides, 'value'], lines);
  }

  /** Shows another part. @param {import('./heat-map-view.js').View} view */
  setView(view) {
    this.view = view;
    this.#stage.classList.toggle('zoomed', view.rows < this.map.rows || view.columns < this.map.columns);
    this.#options.onView?.(view);
    if (!this.#table.hidden) this.#fillTable();
    this.redraw();
  }

  /** @param {boolean} isSaid */
  #tell(isSaid) {
    const text = this.textOf(this.focus.row, this.focus.column);
    this.#readout.textContent = text;
    if (isSaid) this.#said.textContent = text;
  }

  #draw = () => {
    const { clientWidth } = this.#stage;
    const canvas = this.#canvas.getContext('2d');
    if (clientWidth === 0 || !canvas) return;
    const { map, view } = this;
    const { rowTick, columnTick, height } = this.#options;
    const margin = tickMargin(canvas, view, rowTick, columnTick);
    const cell = cellSize(view, clientWidth - margin.left - 4, height);
    this.#cell = { ...cell, margin };
    const wide = Math.ceil(margin.left + view.columns * cell.cellWidth + 4);
    const high = Math.ceil(margin.top + view.rows * cell.cellHeight + 4);
    this.#canvas.width = Math.round(wide * devicePixelRatio);
    this.#canvas.height = Math.round(high * devicePixelRatio);
    this.#canvas.style.width = `${wide}px`;
    this.#canvas.style.height = `${high}px`;
    canvas.scale(devicePixelRatio, devicePixelRatio);
    const { place, least, most } = makeScale(map, this.scale);
    const focus = this.#hasFocus ? this.focus : null;
    drawMap(canvas, { map, view, place, ...this.#cell, focus, rowTick, columnTick, cellText: this.#options.cellText });
    this.#drawLegend(least, most);
  };

  /** @param {number} least @param {number} most */
  #drawLegend(least, most) {
    const { format } = this.#options;
    const name = scaleNames[this.scale];
    this.#legend.textContent =
      this.scale === 'row' ? `least to largest of ${name}` : `${format(least)} to ${format(most)}, ${name}`;
    drawBar(this.#bar);
  }

  #fillTable() {
    const { view } = this;
    const { label, sides, rowName, columnName } = this.#options;
    const rows = Array.from({ length: Math.min(tableMost, view.rows) }, (_, i) => view.row + i);
    const columns = Array.from({ length: Math.min(tableMost, view.columns) }, (_, j) => view.column + j);
    const isCut = rows.length < view.rows || columns.length < view.columns;
    const table = dataTable({
      caption: isCut ? `${label}: the first ${rows.length} by ${columns.length} cells in view` : label,
      corner: sides[0],
      rows: rows.map(rowName),
      columns: columns.map(columnName),
      cell: (i, j) => this.#valueText(rows[i], columns[j]),
    });
    this.#table.replaceChildren(table);
  }

  /**
   * Hands the cell in focus to onPick, while the map is painted.
   * @param {boolean} isFirst
   * @param {boolean} [isSaid] by a screen reader, as it is then
   */
  pick(isFirst, isSaid = false) {
    if (!this.#isPainted) return;
    this.#options.onPick?.({ ...this.focus, isFirst });
    if (isSaid) this.#tell(true);
  }

  /** @param {PointerEvent} event */
  #cellAt({ clientX, clientY }) {
    const { left, top } = this.#canvas.getBoundingClientRect();
    const { cellWidth, cellHeight, margin } = this.#cell;
    const i = Math.floor((clientY - top - margin.top) / cellHeight);
    const j = Math.floor((clientX - left - margin.left) / cellWidth);
    if (i < 0 || j < 0 || i >= this.view.rows || j >= this.view.columns) return null;
    return { row: this.view.row + i, column: this.view.column + j };
  }
}
