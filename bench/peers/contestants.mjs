/** Who takes part, and how each is made to compute a shape. Runs in Node and in the browser. */

import { prepareJax } from './libraries/jax.mjs';
import { offers, prepareOnnxruntime, WAYS } from './libraries/onnxruntime.mjs';
import { prepareSdpa } from './libraries/sdpa.mjs';
import { prepareTfjs } from './libraries/tfjs.mjs';
import { naiveAttention, tiledAttention } from './plain-attention.mjs';

/** @typedef {import('../js/cases.mjs').Case} Case */
/** @typedef {import('./inputs.mjs').Inputs} Inputs */

/**
 * @typedef {object} Task
 * @property {() => any} run one call: what is timed; may return a promise
 * @property {(raw: any) => Float32Array} result what a call returned as (B, H, L, D)
 */

/** @typedef {'sdpa' | 'onnxruntime-web' | 'onnxruntime-node' | '@tensorflow/tfjs-backend-wasm' | '@jax-js/jax' | 'plain JavaScript'} Library */

/**
 * @typedef {object} Contestant
 * @property {string} id
 * @property {Library} library contestants of one peer are its ways: the fastest counts
 * @property {string} way
 * @property {boolean} [optional] only where asked for by name
 * @property {(c: Case) => boolean} [offers] false where it is no question of that shape
 * @property {(importLibrary: ImportLibrary, c: Case, inputs: Inputs) => Promise<Task>} prepare
 */

/** @typedef {(name: Library) => Promise<any>} ImportLibrary loads a library as its host can, on one thread */

/**
 * @param {'simd' | 'relaxed' | 'scalar'} variant
 * @param {object} [how]
 * @param {boolean} [how.resident]
 * @param {boolean} [how.optional]
 * @returns {Contestant}
 */
const sdpa = (variant, { resident = false, optional = false } = {}) => ({
  id: `sdpa-${variant}${resident ? '-resident' : ''}`,
  library: 'sdpa',
  way: `${variant}${resident ? ', all resident' : ''}`,
  optional,
  prepare: async (importLibrary, c, inputs) => prepareSdpa(await importLibrary('sdpa'), variant, resident, c, inputs),
});

/**
 * @param {'onnxruntime-web' | 'onnxruntime-node'} library
 * @param {object} sessionOptions
 * @returns {Contestant[]}
 */
const onnxruntime = (library, sessionOptions) =>
  WAYS.map((way) => ({
    id: `${library}-${way}`,
    library,
    way,
    offers: (c) => offers(way, c),
    prepare: async (importLibrary, c, inputs) =>
      prepareOnnxruntime(await importLibrary(library), sessionOptions, way, c, inputs),
  }));

/**
 * @param {string} way
 * @param {typeof naiveAttention} attention
 * @returns {Contestant}
 */
const plain = (way, attention) => ({
  id: `plain-${way}`,
  library: 'plain JavaScript',
  way,
  prepare: async (_, c, inputs) => ({ run: () => attention(c, inputs), result: (out) => out }),
});

/** Those of JavaScript engines, on one thread each. @type {readonly Contestant[]} */
export const CONTESTANTS = [
  sdpa('simd'),
  sdpa('relaxed'),
  sdpa('scalar', { optional: true }),
  sdpa('simd', { resident: true, optional: true }),
  sdpa('relaxed', { resident: true, optional: true }),
  ...onnxruntime('onnxruntime-web', { executionProviders: ['wasm'] }),
  {
    id: 'tfjs',
    library: '@tensorflow/tfjs-backend-wasm',
    way: 'head by head',
    prepare: async (importLibrary, c, inputs) =>
      prepareTfjs(await importLibrary('@tensorflow/tfjs-backend-wasm'), c, inputs),
  },
  {
    id: 'jax-js',
    library: '@jax-js/jax',
    way: 'dotProductAttention',
    prepare: async (importLibrary, c, inputs) => prepareJax(await importLibrary('@jax-js/jax'), c, inputs),
  },
  plain('naive', naiveAttention),
  plain('tiled', tiledAttention),
];

/** Those beside the native kernels. @type {readonly Contestant[]} */
export const NATIVE_CONTESTANTS = onnxruntime('onnxruntime-node', {
  executionProviders: ['cpu'],
  intraOpNumThreads: 1,
  interOpNumThreads: 1,
});

/** @param {string} id @returns {Contestant} */
export function contestantCalled(id) {
  const found = [...CONTESTANTS, ...NATIVE_CONTESTANTS].find((one) => one.id === id);
  if (!found) throw new Error(`there is no contestant ${id}`);
  return found;
}
