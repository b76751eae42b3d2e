// Train a head: real forward and backward passes in slices, and what the head looks at while it learns.

import { controls } from '../../parts/controls.js';
import { make, reducedMotion } from '../../parts/dom.js';
import { figures } from '../../parts/figures.js';
import { shortNumber, whole } from '../../parts/format.js';
import { HeatMap } from '../../parts/heat-map.js';
import { LinePlot } from '../../parts/line-plot.js';
import { Pace } from '../../parts/pace.js';
import { addTensors } from '../../parts/tensor-store.js';
import { codeFor } from './code.js';
import { headDim, Model } from './model.js';
import { length, sequences, tasks } from './tasks.js';

/** A run ends by itself after so many steps. */
const mostSteps = 2000;

/** Points of the loss that are kept; of more every second one is dropped. */
const mostPoints = 240;

/** Milliseconds between two drawings, and where the visitor asked for less movement. */
const pause = { usual: 120, reduced: 1500 };

/** Seed of the sequence whose weights are shown. */
const shownSeed = 7;

/** @satisfies {Record<string, import('../../parts/controls.js').Spec>} */
const specs = {
  task: {
    kind: 'choice',
    label: 'Task',
    initial: 'match',
    options: [
      ['match', tasks.match.title],
      ['previous', tasks.previous.title],
    ],
  },
  rate: {
    kind: 'range',
    label: 'Learning rate',
    min: -4,
    max: -0.5,
    step: 0.25,
    initial: -2.5,
    show: (power) => shortNumber(10 ** power),
  },
  seed: { kind: 'range', label: 'First weights, by their seed', min: 1, max: 20, initial: 1 },
};

/**
 * @param {HTMLElement} root
 * @param {import('../../scaffold/sections.js').SectionContext} context
 */
