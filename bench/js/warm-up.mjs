/** Runs of small problems, before those of large ones. */

import { repeatFor, WARM_UP_MS } from './pace.mjs';
import { Problem } from './problem.mjs';

/**
 * Lets the engine optimise the code that a long case needs without waiting for the whole of it in unoptimised code.
 * @param {import('sdpa').Sdpa} sdpa
 * @param {import('./cases.mjs').Case} c
 */
export function warmUpSmaller(sdpa, c) {
  const { batch, seqlenQ, seqlenKv } = c;
  const smaller = {
    ...c,
    batch: Math.min(batch, 2),
    seqlenQ: Math.min(seqlenQ, 256),
    seqlenKv: Math.min(seqlenKv, 256),
  };
  const problem = new Problem(sdpa, smaller);
  repeatFor(() => problem.run(), WARM_UP_MS);
  problem.dispose();
}
