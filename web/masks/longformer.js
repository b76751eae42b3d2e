// Longformer (Beltagy et al. 2020): a sliding window, with gaps where it is dilated, and tokens that see everything and are seen by
// everyone.

import { readNamed } from '../named-options.js';
import { flag } from '../option-values.js';
import { mostCells, readSize, wholeNumber, wholeNumbers } from './arguments.js';
import { addBoth, GlobalTokens, near } from './span-lists.js';
import { fromSpans } from './spans.js';

/**
 * Options of longformer().
 * @typedef {object} LongformerOptions
 * @property {number} window keys on each side that a query sees besides itself
 * @property {number | readonly number[] | Int32Array} [dilation] from one key of the window to the next, in tokens; 1 where absent. A list
 *   has one number for each head, and makes a mask of as many heads
 * @property {readonly number[] | Int32Array} [globalTokens] indices of the tokens that see all and are seen by all;
 *   none where absent
 * @property {boolean} [causal] leaves the keys up to the query's own position alone
 */

/**
 * i - j is a multiple of dilation and |i - j| <= window·dilation, or i or j is a global token; with `causal` also j <= i.
 * @param {number} length of the sequence, L = S
 * @param {LongformerOptions} options
 * @returns {import('./block-mask.js').BlockMask}
 * @throws TypeError or RangeError with a `code`
 */
export function longformer(length, options) {
  const size = readSize('longformer length', length);
  const fields = readNamed('longformer', options, ['window', 'dilation', 'globalTokens', 'causal']);
  const reach = wholeNumber('longformer window', fields.window, 0, Number.MAX_SAFE_INTEGER);
  const dilations = readDilations(fields.dilation ?? 1);
  const globals = new GlobalTokens('longformer globalTokens', fields.globalTokens, size);
  const isCausal = flag('longformer causal', fields.causal ?? false);
  return fromSpans({ rows: size, columns: size, batch: 1, heads: dilations.length }, (spans, i, _, h) => {
    const end = isCausal ? i + 1 : size;
    if (globals.has(i)) spans.add(0, end);
    else addBoth(spans, near(i, reach, reach, dilations[h], end), globals.spans, end);
  });
}

/** @param {any} given */
function readDilations(given) {
  if (typeof given === 'number') return [wholeNumber('longformer dilation', given, 1, mostCells)];
  const dilations = wholeNumbers('longformer dilation', given, 1, mostCells);
  // One number at least: no heads is no mask.
  if (dilations.length === 0) wholeNumber('longformer dilation: its length', 0, 1, mostCells);
  return dilations;
}
