// A few numbers, large.

import { make } from './dom.js';

/**
 * @param {readonly string[]} names
 * @param {{ hasNotes?: boolean }} [options] whether each has a line of words below it
 * @returns {{ element: HTMLElement, show: (k: number, text: string, value: number, note?: string) => void }} `show` sets the k-th: how it
 *   is written, and exactly
 */
export function figures(names, { hasNotes = false } = {}) {
  const all = names.map((name) => ({
    output: make('output', { 'data-figure': name }),
    note: make('dd', { class: 'note' }),
  }));
  const element = make(
    'dl',
    { class: 'figures' },
    ...all.map(({ output, note }, k) =>
      make('div', {}, make('dt', {}, names[k]), make('dd', {}, output), ...(hasNotes ? [note] : [])),
    ),
  );
  const show = (/** @type {number} */ k, /** @type {string} */ text, /** @type {number} */ value, words = '') => {
    const { output, note } = all[k];
    output.textContent = text;
    output.dataset.value = String(value);
    note.textContent = words;
  };
  return { element, show };
}
