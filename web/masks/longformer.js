// Longformer (Beltagy et al. 2020): a sliding window, and tokens that see everything and are seen by everyone.

import { readNamed } from '../named-options.js';
import { flag } from '../option-values.js';
import { readSize, wholeNumber, wholeNumbers } from './arguments.js';
import { fromSpans } from './spans.js';

/**
 * Options of longformer().
 * @typedef {object} LongformerOptions
 * @property {number} window tokens on each side that a query sees besides itself
 * @property {readonly number[] | Int32Array} [globalTokens] indices of the tokens that see all and are seen by all;
 *   none where absent
 * @property {boolean} [causal] leaves the keys up to the query's own position alone
 */

/**
 * |i - j| <= window, or i or j is a global token; with `causal` also j <= i.
 * @param {number} length of the sequence, L = S
 * @param {LongformerOptions} options
 * @returns {import('./block-mask.js').BlockMask}
 * @throws TypeError or RangeError with a `code`
 */
export function longformer(length, options) {
  const size = readSize('longformer length', length);
  const fields = readNamed('longformer', options, ['window', 'globalTokens', 'causal']);
  const reach = wholeNumber('longformer window', fields.window, 0, Number.MAX_SAFE_INTEGER);
  const tokens = wholeNumbers('longformer globalTokens', fields.globalTokens ?? [], 0, size - 1).sort();
  const isCausal = flag('longformer causal', fields.causal ?? false);
  const isGlobal = new Uint8Array(size);
  for (const token of tokens) isGlobal[token] = 1;
  // Runs of neighbouring global tokens.
  const starts = tokens.filter((token) => token === 0 || !isGlobal[token - 1]);
  const ends = starts.map((start) => {
    let end = start;
    while (end < size && isGlobal[end]) end++;
    return end;
  });
  return fromSpans({ rows: size, columns: size, batch: 1, heads: 1 }, (spans, i) => {
    const end = isCausal ? i + 1 : size;
    if (isGlobal[i]) {
      spans.add(0, end);
      return;
    }
    const from = i - reach;
    let k = 0;
    for (; k < starts.length && starts[k] < from; k++) spans.add(starts[k], Math.min(ends[k], end));
    spans.add(from, Math.min(i + reach + 1, end));
    for (; k < starts.length && starts[k] < end; k++) spans.add(starts[k], Math.min(ends[k], end));
  });
}
