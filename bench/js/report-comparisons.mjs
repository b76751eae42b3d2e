/** Tables of what was timed beside a plain call in the same turns. */

import { code, known, noise, table, variantsOf } from './markdown.mjs';
import { digits, megabytes, percent } from './text.mjs';
import { tilesText } from './text-comparisons.mjs';

/** @typedef {import('./measure-comparisons.mjs').Comparison} Comparison */
/** @typedef {import('./measure-comparisons.mjs').ComparisonTiming} ComparisonTiming */

/**
 * @param {Comparison[] | undefined} results
 * @param {string[]} head first columns
 * @param {(result: Comparison) => string[]} first
 * @param {(timing: ComparisonTiming) => string} cell
 * @param {string} note
 * @returns {string[]} lines; none where nothing was measured
 */
function comparisonTable(results, head, first, cell, note) {
  if (!results?.length) return [];
  const variants = variantsOf(results);
  const rows = results.map((result) => [
    ...first(result),
    ...variants.map((variant) => {
      const timing = result.timings.find((one) => one.variant === variant);
      return timing ? `${cell(timing)}${noise(timing.otherLoad)}` : '–';
    }),
  ]);
  return [...table([...head, ...variants], rows), '', note, ''];
}

/** @param {ComparisonTiming} timing */
const beside = ({ ms, ratio, overIdeal }) =>
  `${digits(ms)} ms, ${digits(ratio)}×${overIdeal === undefined ? '' : ` (${digits(overIdeal)}×)`}`;

/** @param {Comparison} result */
const shareOf = ({ share }) => (share === undefined ? '–' : percent(share));

/**
 * @param {import('./bench.mjs').Results} results
 * @returns {string[]} Markdown lines; none of results from before there were comparisons
 */
export const comparisonTables = ({ comparisons = {} }) => [
  ...comparisonTable(
    comparisons.options,
    ['option', 'cells'],
    (result) => [code(result.name), shareOf(result)],
    beside,
    'Times over that of the same call without what stands behind the plus, in the same turns; in brackets over that of as many cells of it.',
  ),
  ...comparisonTable(
    comparisons.blocks,
    ['block mask', 'tiles of 64 × 64', 'cells'],
    (result) => [code(result.name), result.tiles ? tilesText(result.tiles) : '–', shareOf(result)],
    beside,
    'Times over that of the call without a mask in the same turns, and in brackets over that of as many cells of it.',
  ),
  ...comparisonTable(
    comparisons.caches,
    ['KV cache, one token', 'bytes held'],
    ({ name, held, heldRatio }) => [
      code(name),
      `${held === undefined ? '–' : megabytes(held)}, ${known(heldRatio, '×')}`,
    ],
    ({ ms, ratio, gbps }) => `${digits(ms)} ms, ${digits(ratio)}×, ${known(gbps)} GB/s`,
    'Times and bytes over those of the float32 cache, times in the same turns. GB/s: what the cache holds, query and result once over the time.',
  ),
  ...comparisonTable(
    comparisons.backward,
    ['`attentionBackward`'],
    ({ name }) => [code(name)],
    ({ ms, gflops, speed }) => `${digits(ms)} ms, ${known(gflops)} GFLOP/s, ${percent(speed ?? NaN)} of forward`,
    'Counted as 2.5 forward passes, beside the forward pass of the same turns.',
  ),
  ...comparisonTable(
    comparisons.weights,
    ['`attentionWeights`'],
    ({ name }) => [code(name)],
    ({ ms, ratio, extra }) => `${digits(ms)} ms, ${digits(ratio)}×, ${extra === undefined ? '–' : megabytes(extra)}`,
    'Times over that of attention() in the same turns, and what was allocated at once beside inputs and out.',
  ),
];
