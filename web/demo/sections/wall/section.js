// The memory wall: its controls, and what happens when they are used.

import { AttentionError, chooseVariant, features } from 'sdpa';
import { byId } from '../../parts/dom.js';
import { durationText, power, sizeText, whole } from '../../parts/format.js';
import { drawChart } from './chart.js';
import { codeFor } from './code.js';
import { ledgerRows } from './ledger.js';
import { markup } from './markup.js';
import { run } from './run.js';
import { builds, fromTexts, nearestStop, stops, threadStops, toTexts } from './state.js';
import * as view from './view.js';

const { write } = view;

const engine = features();

/** @type {import('../../scaffold/sections.js').SectionContext} */
let context;
/** @type {HTMLElement} */
let form;
/** @type {HTMLFieldSetElement} */
let settings;
/** @type {HTMLInputElement} */
let tokensInput;
/** @type {HTMLInputElement} */
let causalInput;
/** @type {HTMLSelectElement} */
let buildInput;
/** @type {HTMLSelectElement} */
let threadsInput;
/** @type {HTMLButtonElement} */
let button;
/** @type {HTMLButtonElement} */
let eachButton;
/** @type {HTMLProgressElement} */
let progress;

/** Bytes by number of tokens, of the runs so far. @type {Map<number, number>} */
const measured = new Map();

/** @type {import('./ledger.js').Entry[]} */
const ledger = [];

/** What can be chosen, by this computer's cores. */
const threadCounts = threadStops(typeof Worker === 'function' ? (navigator.hardwareConcurrency ?? 1) : 0);

/** Of the run that is going on. @type {AbortController | null} */
let running = null;

/**
 * @param {HTMLElement} root
 * @param {import('../../scaffold/sections.js').SectionContext} given
 */
export function mount(root, given) {
  context = given;
  root.innerHTML = markup;
  form = byId('form');
  settings = byId('settings');
  tokensInput = byId('tokens');
  causalInput = byId('causal');
  buildInput = byId('build');
  threadsInput = byId('threads');
  button = byId('run');
  eachButton = byId('run-each');
  progress = byId('progress');
  tokensInput.max = String(stops.length - 1);
  write('tokens-least', whole(stops[0]));
  write('tokens-most', whole(stops[stops.length - 1]));
  buildInput.append(...builds.map(buildOption));
  threadsInput.append(
    ...threadCounts.map((count) => new Option(count === 0 ? 'none: this thread' : String(count), String(count))),
  );
  view.showFeatures(engine);
  takeSetting();
  new ResizeObserver(drawLines).observe(byId('chart'));
  context.state.listen(takeSetting);
  settings.addEventListener('input', () => {
    context.state.write(toTexts(setting()));
    showSetting();
  });
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    if (running) stop();
    else void go([setting().threads]);
  });
  eachButton.addEventListener('click', () => void go(threadCounts));
  document.addEventListener('keydown', ({ key }) => {
    if (key === 'Escape') stop();
  });
  if (engine.webAssembly) {
    button.disabled = false;
    eachButton.disabled = false;
    say('Ready. Run computes in this page; nothing is sent anywhere.');
  } else {
    say('This browser has no WebAssembly, or it is switched off. sdpa cannot run here without it.', true);
  }
}

/** @param {import('./run.js').Setting['build']} build */
function buildOption(build) {
  const option = new Option(build, build);
  try {
    const chosen = chooseVariant(engine, { variant: build });
    if (build === 'auto') option.text = `auto: ${chosen}`;
  } catch {
    option.disabled = true;
    option.text = `${build}: not in this engine`;
  }
  return option;
}

/** @returns {import('./run.js').Setting} */
function setting() {
  return {
    tokens: stops[Number(tokensInput.value)],
    causal: causalInput.checked,
    build: builds[Math.max(0, buildInput.selectedIndex)],
    threads: Number(threadsInput.value),
  };
}

/** The address's setting into the controls. */
function takeSetting() {
  if (running) return;
  const { tokens, causal, build, threads } = fromTexts(context.state.read());
  tokensInput.value = String(nearestStop(tokens));
  causalInput.checked = causal;
  buildInput.value = build;
  // The next smaller number where this computer has fewer cores.
  threadsInput.value = String(threadCounts.findLast((count) => count <= threads));
  // A link from an engine that has more than this one.
  if (buildInput.selectedOptions[0]?.disabled) buildInput.value = 'auto';
  showSetting();
}

