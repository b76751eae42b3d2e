import { loadWith } from './load.js';

/**
 * As `load` of the main entry, without binaries in the JavaScript: `wasm` says where one is.
 * @param {import('./load.js').LoadOptions & { wasm: import('./source.js').WasmSource }} options
 * @returns {Promise<import('./sdpa.js').Sdpa>}
 */
export function load(options) {
  return loadWith(null, options);
}
