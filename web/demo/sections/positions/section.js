// Positions: the sinusoid as a picture, and rotary embeddings as hands that turn.

import { controls } from '../../parts/controls.js';
import { make } from '../../parts/dom.js';
import { figures } from '../../parts/figures.js';
import { shortNumber, whole } from '../../parts/format.js';
import { HeatMap } from '../../parts/heat-map.js';
import { LinePlot } from '../../parts/line-plot.js';
import { Pace } from '../../parts/pace.js';
import { codeFor } from './code.js';
import { makeDials } from './dials.js';
import { byDistance, curveDim, dot, smallDim, trained, turned, vector, wavelengths } from './rotation.js';

/** Rows and columns of the sinusoid's picture. */
const picture = { length: 64, dim: 96 };

/** Points of the curve over the distance. */
const points = 161;

/** @satisfies {Record<string, import('../../parts/controls.js').Spec>} */
const specs = {
  query: { kind: 'range', label: 'Position of the query', min: 0, max: 200, initial: 40 },
  key: { kind: 'range', label: 'Position of the key', min: 0, max: 200, initial: 28 },
  pairing: {
    kind: 'choice',
    label: 'Columns that turn together',
    initial: 'half',
    options: [
      ['half', 'k and k + d/2 (half)'],
      ['interleaved', '2k and 2k + 1 (interleaved)'],
    ],
  },
  stretch: {
    kind: 'choice',
    label: 'Stretch',
    initial: 'yarn',
    options: [
      ['none', 'none'],
      ['linear', 'linear'],
      ['ntk', 'NTK'],
      ['yarn', 'YaRN'],
      ['llama3', 'Llama 3'],
    ],
  },
  factor: {
    kind: 'range',
    label: 'Stretch by',
    min: 1,
    max: 32,
    initial: 8,
    show: (factor) => `${factor} ×`,
  },
  base: {
    kind: 'range',
    label: 'Base',
    min: 2,
    max: 6,
    step: 0.25,
    initial: 4,
    show: (power) => whole(10 ** power),
  },
  reach: {
    kind: 'range',
    label: 'Distances up to',
    min: 6,
    max: 15,
    initial: 10,
    show: (power) => whole(2 ** power),
  },
  order: {
    kind: 'choice',
    label: 'Sinusoid, at the end',
    initial: 'interleaved',
    options: [
      ['interleaved', 'sine, cosine, sine, …'],
      ['sines-first', 'all sines first'],
    ],
  },
};

/**
 * @param {HTMLElement} root
 * @param {import('../../scaffold/sections.js').SectionContext} context
 */
