import { embedded } from './generated/embedded.js';
import { loadWith } from './load.js';
import * as parts from './parts/index.js';

/**
 * Loads the fastest build that this engine runs, out of the three that the package carries inside its JavaScript. Each call gives an
 * independent instance.
 * @param {import('./load.js').LoadOptions} [options]
 * @returns {Promise<import('./sdpa.js').Sdpa>}
 * @throws (rejects) `load-failed`, `unsupported`, `version-mismatch`, `out-of-memory`, `option`, `type`, `unknown-option`
 */
export function load(options) {
  return loadWith(embedded, Object.values(parts), options);
}