function showSetting() {
  const { tokens } = setting();
  write('tokens-shown', whole(tokens), tokens);
  tokensInput.setAttribute('aria-valuetext', `${whole(tokens)} tokens`);
  view.showVisited(0);
  view.showMemory(tokens, measured.get(tokens));
  context.showCode(codeFor(setting()));
  drawLines();
}

function drawLines() {
  const chart = byId('chart');
  const lines = drawChart(Math.max(280, chart.clientWidth), {
    tokens: stops,
    curves: [
      { name: 'plain: the L × L scores', kind: 'plain', bytes: view.plainBytes },
      { name: 'sdpa', kind: 'ours', bytes: view.arrayBytes },
    ],
    measured,
    here: setting().tokens,
  });
  chart.replaceChildren(lines);
}

/**
 * @param {string} text
 * @param {boolean} [isBad]
 */
function say(text, isBad = false) {
  write('status', text);
  byId('status').classList.toggle('bad', isBad);
}

/** @param {readonly number[]} counts of workers, one run for each */
async function go(counts) {
  const controller = new AbortController();
  running = controller;
  settings.disabled = true;
  eachButton.disabled = true;
  button.textContent = 'Stop';
  button.dataset.running = '';
  byId('results').hidden = true;
  let reached = 0;
  try {
    for (const threads of counts) {
      const chosen = { ...setting(), threads };
      view.showVisited(0);
      phaseSaid = null;
      reached = 0;
      const outcome = await run(chosen, {
        signal: controller.signal,
        onProgress: (now) => {
          reached = now.fraction;
          showProgress(now, chosen);
        },
      });
      finish(chosen, outcome);
    }
  } catch (error) {
    progress.value = 0;
    if (controller.signal.aborted) say(`Stopped at ${Math.floor(100 * reached)} % of this step.`);
    else say(explain(error), true);
  } finally {
    running = null;
    settings.disabled = false;
    eachButton.disabled = false;
    button.textContent = 'Run';
    delete button.dataset.running;
  }
}

/**
 * @param {import('./run.js').Setting} chosen
 * @param {import('./run.js').Outcome} outcome
 */
function finish(chosen, outcome) {
  // What workers hold is theirs, and is not measured here.
  if (chosen.threads === 0) measured.set(chosen.tokens, view.heldBytes(outcome));
  ledger.push({ setting: chosen, outcome });
  byId('ledger').replaceChildren(...ledgerRows(ledger));
  byId('runs').hidden = false;
  showSetting();
  view.showVisited(1);
  view.showOutcome(chosen, outcome);
  progress.value = 1;
  say(summary(chosen, outcome), !(outcome.maxError <= view.errorBound));
}

function stop() {
  running?.abort();
}

const doing = {
  load: () => 'Loading the build',
  draw: () => 'Drawing query, key and value',
  attend: (/** @type {number} */ tokens) =>
    `Attending: ${whole(tokens)} × ${whole(tokens)} scores, none of them stored`,
  check: () => 'Checking rows against float64',
};

/** @type {import('./run.js').Progress['phase'] | null} */
let phaseSaid = null;

/**
 * @param {import('./run.js').Progress} now
 * @param {import('./run.js').Setting} chosen
 */
function showProgress({ phase, fraction, rows }, { tokens, threads }) {
  progress.value = fraction;
  // Said once for each step: a screen reader reads every change.
  if (phase !== phaseSaid) say(`${doing[phase](tokens)}${threads > 0 ? `, ${threads} at work` : ''} …`);
  phaseSaid = phase;
  view.showVisited(rows / tokens);
}

/**
 * @param {import('./run.js').Setting} chosen
 * @param {import('./run.js').Outcome} outcome
 */
function summary({ tokens, causal, threads }, outcome) {
  return (
    `Done: ${whole(tokens)} tokens${causal ? ', causal' : ''}, in ${durationText(outcome.milliseconds)} ${threads > 0 ? `by ${threads} worker${threads > 1 ? 's' : ''}` : `and ${sizeText(view.heldBytes(outcome))}`}; ` +
    `largest error ${power(outcome.maxError)}.`
  );
}

/** @param {unknown} error */
function explain(error) {
  const text = error instanceof Error ? error.message : String(error);
  return AttentionError.is(error) && error.code === 'out-of-memory'
    ? `This browser has too little memory for the run: ${text}.`
    : `The run failed: ${text}`;
}
