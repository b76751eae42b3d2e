// load(): choose a build, compile it, test it, and take the next one where that fails.

import { AttentionError, loadError, rangeError, show, typeError } from './errors.js';
import { combineParts } from './combine-parts.js';
import { features } from './features.js';
import { instantiate } from './runtime.js';
import { Sdpa } from './sdpa.js';
import { selfTest } from './self-test.js';
import { compileBytes, compileSource, messageOf } from './source.js';
import { unpackBuild } from './unpack.js';
import { variantOrder } from './variants.js';

/**
 * Options of load().
 * @typedef {object} LoadOptions
 * @property {'auto' | import('./variants.js').Variant} [variant] the build to take; 'auto' takes the fastest that this engine runs
 * @property {import('./source.js').WasmSource} [wasm] a URL, a path (outside of pages), bytes, a Response or a WebAssembly.Module to use
 *   instead of the embedded builds
 * @property {number | 'auto'} [threads] most workers for asynchronous calls, the first of which starts them; 0 = none; 'auto' (also where
 *   absent) = as many as the machine runs at once, at most 8
 * @property {number} [maxMemory] most bytes that the instance may allocate at once (`memory().held`), and each of
 *   its workers; 4 GB where absent
 */

const known = ['variant', 'wasm', 'threads', 'maxMemory'];

/**
 * @param {import('./unpack.js').Embedded | null} embedded
 * @param {readonly import('./combine-parts.js').Part[] | null} all parts; null where the options choose
 * @param {LoadOptions & { parts?: readonly import('./combine-parts.js').Part[] }} [options]
 * @returns {Promise<Sdpa>}
 */
export async function loadWith(embedded, all, options = {}) {
  checkOptions(options, all ? known : [...known, 'parts']);
  const { parts: chosen = [] } = options;
  const { methods, workerText } = combineParts(all ?? chosen);
  const { wasm, maxMemory = Infinity, threads = 'auto' } = options;
  const variants = variantOrder(features(), options);
  /** @param {Pick<import('./pool/station.js').Program, 'module' | 'bytes'>} binary */
  const run = (binary) => start({ ...binary, maxMemory, workerText }, threads, methods);
  if (wasm !== undefined) {
    const sdpa = await run({ module: await compileSource(wasm), bytes: null });
    if (options.variant !== undefined && options.variant !== 'auto' && options.variant !== sdpa.variant) {
      throw rangeError(
        'option',
        `variant is '${options.variant}' but the binary in the option 'wasm' is the ${sdpa.variant} build`,
      );
    }
    return sdpa;
  }
  if (!embedded) {
    throw typeError(
      'type',
      "sdpa/slim carries no wasm binary: give one in the option 'wasm' (the package has them in sdpa/wasm/)",
    );
  }
  /** @type {unknown[]} */
  const failures = [];
  for (const variant of variants) {
    try {
      const bytes = () => unpackBuild(embedded, variant);
      return await run({ module: await compileBytes(bytes(), {}), bytes });
    } catch (error) {
      // Neither depends on the build.
      if (AttentionError.is(error) && (error.code === 'version-mismatch' || error.code === 'out-of-memory'))
        throw error;
      failures.push(error);
    }
  }
  // What the page or the host forbids, it forbids of all builds: said once.
  if (AttentionError.is(failures[0]) && new Set(failures.map(messageOf)).size === 1) throw failures[0];
  const reasons = variants.map((variant, i) => `${variant}: ${messageOf(failures[i])}`).join('; ');
  const cause = failures.length === 1 ? failures[0] : new AggregateError(failures, reasons);
  throw loadError('load-failed', `no wasm build could be loaded: ${reasons}`, { cause });
}

/**
 * @param {import('./pool/station.js').Program} program
 * @param {number | 'auto'} threads
 * @param {import('./combine-parts.js').Methods} methods
 */
async function start(program, threads, methods) {
  let runtime;
  try {
    runtime = await instantiate(program.module, program.maxMemory);
    selfTest(runtime);
  } catch (cause) {
    runtime?.dispose();
    if (AttentionError.is(cause)) throw cause;
    throw loadError('load-failed', `the wasm binary does not start: ${messageOf(cause)}`, { cause });
  }
  return new Sdpa(runtime, program, threads, methods);
}

/**
 * @param {LoadOptions} options
 * @param {readonly string[]} names that there are
 */
function checkOptions(options, names) {
  if (typeof options !== 'object' || options === null) {
    throw typeError('type', `load's options must be an object, got ${show(options)}`);
  }
  for (const name in options) {
    if (!names.includes(name)) {
      throw typeError('unknown-option', `load has no option '${name}'; the options are ${names.join(', ')}`);
    }
  }
  const { threads, maxMemory } = options;
  if (threads !== undefined && threads !== 'auto') {
    if (typeof threads !== 'number')
      throw typeError('type', `threads must be a number or 'auto', got ${show(threads)}`);
    if (!Number.isSafeInteger(threads) || threads < 0) {
      throw rangeError('option', `threads must be a whole number, 0 or more, got ${threads}`);
    }
  }
  if (maxMemory !== undefined) {
    if (typeof maxMemory !== 'number')
      throw typeError('type', `maxMemory must be a number of bytes, got ${show(maxMemory)}`);
    if (!(maxMemory > 0)) throw rangeError('option', `maxMemory must be more than 0 bytes, got ${maxMemory}`);
  }
}
