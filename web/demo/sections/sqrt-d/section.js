// Why √d: what the scale does to logits, weights and gradients.

import { controls } from '../../parts/controls.js';
import { make } from '../../parts/dom.js';
import { figures } from '../../parts/figures.js';
import { shortNumber } from '../../parts/format.js';
import { HeatMap } from '../../parts/heat-map.js';
import { LinePlot } from '../../parts/line-plot.js';
import { Pace } from '../../parts/pace.js';
import { codeFor, drawInputs, drawn, headDims, histogram, measure, scaleOf, sizes } from './measure.js';

/** @satisfies {Record<string, import('../../parts/controls.js').Spec>} */
const specs = {
  size: {
    kind: 'range',
    label: 'Head size d',
    min: 0,
    max: headDims.length - 1,
    initial: headDims.indexOf(256),
    show: (index) => String(headDims[index]),
  },
  exponent: {
    kind: 'range',
    label: 'Scale',
    min: 0,
    max: 1,
    step: 0.05,
    initial: 0,
    show: (exponent) =>
      exponent === 0 ? '1, none' : exponent === 0.5 ? '1 / √d' : exponent === 1 ? '1 / d' : `d^−${exponent}`,
  },
};

const bins = 25;

/** Exponents that the curves over d always show. */
const compared = [0, 0.5];

/**
 * @param {HTMLElement} root
 * @param {import('../../scaffold/sections.js').SectionContext} context
 */
export async function mount(root, context) {
  const pace = new Pace();
  const [sdpa, inputs] = await Promise.all([context.instance(), drawInputs(pace)]);
  await pace.rest();
  const form = controls(specs, context.state, () => void refresh());
  const right = make('button', { type: 'button', onclick: () => form.set({ exponent: 0.5 }) }, 'Divide by √d');
  const none = make('button', { type: 'button', class: 'quiet', onclick: () => form.set({ exponent: 0 }) }, 'No scale');
  const words = make('p', { class: 'status', role: 'status' });
  const names = ['Spread of the logits', 'Entropy', 'Largest weight', 'Gradient of the logits'];
  const numbers = figures(names, { hasNotes: true });
  const bars = new LinePlot({
    label: 'How the logits are spread',
    x: { label: 'logit' },
    y: { label: 'how many' },
    series: [{ name: 'logits', bars: true }],
  });
  const map = new HeatMap({ label: 'Weights, each row a query', file: 'sqrt-d-weights', height: 300 });
  const lines = ['no scale', '1 / √d', 'as set'];
  /** @type {Omit<import('../../parts/line-plot.js').Series, 'name'>[]} */
  const looks = [{ colour: 'plain', dash: [6, 4] }, { colour: 'ours' }, { colour: 'soft', dash: [2, 3] }];
  const series = lines.map((name, k) => ({ name, ...looks[k] }));
  const x = { label: 'head size d', log: /** @type {const} */ (2) };
  const gradients = new LinePlot({
    label: 'Gradient of the logits, median of the queries',
    x,
    y: { label: 'length', log: 10 },
    series,
  });
  const entropies = new LinePlot({
    label: 'Entropy of the weights',
    x,
    y: { label: 'nats', range: [0, 1.05 * Math.log(sizes.keys)] },
    series,
  });
  root.append(
    make('div', { class: 'card' }, form.element, make('div', { class: 'buttons' }, right, none), words),
    numbers.element,
    make('div', { class: 'two' }, bars.element, make('div', {}, make('h3', {}, 'Who attends to what'), map.element)),
    make('div', { class: 'two' }, gradients.element, entropies.element),
    make(
      'p',
      { class: 'note' },
      `${sizes.queries} queries, of which the first ${drawn} are drawn, ${sizes.keys} keys, all numbers normal with variance 1. A sum of d products of such numbers has ` +
        'variance d: that is what the root makes good. The gradients come from attentionBackward() with a normal gradient of the output.',
    ),
  );

  /** Measured once each. @type {Map<string, import('./measure.js').Measured>} */
  const known = new Map();
  const at = (/** @type {number} */ headDim, /** @type {number} */ exponent) => {
    const name = `${headDim} ${exponent}`;
    const found = known.get(name) ?? measure(sdpa, inputs, headDim, scaleOf(headDim, exponent));
    known.set(name, found);
    return found;
  };
  let turn = 0;

  async function refresh() {
    const mine = ++turn;
    const { size, exponent } = form.values;
    const headDim = headDims[size];
    showOne(headDim, exponent);
    context.showCode(codeFor(headDim, exponent));
    await pace.rest();
    /** @type {import('./measure.js').Measured[][]} */
    const curves = [];
    for (const each of [...compared, exponent]) {
      const curve = [];
      for (const d of headDims) {
        curve.push(at(d, each));
        if (pace.left < 8) await pace.rest();
        // The sliders have moved on.
        if (mine !== turn) return;
      }
      curves.push(curve);
    }
    // It would hide the line that it lies on.
    const isCompared = compared.includes(exponent);
    /** @param {'gradient' | 'entropy'} name */
    const pick = (name) =>
      curves.map((curve, k) => curve.map((each) => (isCompared && k === compared.length ? null : each[name])));
    gradients.show(headDims, ...pick('gradient'));
    entropies.show(headDims, ...pick('entropy'));
    root.dataset.drawn = `${headDim} ${exponent}`;
  }

  /** @param {number} headDim @param {number} exponent */
  function showOne(headDim, exponent) {
    const { logits, weights, deviation, entropy, largest, gradient } = at(headDim, exponent);
    const reference = at(headDim, 0.5).gradient;
    const most = Math.log(sizes.keys);
    const texts = /** @type {const} */ ([
      [deviation, `standard deviation; √d × scale = ${shortNumber(Math.sqrt(headDim) * scaleOf(headDim, exponent))}`],
      [entropy, `nats, of at most ln ${sizes.keys} = ${shortNumber(most)}; mean of all queries`],
      [largest, `of the 1 that a query gives away; mean of all queries`],
      [gradient, `length, median of all queries; with 1 / √d it is ${shortNumber(reference)}`],
    ]);
    texts.forEach(([number, note], k) => numbers.show(k, shortNumber(number), number, note));
    const share = gradient / reference;
    words.textContent =
      exponent === 0.5
        ? `With 1 / √${headDim} the logits have a spread near 1 whatever d is: the weights stay soft, and the gradient gets through.`
        : exponent < 0.5
          ? `The softmax saturates: one key takes ${Math.round(100 * largest)} % on average, and the gradient shrinks to ${shortNumber(100 * share)} % of what it is with 1 / √d.`
          : `The logits are squeezed together: every key gets nearly the same, and content hardly counts.`;
    const { middles, counts } = histogram(logits, bins);
    bars.show(middles, counts);
    map.show({ rows: drawn, columns: sizes.keys, values: weights, range: [0, 1] });
  }

  await refresh();
}
