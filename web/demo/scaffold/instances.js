// The library's instances that all sections share: one for each build and number of threads, loaded when first asked for.

import { load } from 'sdpa';

/** Workers of the sections whose calls are long, where the computer has as many cores. */
export const poolThreads = Math.min(4, Math.max(1, (navigator.hardwareConcurrency || 2) - 1));

/** @type {Map<string, Promise<import('sdpa').Sdpa>>} */
const loaded = new Map();

/**
 * @param {{ variant?: import('sdpa').LoadOptions['variant'], threads?: number }} [options] the fastest build and no workers where
 *   absent. Calls of attention() and the like compute on this thread, those of attentionAsync() on the workers
 * @returns {Promise<import('sdpa').Sdpa>} shared: never dispose of it
 */
export function sharedInstance({ variant = 'auto', threads = 0 } = {}) {
  const name = `${variant} ${threads}`;
  let instance = loaded.get(name);
  if (!instance) {
    instance = load({ variant, threads });
    loaded.set(name, instance);
    // The next one tries again.
    instance.catch(() => loaded.delete(name));
  }
  return instance;
}
