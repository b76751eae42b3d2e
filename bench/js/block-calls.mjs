/** Calls of attention() with block masks, beside the same call without. */

import { Problem } from './problem.mjs';
import { besidePlain } from './subject.mjs';

/** @typedef {import('./cases.mjs').Case} Case */
/** @typedef {import('sdpa').BlockMask} BlockMask */
/** @typedef {import('sdpa').Sdpa} Sdpa */

/** Share of the blocks that a random mask keeps. */
const DENSITY = 0.1;

/**
 * @param {Sdpa} sdpa
 * @param {Case} c
 * @param {readonly string[]} kinds
 * @returns {import('./subject.mjs').Subject}
 */
export const blockCalls = (sdpa, c, kinds) =>
  besidePlain(
    sdpa,
    c,
    kinds.map((kind) => {
      const blockMask = makeMask(sdpa, c.seqlenQ, kind);
      const rowOptions = (/** @type {number} */ _, /** @type {number} */ i) => ({ blockMask: cellsOf(blockMask, i) });
      const tiles = sdpa.masks.stats(blockMask);
      const problem = new Problem(sdpa, c, { options: { blockMask }, rowOptions });
      return { kind, problem, tiles, share: tiles.density };
    }),
  );

/**
 * @param {Sdpa} sdpa
 * @param {number} length
 * @param {string} kind `causal`, or the size of blocks, of which each row of blocks keeps its own and as many at random as each other
 */
function makeMask({ masks }, length, kind) {
  if (kind === 'causal') return masks.causal(length);
  const [, size] = /^(\d+)x\1$/.exec(kind) ?? [];
  if (size === undefined) throw new Error(`there is no block mask ${kind}`);
  const blockSize = Number(size);
  const randomBlocks = Math.round((DENSITY * length) / blockSize) - 1;
  return masks.bigbird(length, { blockSize, window: 1, randomBlocks, globalBlocks: 0, seed: 1 });
}

/** @param {BlockMask} mask @param {number} i row @returns its cells as a mask of one row */
const cellsOf = (mask, i) => ({
  data: Uint8Array.from({ length: mask.columns }, (_, j) => (mask.allows(i, j) ? 1 : 0)),
  shape: [1, mask.columns],
});
