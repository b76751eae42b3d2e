// How the tiles work: online softmax, one step at a time, and the library's answer beside it.

import { controls } from '../../parts/controls.js';
import { dataTable } from '../../parts/data-table.js';
import { make } from '../../parts/dom.js';
import { fixed, power } from '../../parts/format.js';
import { HeatMap } from '../../parts/heat-map.js';
import { makeBoard } from './board.js';
import { codeFor, makeExample, sizes } from './example.js';
import { makeSteps, mostSteps, tilesOf } from './steps.js';
import { describe } from './words.js';

/** Milliseconds that a step is shown while playing: long enough to read. */
const pause = 1600;

/** @satisfies {Record<string, import('../../parts/controls.js').Spec>} */
const specs = {
  // The first one at which a maximum rises: what the section is about.
  step: { kind: 'range', label: 'Step', min: 0, max: mostSteps - 1, initial: 5 },
  seed: { kind: 'range', label: 'Numbers, by their seed', min: 1, max: 20, initial: 7 },
  mask: {
    kind: 'choice',
    label: 'Mask',
    initial: 'none',
    options: [
      ['none', 'none'],
      ['lower-right', 'causal, aligned lower right'],
      ['upper-left', 'causal, aligned upper left'],
    ],
  },
};

const why = `
  <h3>Why this is exact</h3>
  <p>
    The softmax of a row does not change when the same number is taken from all its scores, because numerator and
    denominator are multiplied by the same factor. The maximum is taken so that no power overflows. A larger maximum that
    comes later only means that another number should have been taken from the start, and that is made good by one
    multiplication: e<sup>s − new</sup> = e<sup>s − old</sup> · e<sup>old − new</sup>. Sum and output are multiplied by the same
    e<sup>old − new</sup>. Nothing is left out and nothing is approximated; each step is an equation, and what is left
    is the rounding that any computation has.
  </p>`;

/**
 * @param {HTMLElement} root
 * @param {import('../../scaffold/sections.js').SectionContext} context
 */
export async function mount(root, context) {
  const sdpa = await context.instance();
  const { board, kept, show } = makeBoard();
  const words = make('p', { class: 'status', 'aria-live': 'polite' });
  const form = controls(specs, context.state, refresh);
  const [previous, play, next] = ['Previous', 'Play', 'Next'].map((text) => make('button', { type: 'button' }, text));
  const map = new HeatMap({ label: 'Weights by attentionWeights()', file: 'tiles-weights', scales: ['linear', 'log'] });
  const proof = make('div', { class: 'proof' });
  const end = make('div', { class: 'end' }, make('h3', {}, 'The same by the library'), proof, map.element);
  const reason = make('div', { class: 'why' });
  reason.innerHTML = why;
  root.append(
    make('div', { class: 'card' }, form.element, make('div', { class: 'buttons' }, previous, play, next), words),
    make('div', { class: 'tables' }, board, kept),
    make(
      'p',
      { class: 'note' },
      'In colour: the tile that is worked on, the only scores that exist. A dot: computed, used, forgotten. Hatched: masked. ' +
        'Underlined: changed by this step.',
    ),
    reason,
    end,
  );

  /** @type {ReturnType<typeof build>} */
  let built;
  let builtFor = '';
  /** @type {ReturnType<typeof setInterval> | undefined} */
  let playing;

  function build() {
    const { seed, mask } = form.values;
    const example = makeExample(sdpa, seed, /** @type {import('./example.js').MaskName} */ (mask));
    return { example, steps: makeSteps(example), tiles: tilesOf(example) };
  }

  function refresh() {
    const { seed, mask } = form.values;
    if (builtFor !== `${seed} ${mask}`) {
      built = build();
      builtFor = `${seed} ${mask}`;
      showEnd(built, map, proof);
      context.showCode(codeFor(seed, /** @type {import('./example.js').MaskName} */ (mask)));
    }
    const { steps, tiles } = built;
    form.inputs.step.setAttribute('max', String(steps.length - 1));
    const at = Math.min(form.values.step, steps.length - 1);
    show(steps[at], steps[at - 1], tiles);
    words.textContent = describe(steps, at, tiles);
    previous.disabled = at === 0;
    next.disabled = at === steps.length - 1;
    if (next.disabled) stop();
  }

  /** @param {number} by */
  function move(by) {
    const last = built.steps.length - 1;
    const at = Math.min(form.values.step, last) + by;
    form.set({ step: Math.min(last, Math.max(0, at)) });
  }

  function stop() {
    clearInterval(playing);
    playing = undefined;
    play.textContent = 'Play';
  }

  previous.addEventListener('click', () => move(-1));
  next.addEventListener('click', () => move(1));
  play.addEventListener('click', () => {
    if (playing !== undefined) return stop();
    if (next.disabled) form.set({ step: 0 });
    else move(1);
    playing = setInterval(() => move(1), pause);
    play.textContent = 'Pause';
  });
  document.addEventListener('visibilitychange', stop);
  refresh();
}

/**
 * @param {{ example: import('./example.js').Example, steps: import('./steps.js').Step[] }} built
 * @param {HeatMap} map
 * @param {HTMLElement} proof
 */
function showEnd({ example, steps }, map, proof) {
  const { queries, keys, valueDim } = sizes;
  const { rows } = steps[steps.length - 1];
  let worst = 0;
  rows.forEach((row, i) =>
    row.out.forEach((number, d) => (worst = Math.max(worst, Math.abs(number - example.out[i * valueDim + d])))),
  );
  const plain = plainOutputs(example);
  const long = (/** @type {Iterable<number>} */ numbers) => [...numbers].map((number) => fixed(number, 6)).join(', ');
  proof.replaceChildren(
    make(
      'p',
      {},
      'By steps in float64, by the plain formula, and by attention() in float32: the largest difference to the library is ',
      make('output', { class: 'difference', 'data-value': worst }, power(worst)),
      '.',
    ),
    dataTable({
      caption: 'Outputs three ways',
      corner: 'query',
      columns: ['by the steps above', 'whole rows at once', 'attention()'],
      rows: rows.map((_, i) => String(i)),
      cell: (i, j) => long([rows[i].out, plain[i], example.out.subarray(i * valueDim, (i + 1) * valueDim)][j]),
    }),
  );
  map.show({
    rows: queries,
    columns: keys,
    values: example.weights,
    masked: example.allowed.some((one) => !one) ? example.allowed.map((one) => 1 - one) : undefined,
    range: [0, Math.max(...example.weights)],
  });
}

/**
 * The definition: a whole row of scores, its softmax, its sum of values.
 * @param {import('./example.js').Example} example
 * @returns {number[][]} (queries, valueDim)
 */
function plainOutputs({ scores, allowed, value }) {
  const { queries, keys, valueDim } = sizes;
  return Array.from({ length: queries }, (_, i) => {
    const powers = Array.from({ length: keys }, (__, j) =>
      allowed[i * keys + j] ? Math.exp(scores[i * keys + j]) : 0,
    );
    const sum = powers.reduce((a, b) => a + b);
    return Array.from({ length: valueDim }, (__, d) =>
      sum === 0 ? 0 : powers.reduce((total, power_, j) => total + power_ * value[j * valueDim + d], 0) / sum,
    );
  });
}
