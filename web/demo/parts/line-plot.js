// Lines over an axis by uPlot, with the same numbers as a table.

import uPlot from 'uplot';
import { dataTable } from './data-table.js';
import { make, onTheme, themeColour } from './dom.js';
import { queueDrawing } from './draw-queue.js';
import { shortNumber } from './format.js';

/**
 * @typedef {object} Series
 * @property {string} name
 * @property {'ours' | 'plain' | 'soft'} [colour] of style/base.css
 * @property {number[]} [dash] so that lines differ without colour
 * @property {boolean} [bars]
 */

/**
 * @typedef {object} LinePlotOptions
 * @property {string} label what is shown
 * @property {{ label: string, log?: 2 | 10 }} x
 * @property {{ label: string, log?: 2 | 10, range?: readonly [number, number] }} y range: that of the numbers where absent, from 0 with bars
 * @property {readonly Series[]} series
 * @property {number} [height] in CSS pixels
 * @property {(value: number) => string} [format]
 */

const styles = new URL('../vendor/uplot/uPlot.min.css', import.meta.url).href;

export class LinePlot {
  /** Put it into the page. @type {HTMLElement} */
  element;
  #options;
  #stage = make('div', { class: 'plot-stage', role: 'img' });
  #details;
  /** @type {uPlot | undefined} */
  #plot;
  /** @type {(number | null)[][]} */
  #data = [[]];
  /** What each line looks like. @type {HTMLElement[]} */
  #keys;

  /** @param {LinePlotOptions} options */
  constructor(options) {
    this.#options = { height: 220, format: shortNumber, ...options };
    this.#stage.setAttribute('aria-label', `${options.label}: nothing yet`);
    if (!document.querySelector(`link[href="${styles}"]`))
      document.head.append(make('link', { rel: 'stylesheet', href: styles }));
    this.#details = make('details', {}, make('summary', {}, 'The numbers'));
    this.#details.addEventListener('toggle', () => this.#fillTable());
    this.#keys = options.series.map(({ name, colour = 'ours', dash }) =>
      make('li', { class: `plot-key ${colour}${dash ? ' dashed' : ''}` }, name),
    );
    this.element = make(
      'figure',
      { class: 'plot' },
      make('figcaption', {}, options.label),
      ...(this.#keys.length > 1 ? [make('ul', { class: 'plot-keys' }, ...this.#keys)] : []),
      this.#stage,
      this.#details,
    );
    new ResizeObserver(() => this.#fit()).observe(this.#stage);
    onTheme(() => this.#rebuild());
  }

  /**
   * @param {readonly number[]} x ascending
   * @param {...readonly (number | null)[]} lines one for each series
   */
  show(x, ...lines) {
    this.#data = [[...x], ...lines.map((line) => [...line])];
    const { label, series, format } = this.#options;
    const last = series.map(({ name }, k) => {
      const numbers = this.#data[k + 1].filter((number) => number !== null);
      this.#keys[k].hidden = numbers.length === 0;
      return numbers.length ? `${name} from ${format(numbers[0])} to ${format(numbers[numbers.length - 1])}` : name;
    });
    this.#stage.setAttribute('aria-label', `${label}: ${last.join('; ')}. The numbers are in the table below.`);
    queueDrawing(this.#draw);
    this.#fillTable();
  }

  #draw = () => {
    if (this.#plot) this.#plot.setData(/** @type {any} */ (this.#data));
    else this.#rebuild();
  };

  #rebuild() {
    const width = this.#stage.clientWidth;
    if (width === 0 || this.#data.length === 1) return;
    this.#plot?.destroy();
    const { x, y, series, height, format } = this.#options;
    /** Nine lines to each power of ten hide what is drawn over them. @param {unknown} _plot @param {number[]} at */
    const powersOnly = (_plot, at) => at.map((value) => (Number.isInteger(Math.log10(value)) ? value : null));
    const axis = (/** @type {string} */ label, /** @type {2 | 10 | undefined} */ log) => ({
      label,
      stroke: themeColour('soft'),
      grid: { stroke: themeColour('line'), width: 1, ...(log === 10 && { filter: powersOnly }) },
      ticks: { stroke: themeColour('line'), width: 1, ...(log === 10 && { filter: powersOnly }) },
      font: '12px system-ui, sans-serif',
      labelFont: '12px system-ui, sans-serif',
      labelSize: 20,
    });
    const number = (/** @type {uPlot} */ _plot, /** @type {(number | null)[]} */ at) =>
      at.map((value) => (value === null ? '' : format(value)));
    /** @param {2 | 10 | undefined} log */
    const scale = (log) => (log ? { time: false, distr: /** @type {const} */ (3), log } : { time: false });
    const hasBars = series.some(({ bars }) => bars);
    const fromZero = (/** @type {unknown} */ _plot, /** @type {number} */ _least, /** @type {number} */ most) => [
      0,
      1.05 * most,
    ];
    const yRange = /** @type {any} */ (y.range ? [...y.range] : hasBars && fromZero);
    this.#plot = new uPlot(
      {
        width,
        height,
        legend: { show: false },
        cursor: { show: false },
        scales: {
          x: { ...scale(x.log), ...(hasBars && { range: barRange }) },
          y: { ...scale(y.log), ...(yRange && { range: yRange }) },
        },
        axes: [
          { ...axis(x.label, x.log), values: number, size: 34 },
          { ...axis(y.label, y.log), values: number, size: 58 },
        ],
        series: [
          {},
          ...series.map(({ name, colour = 'ours', dash, bars }) => ({
            label: name,
            stroke: themeColour(colour),
            width: 2,
            dash,
            // Points are for lines, where there is room for them.
            ...(bars && {
              points: { show: false },
              paths: uPlot.paths.bars?.({ size: [0.9, 60] }),
              fill: themeColour(colour),
            }),
          })),
        ],
      },
      /** @type {any} */ (this.#data),
      this.#stage,
    );
  }

  #fit() {
    if (!this.#plot) queueDrawing(this.#draw);
    else if (this.#stage.clientWidth > 0 && this.#plot.width !== this.#stage.clientWidth)
      this.#plot.setSize({ width: this.#stage.clientWidth, height: this.#options.height });
  }

  #fillTable() {
    if (!this.#details.open) return;
    const { label, x, series, format } = this.#options;
    const [across, ...lines] = this.#data;
    const table = dataTable({
      caption: label,
      corner: x.label,
      columns: series.map(({ name }) => name),
      rows: across.map((value) => format(/** @type {number} */ (value))),
      cell: (i, j) => {
        const value = lines[j]?.[i];
        return value === null || value === undefined ? '–' : format(value);
      },
    });
    this.#details.querySelector('.data-table')?.remove();
    this.#details.append(table);
  }
}

/**
 * Room for half a bar at both ends.
 * @param {uPlot} plot
 * @param {number} least
 * @param {number} most
 * @returns {[number, number]}
 */
function barRange({ data: [x] }, least, most) {
  const half = x.length > 1 ? (x[1] - x[0]) / 2 : 0.5;
  return [least - half, most + half];
}
