// One sentence at a time for screen readers, where a section has no status of its own.

import { byId } from '../parts/dom.js';

/** @param {string} text said once what is being read now has ended */
export function announce(text) {
  const region = byId('announcer');
  // The same text again is no change, and would not be said.
  region.textContent = region.textContent === text ? `${text}\u00a0` : text;
}
