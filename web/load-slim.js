import { loadWith } from './load.js';

/**
 * Options of the slim entry's load().
 * @typedef {import('./load.js').LoadOptions & SlimOptions} SlimLoadOptions
 */

/**
 * What the slim entry's load() takes besides.
 * @typedef {object} SlimOptions
 * @property {import('./source.js').WasmSource} wasm a URL, a path (outside of pages), bytes, a Response or a WebAssembly.Module
 * @property {readonly import('./combine-parts.js').Part[]} [parts] of `sdpa/slim/parts`; none where absent. What a part holds is otherwise an
 *   error, `unsupported`, that names it
 */

/**
 * As `load` of the main entry, without binaries in the JavaScript: `wasm` says where one is. The instance has `attention`, `attentionAsync`,
 * `merge`, `rope`, `sinusoidal`, `alibiSlopes`, `masks` and `tensor`, and of the rest what is in `parts`:
 *
 *     import { load } from 'sdpa/slim';
 *     import { caches, workers } from 'sdpa/slim/parts';
 *     const sdpa = await load({ wasm: '/sdpa.simd.wasm', parts: [caches, workers] });
 *
 * @param {SlimLoadOptions} options
 * @returns {Promise<import('./sdpa.js').Sdpa>}
 * @throws (rejects) `load-failed`, `unsupported`, `version-mismatch`, `out-of-memory`, `option`, `type`, `unknown-option`
 */
export function load(options) {
  return loadWith(null, null, options);
}
