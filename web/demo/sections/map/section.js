// Map explorer: the weights of one head over many tokens, from all of them at once down to single cells.

import { controls } from '../../parts/controls.js';
import { make } from '../../parts/dom.js';
import { download } from '../../parts/download.js';
import { whole } from '../../parts/format.js';
import { zoom } from '../../parts/heat-map-view.js';
import { LinePlot } from '../../parts/line-plot.js';
import { Pace } from '../../parts/pace.js';
import { statusLine } from '../../parts/status.js';
import { tensorPicker } from '../../parts/tensor-picker.js';
import { poolThreads } from '../../scaffold/instances.js';
import { codeFor } from './code.js';
import { headNames, headWords, makeHead } from './example.js';
import { svgOf } from './picture.js';
import { RegionMap } from './region-map.js';
import { readRegion, regionTexts, specs, tokensOf } from './state.js';
import { prepare, sumsOf, weightsOf } from './regions.js';

/** Cells along a side. */
const mostCells = 128;

/**
 * @param {HTMLElement} root
 * @param {import('../../scaffold/sections.js').SectionContext} context
 */
export async function mount(root, context) {
  const sdpa = await context.instance({ threads: poolThreads });
  /** @type {import('./regions.js').Prepared | null} */
  let prepared = null;
  /** What `prepared` is of. */
  let preparedFor = '';
  let title = '';
  /** @type {import('../../parts/heat-map-view.js').View | null} */
  let region = readRegion(context.state.read());
  /** @type {AbortController | null} */
  let running = null;

  // The part that is shown is in the address beside the settings.
  const form = controls(
    specs,
    {
      ...context.state,
      write: (values) => context.state.write({ ...values, ...regionTexts(region) }),
      listen: (action) =>
        context.state.listen(() => {
          region = readRegion(context.state.read());
          action();
        }),
    },
    () => void refresh(),
  );
  const picker = tensorPicker({
    section: 'map',
    onPick: () => {
      preparedFor = '';
      if (form.values.source === 'file') void refresh();
      else form.set({ source: 'file' });
    },
  });
  const progress = make('progress', { max: 1, value: 0, 'aria-label': 'Progress of the map' });
  const { element: status, say } = statusLine();
  const abort = () => running?.abort();
  const stop = make('button', { type: 'button', class: 'quiet', disabled: true, onclick: abort }, 'Stop');
  const words = make('p', { class: 'cells' });
  const seen = make('p', {});
  const map = new RegionMap({ label: 'Weights, query by key', file: 'attention-map' }, closer, pan);
  const strip = new LinePlot({
    label: 'What each key receives from all queries',
    x: { label: 'key' },
    y: { label: 'sum of weights' },
    series: [{ name: 'column sums', bars: true }],
    height: 150,
  });
  const move = (
    /** @type {string} */ text,
    /** @type {string} */ name,
    /** @type {number} */ down,
    /** @type {number} */ across,
  ) =>
    make('button', { type: 'button', class: 'quiet', 'aria-label': name, onclick: () => void pan(down, across) }, text);
  const save = (/** @type {string} */ text, /** @type {() => void} */ onclick) =>
    make('button', { type: 'button', class: 'quiet', 'aria-label': `Save the map as ${text}`, onclick }, text);
  const file = (/** @type {string} */ text, /** @type {string} */ type, /** @type {string} */ ending) =>
    download(new Blob([text], { type }), `attention-map.${ending}`);
  root.append(
    make(
      'div',
      { class: 'card' },
      form.element,
      picker.element,
      make('div', { class: 'doing' }, progress, make('div', { class: 'title-row' }, status, stop)),
    ),
    make(
      'div',
      { class: 'view' },
      make(
        'div',
        {},
        map.element,
        make(
          'div',
          { class: 'map-tools', role: 'group', 'aria-label': 'Move the part that is shown, and save it' },
          make(
            'span',
            {},
            move('←', 'Earlier keys', 0, -1),
            move('→', 'Later keys', 0, 1),
            move('↑', 'Earlier queries', -1, 0),
            move('↓', 'Later queries', 1, 0),
          ),
          make(
            'span',
            {},
            save('SVG', () => file(svgOf(map.map, map.scale, title), 'image/svg+xml', 'svg')),
            save('JSON', () => file(map.json({ title, pool: form.values.kind }), 'application/json', 'json')),
          ),
        ),
      ),
      make(
        'div',
        {},
        make('h3', {}, 'What there is to see'),
        seen,
        words,
        make(
          'p',
          { class: 'note' },
          'Choose a cell, and + computes what is around it anew, twice as fine; arrow keys and buttons move on. ' +
            'A weight is exp(score − log-sum-exp of its row): with that one number kept for each row, any part of the matrix can be ' +
            'computed alone, at the cost of that part, and the whole is never there.',
        ),
      ),
    ),
    strip.element,
  );

  /** @returns {Promise<Parameters<typeof prepare>[1]>} */
  async function head(/** @type {AbortSignal} */ signal) {
    const { source, head: number, causal, align } = form.values;
    const tokens = tokensOf(form.values);
    if (source === 'example') {
      title = `${headNames[Number(number)]}, ${whole(tokens)} tokens`;
      return { ...(await makeHead(Number(number), tokens, new Pace(signal))), causal, offset: 0 };
    }
    const picked = picker.picked();
    if (!picked) throw new Error('Choose a file with a query and a key, or go back to the example.');
    title = `${picked.name}, head ${picked.head}, batch entry ${picked.batch}`;
    const { query, key } = picked;
    return { query, key, causal, offset: align === 'lower-right' ? key.shape[0] - query.shape[0] : 0 };
  }

  async function refresh() {
    running?.abort();
    const controller = new AbortController();
    running = controller;
    const { signal } = controller;
    const { source, causal } = form.values;
    const kind = /** @type {'mean' | 'max'} */ (form.values.kind);
    for (const name of /** @type {const} */ (['tokens', 'head'])) form.offer(name, source === 'example');
    form.offer('align', source === 'file' && causal);
    stop.disabled = false;
    const started = performance.now();
    const course = { signal, onProgress: (/** @type {number} */ fraction) => void (progress.value = fraction) };
    try {
      const wanted = JSON.stringify([source, tokensOf(form.values), form.values.head, causal, form.values.align]);
      if (wanted !== preparedFor) {
        say('Two passes over all scores, none of them stored …');
        prepared = await prepare(sdpa, await head(signal), course);
        preparedFor = wanted;
      }
      if (!prepared) return;
      const [rows, columns] = [prepared.query.shape[0], prepared.key.shape[0]];
      const shown = within(region, rows, columns);
      say('The cells of the map …');
      const cells = await weightsOf(sdpa, prepared, shown, { most: mostCells, kind }, course);
      signal.throwIfAborted();
      progress.value = 1;
      map.showCells(cells);
      const { keys, sums } = sumsOf(prepared, cells);
      strip.show(keys, sums);
      const size = prepared.query.shape[1];
      context.showCode(codeFor({ tokens: rows, size, causal, kind, row: shown.row, column: shown.column }));
      seen.textContent = source === 'example' ? headWords[Number(form.values.head)] : title;
      words.textContent = describe(cells, kind);
      root.dataset.drawn = `${wanted} ${JSON.stringify(shown)} ${kind}`;
      say(`${title}: ${whole(rows)} queries × ${whole(columns)} keys, in ${whole(performance.now() - started)} ms.`);
    } catch (error) {
      if (running !== controller) return;
      progress.value = 0;
      if (signal.aborted) say('Stopped.');
      else say(error instanceof Error ? error.message : String(error), true);
    } finally {
      if (running === controller) {
        running = null;
        stop.disabled = true;
      }
    }
  }

  /** @param {number} factor */
  function closer(factor) {
    if (!prepared || !map.cells) return;
    const all = { rows: prepared.query.shape[0], columns: prepared.key.shape[0] };
    const { region: now, rows, columns } = map.cells;
    const around = {
      row: tokenOf(map.focus.row, now.row, now.rows, rows),
      column: tokenOf(map.focus.column, now.column, now.columns, columns),
    };
    const next = factor === 0 ? { row: 0, column: 0, ...all } : zoom(now, all, factor, around);
    map.focus = {
      row: cellOf(around.row, next.row, next.rows),
      column: cellOf(around.column, next.column, next.columns),
    };
    go(factor === 0 ? null : next);
  }

  /** By half of what is shown. @param {number} down @param {number} across @returns {boolean} */
  function pan(down, across) {
    if (!prepared || !map.cells) return false;
    const { region: now } = map.cells;
    const next = within(
      {
        ...now,
        row: now.row + Math.sign(down) * Math.ceil(now.rows / 2),
        column: now.column + Math.sign(across) * Math.ceil(now.columns / 2),
      },
      prepared.query.shape[0],
      prepared.key.shape[0],
    );
    if (next.row === now.row && next.column === now.column) return false;
    const { rows, columns } = map.cells;
    const cell = (
      /** @type {number} */ at,
      /** @type {number} */ moved,
      /** @type {number} */ tokens,
      /** @type {number} */ count,
    ) => Math.min(count - 1, Math.max(0, Math.round(at - (moved * count) / tokens) + Math.sign(moved)));
    map.focus = {
      row: cell(map.focus.row, next.row - now.row, now.rows, rows),
      column: cell(map.focus.column, next.column - now.column, now.columns, columns),
    };
    go(next);
    return true;
  }

  /** @param {import('../../parts/heat-map-view.js').View | null} next null: everything */
  function go(next) {
    region = next;
    // Writes the address as well.
    form.set({});
  }

  await refresh();
}

