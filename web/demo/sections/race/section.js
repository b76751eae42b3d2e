// Alternatives race: exact attention against what is used in its place, on the same long input.

import { controls } from '../../parts/controls.js';
import { make } from '../../parts/dom.js';
import { durationText, sizeText, whole } from '../../parts/format.js';
import { LinePlot } from '../../parts/line-plot.js';
import { codeFor } from './code.js';
import { methodsOf } from './methods.js';
import { race } from './run.js';
import { classes } from './task.js';

/** Exponents of two of the slider. */
const [least, most] = [10, 15];

/** @satisfies {Record<string, import('../../parts/controls.js').Spec>} */
const specs = {
  tokens: {
    kind: 'range',
    label: 'Tokens',
    min: least,
    max: most,
    initial: 12,
    show: (power) => whole(2 ** power),
  },
};

/** @type {Record<string, Omit<import('../../parts/line-plot.js').Series, 'name'>>} */
const looks = {
  exact: { colour: 'ours' },
  window: { colour: 'plain' },
  bigbird: { colour: 'plain', dash: [6, 4] },
  linear: { colour: 'soft' },
  ssd: { colour: 'soft', dash: [2, 3] },
};

/**
 * @param {HTMLElement} root
 * @param {import('../../scaffold/sections.js').SectionContext} context
 */
export async function mount(root, context) {
  const methods = methodsOf(await context.instance());
  const hasLinear = methods.some(({ name }) => name === 'linear');
  const tokens = () => 2 ** form.values.tokens;
  const form = controls(specs, context.state, change);
  const button = make('button', { type: 'button', onclick: () => (running ? running.abort() : void go()) }, 'Race');
  const progress = make('progress', { max: 1, value: 0, 'aria-label': 'Progress of the race' });
  const status = make('p', { class: 'status', role: 'status' });
  const rows = methods.map(({ name, title, what }) => {
    const bar = () => make('span', { class: 'bar', 'aria-hidden': 'true' });
    const cell = (/** @type {string} */ kind, /** @type {string} */ label) => {
      const [output, strip] = [make('output', { 'data-kind': kind }, '–'), bar()];
      return { output, strip, element: make('td', { role: 'cell', 'data-label': label }, output, strip) };
    };
    const cells = { time: cell('time', 'Time'), bytes: cell('bytes', 'Memory'), recall: cell('recall', 'Recall') };
    const head = make(
      'th',
      { scope: 'row', role: 'rowheader' },
      make('b', {}, title),
      make('span', { class: 'note' }, what),
    );
    const element = make(
      'tr',
      { 'data-method': name, role: 'row' },
      head,
      ...Object.values(cells).map((each) => each.element),
    );
    return { name, cells, element };
  });
  const table = make(
    'table',
    // Said once more, because the table is laid out as a grid on a small screen.
    { class: 'race', role: 'table' },
    make('caption', { class: 'visually-hidden' }, 'Time, memory and recall of each method'),
    make(
      'thead',
      {},
      make(
        'tr',
        {},
        ...['Method', 'Time', 'Memory', 'Recall'].map((text) =>
          make('th', { scope: 'col', role: 'columnheader' }, text),
        ),
      ),
    ),
    make('tbody', { role: 'rowgroup' }, ...rows.map(({ element }) => element)),
  );
  const plot = new LinePlot({
    label: 'Time by tokens, of the races so far',
    x: { label: 'tokens', log: 2 },
    y: { label: 'ms', log: 10 },
    series: methods.map(({ name, title }) => ({ name: title, ...looks[name] })),
  });
  plot.element.hidden = true;
  root.append(
    make(
      'div',
      { class: 'card' },
      form.element,
      make('div', { class: 'buttons' }, button),
      make('div', { class: 'doing' }, progress, status),
    ),
    table,
    plot.element,
    make(
      'p',
      { class: 'note' },
      `Random tokens; the last ones each ask for the value of one before them. Recall is the share of right answers among ${classes} possible ` +
        'ones. One head of size 64, causal, each method on this thread with an instance of its own. Memory is the most that its module held: ' +
        'keys, values and what is being computed; the arrays of the input and the result come on top. Times include the rests in which the page draws.',
    ),
  );

  /** Milliseconds by tokens and method. @type {Map<number, Map<string, number>>} */
  const times = new Map();
  /** @type {AbortController | null} */
  let running = null;

  function change() {
    running?.abort();
    context.showCode(codeFor(tokens(), hasLinear));
  }

  async function go() {
    const controller = new AbortController();
    const { signal } = controller;
    running = controller;
    button.textContent = 'Stop';
    button.dataset.running = '';
    const length = tokens();
    /** @type {import('./run.js').Outcome[]} */
    const outcomes = [];
    let said = '';
    show(outcomes);
    try {
      await race(methods, length, {
        signal,
        onProgress: (name, fraction) => {
          const at = methods.findIndex((method) => method.name === name);
          progress.value = (Math.max(0, at) + fraction) / methods.length;
          const words = name === null ? `Drawing ${whole(length)} tokens …` : `${methods[at].title} …`;
          if (words !== said) status.textContent = words;
          said = words;
        },
        onOutcome: (outcome) => {
          outcomes.push(outcome);
          show(outcomes);
        },
      });
      times.set(length, new Map(outcomes.map(({ name, milliseconds }) => [name, milliseconds])));
      const lengths = [...times.keys()].sort((a, b) => a - b);
      plot.element.hidden = false;
      plot.show(lengths, ...methods.map(({ name }) => lengths.map((each) => times.get(each)?.get(name) ?? null)));
      progress.value = 1;
      root.dataset.drawn = String(length);
      status.textContent = summary(length, outcomes);
    } catch (error) {
      progress.value = 0;
      status.textContent = signal.aborted
        ? 'Stopped.'
        : `The race failed: ${error instanceof Error ? error.message : error}`;
    } finally {
      running = null;
      button.textContent = 'Race';
      delete button.dataset.running;
    }
  }

  /** @param {readonly import('./run.js').Outcome[]} outcomes */
  function show(outcomes) {
    const longest = Math.max(...outcomes.map(({ milliseconds }) => milliseconds));
    const largest = Math.max(...outcomes.map(({ bytes }) => bytes));
    for (const { name, cells } of rows) {
      const found = outcomes.find((outcome) => outcome.name === name);
      const texts = /** @type {const} */ ([
        [cells.time, found?.milliseconds, found && durationText(found.milliseconds), longest],
        [cells.bytes, found?.bytes, found && sizeText(found.bytes), largest],
        [cells.recall, found?.recall, found && `${Math.round(100 * found.recall)} %`, 1],
      ]);
      for (const [{ output, strip }, number, text, all] of texts) {
        output.textContent = text ?? '–';
        output.dataset.value = String(number ?? '');
        strip.style.setProperty('--share', String((number ?? 0) / all));
      }
    }
  }

  /** @param {number} length @param {readonly import('./run.js').Outcome[]} outcomes */
  function summary(length, outcomes) {
    const quickest = outcomes.reduce((a, b) => (b.milliseconds < a.milliseconds ? b : a));
    const title = (/** @type {string} */ name) => methods.find((method) => method.name === name)?.title;
    const [exact] = outcomes;
    return (
      `${whole(length)} tokens: ${title(quickest.name)} is the quickest and finds ${Math.round(100 * quickest.recall)} %, ` +
      `exact attention takes ${(exact.milliseconds / quickest.milliseconds).toFixed(1)} times as long and finds ${Math.round(100 * exact.recall)} %.`
    );
  }

  status.textContent = `Race runs ${methods.length} methods one after the other, for some seconds.`;
  change();
}
