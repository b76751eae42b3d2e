// The lines of code that produce a section, with a button that copies them.

import { copyText, flash } from '../parts/copy.js';
import { make } from '../parts/dom.js';

/**
 * @param {string} name of the section
 * @param {string} title of the section
 * @returns {{ element: HTMLElement, show: (code: string) => void }}
 */
export function codeBlock(name, title) {
  const id = `${name}-code-title`;
  const code = make('code', { id: `${name}-code` });
  const copy = make('button', { type: 'button', class: 'quiet', 'aria-label': `Copy the code of ${title}` }, 'Copy');
  copy.addEventListener('click', async () => {
    const done = await copyText(code.textContent ?? '');
    // No clipboard on this page: the selection is one key away from it.
    if (!done) getSelection()?.selectAllChildren(code);
    flash(copy, done ? 'Copied' : 'Selected');
  });
  const element = make(
    'div',
    { class: 'code', hidden: true },
    make('div', { class: 'title-row' }, make('h3', { id }, 'The code'), copy),
    make('pre', { tabindex: 0, 'aria-labelledby': id, role: 'group' }, code),
  );
  const show = (/** @type {string} */ text) => {
    // An element for each line: a long one goes on below itself, moved in.
    const lines = text.trim().split('\n');
    code.replaceChildren(
      ...lines.map((line, i) => make('span', { class: 'line' }, i < lines.length - 1 ? `${line}\n` : line)),
    );
    element.hidden = false;
  };
  return { element, show };
}
