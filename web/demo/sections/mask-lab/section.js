// Mask lab: combine masks, draw one, and see what is attended to and what is never computed.

import { controls } from '../../parts/controls.js';
import { make } from '../../parts/dom.js';
import { figures } from '../../parts/figures.js';
import { shortNumber, whole } from '../../parts/format.js';
import { HeatMap } from '../../parts/heat-map.js';
import { nextTask } from '../../parts/pace.js';
import { compute, tileSide, valueDim } from './compute.js';
import { codeFor, makeRules } from './rules.js';
import { presets, specs } from './settings.js';
import { addStroke, mostStrokes, readStrokes, strokesText } from './strokes.js';

/** Cells along the longer side of the view, for each cell that the brush is wide. */
const brushShare = 24;

const pens = { look: 'Look', hide: 'Hide cells', show: 'Show cells' };

/**
 * @param {HTMLElement} root
 * @param {import('../../scaffold/sections.js').SectionContext} context
 */
export async function mount(root, context) {
  const { state } = context;
  const sdpa = await context.instance();
  let strokes = readStrokes(state.read().drawn);
  /** @type {keyof typeof pens} */
  let pen = 'look';
  const form = controls(specs, state, () => void refresh());
  state.listen(() => (strokes = readStrokes(state.read().drawn)));

  /** Empty rows of what is shown. @type {Set<number>} */
  let empty = new Set();
  const rowTick = (/** @type {number} */ i) => (empty.has(i) ? `∅ ${i}` : String(i));
  const rowName = (/** @type {number} */ i) => `query ${i}${empty.has(i) ? ', which sees nothing' : ''}`;
  const map = new HeatMap({ label: 'Weights', file: 'mask-weights', height: 520, rowTick, rowName, onPick: draw });
  map.scale = 'row';
  const span = (/** @type {number} */ k, /** @type {number} */ all) =>
    `${k * tileSide} to ${Math.min(all, (k + 1) * tileSide) - 1}`;
  const tiles = new HeatMap({
    label: `Tiles of ${tileSide} × ${tileSide}`,
    file: 'mask-tiles',
    height: 300,
    scales: ['linear'],
    rowName: (i) => `queries ${span(i, map.map.rows)}`,
    columnName: (j) => `keys ${span(j, map.map.columns)}`,
    format: (share) => (share === 1 ? 'full' : share === 0 ? 'skipped' : `partial, ${shortNumber(100 * share)}\u00a0%`),
    cellText: (share) => (share === 1 ? 'full' : 'part'),
    maskedText: 'skipped',
  });
  const output = new HeatMap({
    label: 'Output, without its signs',
    file: 'mask-output',
    height: 180,
    scales: ['linear'],
    rowTick,
    rowName,
    columnName: (d) => `number ${d}`,
  });
  const words = make('p', { class: 'status', role: 'status' });
  const numbers = figures(['Tiles full', 'Tiles partial', 'Tiles skipped', 'Work saved'], { hasNotes: true });
  const tools = makeTools();
  root.append(
    make('div', { class: 'card' }, tools.presets, form.element, words),
    make(
      'div',
      { class: 'lab' },
      make(
        'div',
        { class: 'lab-map' },
        make('h3', {}, 'Weights'),
        tools.pens,
        make('p', { class: 'note' }, 'A pen changes cells: drag it over the map, or press Space on a cell.'),
        map.element,
      ),
      make(
        'div',
        {},
        numbers.element,
        make('h3', {}, 'What is computed, by tiles'),
        tiles.element,
        make('h3', {}, 'Output: empty rows are zero'),
        output.element,
      ),
    ),
    make(
      'p',
      { class: 'note' },
      `Weights by attentionWeights(), output by attention() with the options in the code below; the tiles are those of masks.and() of the same ` +
        'rules. A tile that is skipped is not computed, and its keys are not read. ALiBi hides nothing: it makes what is far away count less.',
    ),
  );

  function makeTools() {
    const chosen = Object.entries(presets).map(([name, settings]) => {
      const initial = Object.fromEntries(Object.entries(specs).map(([key, spec]) => [key, spec.initial]));
      const onclick = () => {
        strokes = [];
        form.set(/** @type {any} */ ({ ...initial, ...settings }));
      };
      return make('button', { type: 'button', class: 'quiet', onclick }, name);
    });
    const penButtons = Object.entries(pens).map(([name, text]) => {
      const onclick = () => setPen(/** @type {keyof typeof pens} */ (name));
      const button = make('button', { type: 'button', class: 'quiet', 'data-pen': name, onclick }, text);
      button.setAttribute('aria-pressed', String(name === pen));
      return button;
    });
    const erase = make('button', { type: 'button', class: 'quiet', onclick: () => setStrokes([]) }, 'Erase all');
    const group = (/** @type {string} */ label, /** @type {HTMLElement[]} */ buttons) =>
      make('div', { class: 'buttons', role: 'group', 'aria-label': label }, ...buttons);
    return {
      presets: group('Begin from', chosen),
      pens: group('Pen', [...penButtons, erase]),
    };
  }

  /** @param {keyof typeof pens} name */
  function setPen(name) {
    pen = name;
    map.isPainted = pen !== 'look';
    for (const button of tools.pens.querySelectorAll('[data-pen]'))
      button.setAttribute('aria-pressed', String(/** @type {HTMLElement} */ (button).dataset.pen === pen));
  }

  /** @param {{ row: number, column: number }} cell */
  function draw({ row, column }) {
    const side = Math.max(1, Math.round(Math.max(map.view.rows, map.view.columns) / brushShare));
    const back = (side - 1) >> 1;
    const next = [...strokes];
    addStroke(next, { row: Math.max(0, row - back), column: Math.max(0, column - back), side, hides: pen === 'hide' });
    setStrokes(next);
  }

  /** @param {typeof strokes} next */
  function setStrokes(next) {
    strokes = next.slice(-mostStrokes);
    void refresh();
  }

  let turn = 0;
  async function refresh() {
    const mine = ++turn;
    const kept = { ...state.read() };
    const drawn = strokesText(strokes);
    if (drawn !== (kept.drawn ?? '')) {
      delete kept.drawn;
      state.write(drawn === '' ? kept : { ...kept, drawn });
    }
    // After the slider has been drawn where it stands now; of many changes only the last counts.
    await nextTask();
    if (mine !== turn) return;
    const rules = makeRules(form.values, strokes);
    await nextTask();
    const outcome = await compute(sdpa, rules);
    context.showCode(codeFor(rules));
    await nextTask();
    if (mine !== turn) return;
    show(rules, outcome);
  }

  /**
   * @param {import('./rules.js').Rules} rules
   * @param {import('./compute.js').Outcome} outcome
   */
  function show({ rows, columns }, { weights, out, masked, emptyRows, wrong, stats, tiles: { shares, ...size } }) {
    empty = new Set(emptyRows);
    form.offer('image', form.values.pattern === 'swin');
    map.show({ rows, columns, values: weights, masked });
    tiles.show({
      ...size,
      values: shares,
      masked: Uint8Array.from(shares, (share) => Number(share === 0)),
      range: [0, 1],
    });
    output.show({ rows, columns: valueDim, values: out.map(Math.abs) });
    const saved = stats.skipped / stats.tiles;
    numbers.show(0, whole(stats.full), stats.full, 'every cell allowed: the mask is not looked at');
    numbers.show(1, whole(stats.partial), stats.partial, 'some cells allowed');
    numbers.show(2, whole(stats.skipped), stats.skipped, 'no cell allowed: not computed, keys not read');
    const rest = `of ${whole(stats.tiles)} tiles; ${shortNumber(100 * stats.density)} % of the cells are allowed`;
    numbers.show(3, `${shortNumber(100 * saved)} %`, saved, rest);
    words.textContent = sentence(rows, columns, emptyRows, wrong);
    root.dataset.empty = String(emptyRows.length);
    root.dataset.wrong = String(wrong);
  }

  await refresh();
}

/**
 * @param {number} rows
 * @param {number} columns
 * @param {readonly number[]} emptyRows
 * @param {number} wrong
 */
function sentence(rows, columns, emptyRows, wrong) {
  const size = `${rows} queries, ${columns} keys. `;
  const checked =
    wrong === 0 ? 'Each hidden cell has a weight of exactly 0. ' : `${wrong} numbers that should be 0 are not! `;
  if (emptyRows.length === 0) return `${size}${checked}Every query sees something.`;
  const first = emptyRows[0];
  const last = emptyRows[emptyRows.length - 1];
  const isRun = last - first + 1 === emptyRows.length;
  const which =
    emptyRows.length === 1
      ? `Query ${first} sees`
      : `${emptyRows.length} queries${isRun ? `, ${first} to ${last},` : ''} see`;
  return `${size}${checked}${which} nothing: weights and outputs are zero, not NaN.`;
}
