// Sentence: words with their weights, as lines and as a matrix.

import { controls } from '../../parts/controls.js';
import { make } from '../../parts/dom.js';
import { shortNumber } from '../../parts/format.js';
import { HeatMap } from '../../parts/heat-map.js';
import { statusLine } from '../../parts/status.js';
import { tensorPicker } from '../../parts/tensor-picker.js';
import { onTensors } from '../../parts/tensor-store.js';
import { poolThreads } from '../../scaffold/instances.js';
import { codeFor } from './code.js';
import { makeLines } from './lines.js';
import { crossed, handedOver, ownSentence, sourceWords, wordsOf } from './sources.js';
import { decodedRows, fromRows, mostWords, promptLength, wholeWeights } from './weights.js';

/** @satisfies {Record<string, import('../../parts/controls.js').Spec>} */
const specs = {
  source: {
    kind: 'choice',
    label: 'Words',
    initial: 'self',
    options: [
      ['self', 'a trained head’s sentence'],
      ['cross', 'cross-attention'],
      ['decode', 'decoding, token by token'],
      ['file', 'your own tensors'],
    ],
  },
  query: { kind: 'range', label: 'Which query', min: 0, max: mostWords - 1, initial: 8 },
  tokens: {
    kind: 'range',
    label: 'Tokens so far',
    min: promptLength,
    max: 12,
    initial: promptLength,
  },
  causal: { kind: 'switch', label: 'Causal', initial: true },
};

/**
 * @param {HTMLElement} root
 * @param {import('../../scaffold/sections.js').SectionContext} context
 */
export async function mount(root, context) {
  const [own, pool] = [await context.instance(), await context.instance({ threads: poolThreads })];
  const form = controls(specs, context.state, () => void refresh());
  const picker = tensorPicker({
    section: 'sentence',
    onPick: () => (form.values.source === 'file' ? void refresh() : form.set({ source: 'file' })),
  });
  const area = (/** @type {string} */ name, /** @type {string} */ label) => {
    const id = `sentence-${name}-words`;
    const input = make('textarea', { id, rows: 2, spellcheck: 'false', oninput: () => void refresh() });
    return { input, field: make('div', { class: 'field text' }, make('label', { for: id }, label), input) };
  };
  const queryText = area('query', 'Words of the queries');
  const keyText = area('key', 'Words of the keys');
  const texts = make('div', { class: 'texts' }, queryText.field, keyText.field);
  const nextToken = make(
    'button',
    { type: 'button', onclick: () => form.set({ tokens: form.values.tokens + 1 }) },
    'Next token',
  );
  const { element: status, say } = statusLine();
  const about = make('p', { class: 'note about' });
  const lines = makeLines((query) => form.set({ query }));
  const map = new HeatMap({
    label: 'Weights, each row a query',
    file: 'sentence-weights',
    rowName: (i) => `query ${i}, ${words.query[i]}`,
    columnName: (j) => `key ${j}, ${words.key[j]}`,
    rowTick: (i) => words.query[i] ?? '',
    columnTick: (j) => words.key[j] ?? '',
  });
  root.append(
    make(
      'div',
      { class: 'card' },
      form.element,
      make('div', { class: 'buttons' }, nextToken),
      picker.element,
      texts,
      about,
      status,
    ),
    make(
      'div',
      { class: 'two' },
      make('div', {}, make('h3', {}, 'As lines'), lines.element),
      make('div', {}, make('h3', {}, 'As a matrix'), map.element),
    ),
  );

  let words = { query: /** @type {readonly string[]} */ ([]), key: /** @type {readonly string[]} */ ([]) };
  /** @type {AbortController | null} */
  let running = null;
  /** @type {Float32Array[]} */
  let decoded = [];

  /** @param {AbortSignal} signal @returns {Promise<import('./sources.js').Sentence>} */
  async function sentence(signal) {
    const { source, causal } = form.values;
    if (source === 'decode') return ownSentence(own, 'previous', signal);
    if (source === 'self') return handedOver() ?? ownSentence(own, 'match', signal);
    if (source === 'cross') return crossed(await ownSentence(own, 'match', signal));
    const picked = picker.picked();
    if (!picked) throw new Error('Choose a file with a query and a key.');
    const { query, key, queryLabels, keyLabels } = picked;
    return {
      query,
      key,
      queryWords: wordsOf(queryText.input.value, query.shape[0], 'queries', queryLabels),
      keyWords: wordsOf(keyText.input.value, key.shape[0], 'keys', keyLabels),
      causal,
      offset: key.shape[0] - query.shape[0],
    };
  }

  async function refresh() {
    running?.abort();
    const controller = new AbortController();
    running = controller;
    const { signal } = controller;
    const { source, tokens } = form.values;
    nextToken.hidden = source !== 'decode';
    nextToken.disabled = tokens >= specs.tokens.max;
    picker.element.hidden = texts.hidden = source !== 'file';
    about.textContent = sourceWords[source];
    form.offer('tokens', source === 'decode');
    form.offer('query', source !== 'decode');
    form.offer('causal', source === 'file');
    try {
      const given = await sentence(signal);
      signal.throwIfAborted();
      if (source === 'decode') decoded = decodedRows(own, given, tokens, decoded);
      const shown = source === 'decode' ? fromRows(decoded) : await wholeWeights(pool, given, signal);
      signal.throwIfAborted();
      show(given, shown);
    } catch (error) {
      if (running !== controller) return;
      say(error instanceof Error ? error.message : String(error), true);
    }
  }

  /** @param {import('./sources.js').Sentence} given @param {import('./weights.js').Shown} shown */
  function show({ query: { shape }, queryWords, keyWords, causal }, shown) {
    words = { query: queryWords, key: keyWords };
    const last = shown.rows - 1;
    // While decoding, the newest token is the one that looks.
    const query = form.values.source === 'decode' ? last : Math.min(form.values.query, last);
    form.inputs.query.setAttribute('max', String(last));
    map.show({ ...shown, range: [0, 1] });
    map.focusCell(query, map.focus.column);
    lines.show(shown, queryWords, keyWords, query);
    context.showCode(codeFor({ queries: shape[0], keys: keyWords.length, size: shape[1], causal, query }));
    const row = Array.from(shown.values.subarray(query * shown.columns, (query + 1) * shown.columns));
    const order = row.map((_, j) => j).sort((a, b) => row[b] - row[a]);
    const looks = order
      .filter((j) => row[j] > 0)
      .slice(0, 3)
      .map((j) => `“${keyWords[j]}” ${shortNumber(row[j])}`);
    const cut =
      Math.max(shape[0], keyWords.length) > mostWords
        ? ` The first ${mostWords} are shown; the map explorer has all.`
        : '';
    say(`“${queryWords[query]}” looks at ${looks.join(', ') || 'nothing'}.${cut}`);
    root.dataset.drawn = `${form.values.source} ${shown.rows} ${shown.columns} ${query}`;
  }

  onTensors(() => {
    if (form.values.source === 'self') void refresh();
  });
  await refresh();
}