/**
 * The token that stays in its place while zooming: the first one of the first cell, the last one of the last.
 * @param {number} cell
 * @param {number} first token of the region
 * @param {number} tokens of the region
 * @param {number} cells
 */
const tokenOf = (cell, first, tokens, cells) => first + Math.round((cell * (tokens - 1)) / Math.max(1, cells - 1));

/**
 * @param {number} token
 * @param {number} first token of the region
 * @param {number} tokens of the region
 */
const cellOf = (token, first, tokens) => {
  const cells = Math.min(mostCells, tokens);
  return Math.min(cells - 1, Math.max(0, Math.floor(((token - first) * cells) / tokens)));
};

/**
 * @param {import('../../parts/heat-map-view.js').View | null} region
 * @param {number} rows that there are
 * @param {number} columns
 */
function within(region, rows, columns) {
  if (!region) return { row: 0, column: 0, rows, columns };
  const [high, wide] = [Math.min(rows, region.rows), Math.min(columns, region.columns)];
  return {
    row: Math.min(rows - high, Math.max(0, region.row)),
    column: Math.min(columns - wide, Math.max(0, region.column)),
    rows: high,
    columns: wide,
  };
}

/** @param {import('./regions.js').Cells} cells @param {string} kind */
function describe({ region, rows, columns }, kind) {
  const [high, wide] = [region.rows / rows, region.columns / columns];
  if (high === 1 && wide === 1) return 'Each cell is one weight.';
  const size = (/** @type {number} */ cell) => (Number.isInteger(cell) ? whole(cell) : `about ${whole(cell)}`);
  return `Each cell is the ${kind === 'max' ? 'largest' : 'mean'} of ${size(high)} × ${size(wide)} weights.`;
}
