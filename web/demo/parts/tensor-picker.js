// Where a visitor's own tensors come in: a place to drop files, and lists of names for query and key.

import { make } from './dom.js';
import { mismatch, oneHead, sizesOf } from './one-head.js';
import { statusLine } from './status.js';
import { fileEndings, readTensorFile } from './tensor-files.js';
import { addTensors, allTensors, onTensors, tensorNamed } from './tensor-store.js';

/**
 * A query head and the key head that it attends to.
 * @typedef {object} Picked
 * @property {string} name for titles and files
 * @property {import('./one-head.js').Rows} query (L, D)
 * @property {import('./one-head.js').Rows} key (S, D)
 * @property {number} head
 * @property {number} batch
 * @property {readonly string[] | undefined} queryLabels words, where they are known
 * @property {readonly string[] | undefined} keyLabels
 */

/**
 * @param {object} options
 * @param {string} options.section name, for ids
 * @param {(picked: Picked | null) => void} options.onPick called with every change; null where the choice cannot be shown
 * @returns {{ element: HTMLElement, pick: () => void, picked: () => Picked | null }} `pick` calls onPick with what is chosen now
 */
export function tensorPicker({ section, onPick }) {
  const id = (/** @type {string} */ name) => `${section}-file-${name}`;
  const input = make('input', { id: id('input'), type: 'file', multiple: true, accept: fileEndings.join(',') });
  const { element: status, say } = statusLine();
  const chooser = (/** @type {string} */ name, /** @type {string} */ label) => {
    const select = make('select', { id: id(name) });
    select.addEventListener('input', () => pick());
    return { select, field: make('div', { class: 'field' }, make('label', { for: id(name) }, label), select) };
  };
  const query = chooser('query', 'Query');
  const key = chooser('key', 'Key');
  const layout = chooser('layout', 'Order of dimensions');
  const batch = chooser('batch', 'Batch entry');
  const head = chooser('head', 'Query head');
  layout.select.append(
    new Option('batch, heads, tokens, size', 'bhld'),
    new Option('batch, tokens, heads, size', 'blhd'),
  );
  const choices = make(
    'fieldset',
    { class: 'controls', hidden: true },
    make('legend', { class: 'visually-hidden' }, 'Tensors'),
    ...[query, key, layout, batch, head].map(({ field }) => field),
  );
  const drop = make(
    'div',
    { class: 'drop' },
    make('label', { for: id('input') }, 'Your own tensors: drop files here, or choose them'),
    input,
    make('p', { class: 'note' }, `${fileEndings.join(', ')}; read in this page and sent nowhere.`),
  );
  const element = make('div', { class: 'tensors' }, drop, status, choices);
  for (const name of ['dragenter', 'dragover', 'dragleave', 'drop']) {
    drop.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.toggle('over', name === 'dragenter' || name === 'dragover');
    });
  }
  drop.addEventListener('drop', ({ dataTransfer }) => void take(dataTransfer?.files));
  input.addEventListener('input', () => void take(input.files));
  onTensors(fill);
  fill();
  return { element, pick, picked: read };

  /** @param {FileList | null | undefined} files */
  async function take(files) {
    /** @type {string[]} */
    const words = [];
    let isBad = false;
    for (const file of files ?? []) {
      try {
        const { tensors, left } = await readTensorFile(file);
        addTensors(tensors);
        guess(tensors);
        words.push(`${file.name}: ${tensors.length} tensors.`, ...left.map((reason) => `${reason}.`));
        isBad ||= tensors.length === 0;
      } catch (error) {
        isBad = true;
        words.push(error instanceof Error ? error.message : String(error));
      }
    }
    if (words.length === 0) return;
    pick();
    if (isBad || !status.classList.contains('bad')) say(words.join(' '), isBad);
  }

  /** The likeliest of new tensors. @param {readonly import('./tensor-store.js').NamedTensor[]} added */
  function guess(added) {
    for (const [{ select }, pattern] of /** @type {const} */ ([
      [query, /(^|[^a-z])q(uery)?($|[^a-z])/i],
      [key, /(^|[^a-z])k(ey)?($|[^a-z])/i],
    ])) {
      const found = added.find(({ name }) => pattern.test(name));
      if (found) select.value = found.name;
      else if (select.value === '' && added.length > 0) select.value = added[0].name;
    }
  }

  function fill() {
    const all = allTensors();
    choices.hidden = all.length === 0;
    for (const { select } of [query, key]) {
      const chosen = select.value;
      select.replaceChildren(...all.map(({ name, shape }) => new Option(`${name} (${shape.join(' × ')})`, name)));
      if (all.some(({ name }) => name === chosen)) select.value = chosen;
    }
  }

  function pick() {
    onPick(read());
  }

  /** @returns {Picked | null} */
  function read() {
    const [q, k] = [tensorNamed(query.select.value), tensorNamed(key.select.value)];
    if (!q || !k) {
      say('There is no tensor yet.', false);
      return null;
    }
    const order = /** @type {import('./one-head.js').Layout} */ (layout.select.value);
    const wrong = mismatch(q, k, order);
    if (wrong) {
      say(`These cannot be query and key: ${wrong}.`, true);
      return null;
    }
    const [sizes, { heads: keyHeads, length: keys }] = [sizesOf(q, order), sizesOf(k, order)];
    number(batch.select, sizes.batch);
    number(head.select, sizes.heads);
    const [b, h] = [Number(batch.select.value), Number(head.select.value)];
    const keyHead = Math.floor(h / (sizes.heads / keyHeads));
    say(`${sizes.length} queries, ${keys} keys, ${sizes.heads} heads of ${sizes.size} numbers.`, false);
    return {
      name: `${q.name} and ${k.name}`,
      query: oneHead(q, order, b, h),
      key: oneHead(k, order, b, keyHead),
      head: h,
      batch: b,
      queryLabels: q.labels,
      keyLabels: k.labels,
    };
  }
}

/**
 * Choices 0 … count - 1.
 * @param {HTMLSelectElement} select
 * @param {number} count
 */
function number(select, count) {
  if (select.options.length === count) return;
  const chosen = Math.min(count - 1, Math.max(0, Number(select.value)));
  select.replaceChildren(...Array.from({ length: count }, (_, i) => new Option(String(i), String(i))));
  select.value = String(chosen);
  select.disabled = count === 1;
}