export async function mount(root, context) {
  const sdpa = await context.instance();
  const form = controls(specs, context.state, change);
  const button = (/** @type {string} */ text, /** @type {() => void} */ onclick, /** @type {string} */ look = '') =>
    make('button', { type: 'button', class: look, onclick }, text);
  const start = button('Start', () => (running ? running.abort() : void run(mostSteps)));
  const one = button('One step', () => void run(1), 'quiet');
  const reset = button('Reset', restart, 'quiet');
  const status = make('p', { class: 'status', role: 'status' });
  const progress = make('progress', { max: mostSteps, value: 0, 'aria-label': 'Steps of the training' });
  const numbers = figures(['Steps', 'Loss', 'Right answers', 'Weight where it belongs']);
  const map = new HeatMap({
    label: 'Weights of one sequence while the head learns',
    file: 'trained-weights',
    rowName: (i) => `query ${i}, ${shown.words[i]}`,
    columnName: (j) => `key ${j}, ${shown.words[j]}`,
    rowTick: (i) => shown.words[i] ?? '',
    columnTick: (j) => shown.words[j] ?? '',
  });
  const plot = new LinePlot({
    label: 'Loss',
    x: { label: 'step' },
    y: { label: 'nats', log: 10 },
    series: [
      { name: 'loss', colour: 'ours' },
      { name: 'by guessing', colour: 'plain', dash: [6, 4] },
    ],
  });
  root.append(
    make(
      'div',
      { class: 'card' },
      form.element,
      make('div', { class: 'buttons' }, start, one, reset),
      make('div', { class: 'doing' }, progress, status),
    ),
    numbers.element,
    make('div', { class: 'two' }, make('div', {}, make('h3', {}, 'What it looks at'), map.element), plot.element),
    make(
      'p',
      { class: 'note' },
      `One head of ${headDim} columns over ${length} tokens, causal, with projections to query, key, value and answer; nothing tells it ` +
        'where to look. Gradients of the attention come from attentionBackward(), those of the projections from small products; Adam takes ' +
        'the steps. What it has learned is there in “A sentence, word by word” too.',
    ),
  );

  /** @type {Model} */
  let model;
  let shown = sequences('match', shownSeed)();
  let modelFor = '';
  /** @type {{ steps: number[], losses: number[], every: number }} */
  let curve = { steps: [], losses: [], every: 1 };
  /** @type {{ loss: number, right: number } | null} */
  let last = null;
  /** @type {AbortController | null} */
  let running = null;

  function change() {
    const { task, seed, rate } = form.values;
    context.showCode(codeFor(Number((10 ** rate).toPrecision(3))));
    if (modelFor !== `${task} ${seed}`) restart();
  }

  function restart() {
    running?.abort();
    const { task, seed } = form.values;
    const name = /** @type {import('./tasks.js').TaskName} */ (task);
    model = new Model(sdpa, name, seed);
    modelFor = `${task} ${seed}`;
    shown = sequences(name, shownSeed)();
    curve = { steps: [], losses: [], every: 1 };
    last = null;
    status.textContent = `${tasks[name].words} Start trains the head in this page.`;
    show();
  }

  /** @param {number} steps */
  async function run(steps) {
    running?.abort();
    const controller = new AbortController();
    const { signal } = controller;
    running = controller;
    const learner = model;
    start.textContent = 'Stop';
    start.dataset.running = '';
    status.textContent = 'Learning …';
    const pace = new Pace(signal);
    let drawn = performance.now();
    try {
      for (let end = learner.steps + steps; learner.steps < end;) {
        last = learner.step(10 ** form.values.rate);
        keep(learner.steps, last.loss);
        if (pace.left <= 0) {
          await pace.rest();
          if (performance.now() - drawn > (reducedMotion() ? pause.reduced : pause.usual)) {
            show();
            drawn = performance.now();
            await pace.rest();
          }
        }
      }
      await pace.rest();
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      // After a reset, the model is another one.
      if (learner === model && running === controller) {
        show();
        publish();
        status.textContent = `${signal.aborted ? 'Stopped' : 'Ended'} after ${whole(learner.steps)} steps; the loss is ${shortNumber(last?.loss ?? NaN)}.`;
      }
      if (running === controller) {
        running = null;
        start.textContent = 'Start';
        delete start.dataset.running;
      }
    }
  }

  /** @param {number} step @param {number} loss */
  function keep(step, loss) {
    if ((step - 1) % curve.every !== 0) return;
    curve.steps.push(step);
    curve.losses.push(loss);
    if (curve.steps.length < mostPoints) return;
    curve.every *= 2;
    const kept = (/** @type {number[]} */ all) => all.filter((_, i) => i % 2 === 0);
    curve = { steps: kept(curve.steps), losses: kept(curve.losses), every: curve.every };
  }

  function show() {
    const { weights } = model.look(shown);
    const masked = Array.from(weights, (_, at) => (at % length > Math.floor(at / length) ? 1 : 0));
    map.show({ rows: length, columns: length, values: weights, masked, range: [0, 1] });
    const asked = shown.looks.flatMap((j, i) => (j >= 0 ? [weights[i * length + j]] : []));
    const target = asked.reduce((a, b) => a + b, 0) / asked.length;
    numbers.show(0, whole(model.steps), model.steps);
    numbers.show(1, last ? shortNumber(last.loss) : '–', last?.loss ?? NaN);
    numbers.show(2, last ? `${Math.round(100 * last.right)} %` : '–', last?.right ?? NaN);
    numbers.show(3, `${Math.round(100 * target)} %`, target);
    progress.value = model.steps;
    const guess = Math.log(model.classes);
    if (curve.steps.length > 1)
      plot.show(
        curve.steps,
        curve.losses,
        curve.steps.map(() => guess),
      );
    else plot.show([0, 1], [null, null], [guess, guess]);
  }

  /** Hands the head over to the next section. */
  function publish() {
    const { query, key } = model.look(shown);
    const shape = [length, headDim];
    addTensors([
      { name: 'trained query', data: query, shape, dtype: 'float32', labels: shown.words },
      { name: 'trained key', data: key, shape, dtype: 'float32', labels: shown.words },
    ]);
  }

  change();
}
