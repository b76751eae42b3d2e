// A line that says how things stand, also to screen readers.

import { make } from './dom.js';

/** @returns {{ element: HTMLElement, say: (text: string, isBad?: boolean) => void }} */
export function statusLine() {
  const element = make('p', { class: 'status', role: 'status' });
  const say = (/** @type {string} */ text, isBad = false) => {
    element.textContent = text;
    element.classList.toggle('bad', isBad);
  };
  return { element, say };
}