export async function mount(root, context) {
  const sdpa = await context.instance();
  const pace = new Pace();
  const form = controls(specs, context.state, () => void refresh());
  const dials = makeDials();
  const words = make('p', { class: 'status', role: 'status' });
  const products = figures(['query · key', 'both 1 000 tokens further']);
  const both = make('button', { type: 'button', class: 'quiet', onclick: moveBoth }, 'Move both on by one');
  const distance = new LinePlot({
    label: `query · key of a vector with itself, by distance (${curveDim} columns)`,
    x: { label: 'distance in tokens' },
    y: { label: 'share of q · q', range: [-1, 2] },
    series: [
      { name: 'as trained', colour: 'plain', dash: [6, 4] },
      { name: 'stretched', colour: 'ours' },
    ],
  });
  const waves = new LinePlot({
    label: 'Tokens for one turn of each pair',
    x: { label: 'pair' },
    y: { label: 'tokens', log: 10 },
    series: [
      { name: 'as trained', colour: 'plain', dash: [6, 4] },
      { name: 'stretched', colour: 'ours' },
      { name: `the ${whole(trained)} tokens of the training`, colour: 'soft', dash: [2, 3] },
    ],
  });
  const map = new HeatMap({
    label: 'The sinusoidal embedding, position by column',
    file: 'positions-sinusoidal',
    sides: ['position', 'column'],
    rowName: (i) => `position ${i}`,
    columnName: (j) => `column ${j}`,
    scales: ['linear'],
  });
  root.append(
    make('div', { class: 'card' }, form.element),
    make(
      'div',
      {},
      make('h3', {}, 'Rotary embedding: hands that turn'),
      make(
        'ul',
        { class: 'hands note' },
        make('li', { class: 'plot-key' }, 'query, ends in a dot'),
        make('li', { class: 'plot-key plain' }, 'key, ends in a square'),
      ),
      make(
        'div',
        { class: 'two' },
        dials.element,
        make('div', {}, products.element, words, make('div', { class: 'buttons' }, both)),
      ),
    ),
    make(
      'p',
      {},
      `A model knows the angles of the ${whole(trained)} tokens that it was trained on. To read longer texts, its hands are slowed: ` +
        'linear scaling slows all of them, YaRN only those that would come to angles that are new, so that near words stay as they were.',
    ),
    make('div', { class: 'two' }, distance.element, waves.element),
    make(
      'div',
      {},
      make('h3', {}, 'The sinusoid of the first transformers'),
      make(
        'p',
        { class: 'note' },
        'Each column is a wave, longer to the right. A row is added to the token at its position.',
      ),
      map.element,
    ),
  );

  function moveBoth() {
    const { query, key } = form.values;
    const isEnd = Math.max(query, key) >= specs.query.max;
    const by = isEnd ? -Math.min(query, key) : 1;
    form.set({ query: query + by, key: key + by });
  }

  let turn = 0;
  async function refresh() {
    const mine = ++turn;
    const { query, key, pairing, stretch, factor, base: power, reach, order } = form.values;
    const base = Math.round(10 ** power);
    const setting = /** @type {import('./rotation.js').Setting} */ ({ base, pairing, stretch, factor });
    context.showCode(codeFor({ ...setting, query, key }));
    showDials(setting, query, key);
    await pace.rest();
    if (mine !== turn) return;
    const plain = { ...setting, stretch: /** @type {const} */ ('none') };
    const across = Array.from({ length: points }, (_, i) => Math.round((i * 2 ** reach) / (points - 1)));
    const distances = [...new Set(across)];
    distance.show(distances, byDistance(sdpa, distances, plain), byDistance(sdpa, distances, setting));
    await pace.rest();
    if (mine !== turn) return;
    const pairs = Array.from({ length: curveDim / 2 }, (_, pair) => pair);
    const trainedLine = pairs.map(() => trained);
    waves.show(pairs, wavelengths(sdpa, plain), wavelengths(sdpa, setting), trainedLine);
    await pace.rest();
    if (mine !== turn) return;
    const options = { base, order: /** @type {'interleaved' | 'sines-first'} */ (order) };
    const { data } = sdpa.sinusoidal(picture.length, picture.dim, options);
    map.show({ rows: picture.length, columns: picture.dim, values: data, range: [-1, 1] });
    root.dataset.drawn = JSON.stringify(setting);
  }

  /** @param {import('./rotation.js').Setting} setting @param {number} query @param {number} key */
  function showDials(setting, query, key) {
    const [q, k] = [vector(smallDim, 3), vector(smallDim, 4)];
    const [here, further] = turned(sdpa, q, [query, query + 1000], setting);
    const [there, furtherKey] = turned(sdpa, k, [key, key + 1000], setting);
    dials.show(here, there, setting.pairing);
    [dot(here, there), dot(further, furtherKey)].forEach((number, i) => products.show(i, shortNumber(number), number));
    const apart = query - key;
    words.textContent =
      `Each pair turns at its own speed, the first by one radian for each token. The angle between query and key depends on ` +
      `their distance of ${apart} token${Math.abs(apart) === 1 ? '' : 's'} alone: move both by the same number and query · key stays.`;
  }

  await refresh();
}
