/** Comparisons as lines on the terminal. */

import { digits, megabytes, noise, percent } from './text.mjs';

/** @typedef {import('./measure-comparisons.mjs').Comparison} Comparison */

/** @param {Comparison} result @returns {string} what is known of it, whatever the build */
function about({ nickname, share, tiles, held, heldRatio }) {
  const parts = [nickname];
  if (tiles) parts.push(tilesText(tiles));
  if (share !== undefined) parts.push(`${percent(share)} of the cells`);
  if (held !== undefined) parts.push(`${megabytes(held)} held, ${digits(heldRatio ?? NaN)} × float32`);
  return parts.join('; ');
}

/** @param {NonNullable<Comparison['tiles']>} tiles @returns {string} */
export const tilesText = ({ full, partial, skipped }) => `${full} full, ${partial} partial, ${skipped} skipped tiles`;

/** @param {Comparison} result @returns {string} */
export const comparisonText = (result) =>
  [
    `${result.name}  (${about(result)})`,
    ...result.timings.map(({ variant, ms, plain, ratio, overIdeal, gbps, gflops, speed, extra, otherLoad }) => {
      const parts = [`${digits(ms)} ms against ${digits(plain)} ms: ${digits(ratio)} ×`];
      if (overIdeal !== undefined) parts.push(`${digits(overIdeal)} × the time of as many cells`);
      if (gbps !== undefined) parts.push(`${digits(gbps)} GB/s`);
      if (gflops !== undefined) parts.push(`${digits(gflops)} GFLOP/s, ${percent(speed ?? NaN)} of the forward pass`);
      if (extra !== undefined) parts.push(`${megabytes(extra)} beside inputs and the plain result`);
      return `  ${variant.padEnd(8)}${parts.join(', ')}${noise(otherLoad)}`;
    }),
  ].join('\n');
