/** Medians of calls that were timed together, as the results file has them. */

import { flops as flopsOf } from './cases.mjs';
import { comparisonName, PLAIN_CACHE } from './comparisons.mjs';
import { otherLoad } from './pace.mjs';
import { median } from './statistics.mjs';

/** @typedef {import('./comparisons.mjs').ComparisonSet} ComparisonSet */
/** @typedef {import('./comparisons.mjs').Group} Group */
/** @typedef {import('./process.mjs').BenchProcess} BenchProcess */

/**
 * @typedef {object} ComparisonTiming of one build
 * @property {import('sdpa').Variant} variant
 * @property {number} ms a call
 * @property {number} plain ms of the plain call, a cache's the float32 one
 * @property {number} ratio median of the turns' times over the plain call's
 * @property {number} [overIdeal] the ratio over the share of the cells: time over that of the same cells in the plain call
 * @property {number} [gbps] of a cache: what has to be read and written over the time, in 10^9 bytes a second
 * @property {number} [gflops] of a backward pass, which counts as 2.5 forward passes
 * @property {number} [speed] its GFLOP/s over those of the forward pass, median of the turns
 * @property {number} [extra] bytes that were allocated at once beside inputs and the plain call's result
 * @property {number} error largest error of what was checked: absolute, of gradients and pooled weights as a share of the largest
 * @property {number} otherLoad share of the machine's processors that other processes used meanwhile
 */

/**
 * @typedef {object} Comparison
 * @property {string} name
 * @property {string} nickname of the plain call
 * @property {number} [share] of the plain call's cells, where they are fewer
 * @property {import('./subject.mjs').Facts['tiles']} [tiles] of a block mask
 * @property {number} [held] bytes that a cache holds
 * @property {number} [heldRatio] over those of the float32 cache
 * @property {ComparisonTiming[]} timings
 */

/** @typedef {Partial<Record<Group, Comparison[]>>} Comparisons */

/**
 * @param {ComparisonSet} set
 * @param {readonly string[]} kinds those of the set that are asked for
 * @param {readonly BenchProcess[]} builds at least one
 * @param {number} turns
 * @returns {Promise<Comparison[]>} one for each kind
 */
export async function measureComparisons(set, kinds, builds, turns) {
  const plain = set.group === 'caches' ? PLAIN_CACHE : 'plain';
  const found = [];
  for (const build of builds) {
    const answer = await build.ask('together', { set: set.name, kinds, turns });
    found.push({ variant: build.variant, ...answer });
  }
  return kinds.map((kind) => {
    const { share, tiles, held } = found[0].facts[kind];
    return {
      name: comparisonName(set, kind),
      nickname: set.case.nickname,
      share,
      tiles,
      held,
      ...(held !== undefined && { heldRatio: held / (found[0].facts[plain].held ?? NaN) }),
      timings: found.map(({ variant, facts, turns: all, load }) => {
        const ms = median(all.map((turn) => turn[kind]));
        const ratio = median(all.map((turn) => turn[kind] / turn[plain]));
        const { error, bytes, flops, extra } = facts[kind];
        return {
          variant,
          ms,
          plain: median(all.map((turn) => turn[plain])),
          ratio,
          ...(share !== undefined && { overIdeal: ratio / share }),
          ...(bytes !== undefined && { gbps: bytes / ms / 1e6 }),
          ...(flops !== undefined && { gflops: flops / ms / 1e6, speed: flops / flopsOf(set.case) / ratio }),
          ...(extra !== undefined && { extra }),
          error,
          otherLoad: otherLoad([load]),
        };
      }),
    };
  });
}
