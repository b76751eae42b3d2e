// The runs so far, and which of them gave the same bits.

import { make } from '../../parts/dom.js';
import { durationText, short, whole } from '../../parts/format.js';

/**
 * @typedef {object} Entry
 * @property {import('./run.js').Setting} setting
 * @property {import('./run.js').Outcome} outcome
 */

/**
 * @param {readonly Entry[]} entries
 * @returns {HTMLTableRowElement[]} the latest first
 */
export function ledgerRows(entries) {
  return entries
    .map((entry, index) => {
      const { setting, outcome } = entry;
      // Of the same problem by the same build, whatever the threads.
      const first = entries.findIndex(
        (other) =>
          other.setting.tokens === setting.tokens &&
          other.setting.causal === setting.causal &&
          other.outcome.build === outcome.build,
      );
      const note =
        first === index
          ? ''
          : entries[first].outcome.hash === outcome.hash
            ? `= run ${first + 1}`
            : `≠ run ${first + 1}`;
      const cells = [
        String(index + 1),
        `${whole(setting.tokens)}${setting.causal ? ', causal' : ''}`,
        outcome.build,
        String(setting.threads),
        durationText(outcome.milliseconds),
        short(outcome.gflops),
      ];
      const row = make('tr', {}, ...cells.map((text) => make('td', {}, text)));
      row.append(
        make(
          'td',
          { class: 'bits', 'data-hash': outcome.hash },
          make('code', {}, outcome.hash.slice(0, 8)),
          ` ${note}`,
        ),
      );
      return row;
    })
    .reverse();
}
