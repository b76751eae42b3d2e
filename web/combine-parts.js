// An instance has attention itself and, in parts, what stands around it: all of them in the default entry, some in the slim one.

import { rangeError, show, typeError } from './errors.js';

/** The part that each method is in. */
const partOf = /** @type {const} */ ({
  attentionWeights: 'weights',
  attentionWeightsAsync: 'weights',
  attentionBackward: 'gradients',
  attentionBackwardAsync: 'gradients',
  gradientCheck: 'gradients',
  createKVCache: 'caches',
  createShardedKVCache: 'caches',
  multiHeadAttention: 'layers',
  windowAttention2d: 'layers',
  windowAttention2dAsync: 'layers',
  linearAttention: 'linear',
  linearAttentionBackward: 'linear',
  gatedLinearAttention: 'linear',
  gatedLinearAttentionBackward: 'linear',
  ssd: 'linear',
  ssdBackward: 'linear',
});

/**
 * Methods of an instance that the slim entry has only where it is given them: `caches`, `gradients`, `layers`, `linear`, `weights`; or, in
 * `workers`, the program that workers run. Of `sdpa/slim/parts`.
 * @typedef {object} Part
 * @property {(typeof partOf)[keyof typeof partOf] | 'workers'} name
 * @property {Readonly<Record<string, Function>>} methods
 * @property {string} [workerText]
 */

/**
 * @typedef {typeof import('./parts/caches.js').caches.methods & typeof import('./parts/gradients.js').gradients.methods
 *   & typeof import('./parts/layers.js').layers.methods & typeof import('./parts/linear.js').linear.methods
 *   & typeof import('./parts/weights.js').weights.methods} Methods
 */

/**
 * @param {unknown} parts
 * @returns {{ methods: Methods, workerText: string | null }} methods of parts that are not there say so
 * @throws TypeError `type`
 */
export function combineParts(parts) {
  if (!Array.isArray(parts) || !parts.every(isPart)) {
    throw typeError('type', `parts must be an array of what 'sdpa/slim/parts' exports, got ${show(parts)}`);
  }
  /** @type {Record<string, Function>} */
  const methods = {};
  for (const [method, part] of Object.entries(partOf)) methods[method] = missing(method, part);
  Object.assign(methods, ...parts.map((part) => part.methods));
  const workerText = parts.find((part) => part.workerText !== undefined)?.workerText ?? null;
  return { methods: /** @type {any} */ (methods), workerText };
}

/** @param {unknown} value @returns {value is Part} */
function isPart(value) {
  const { name, methods } = /** @type {any} */ (value ?? {});
  return typeof name === 'string' && typeof methods === 'object' && methods !== null;
}

/**
 * @param {string} method
 * @param {string} part
 */
function missing(method, part) {
  return () => {
    const error = rangeError(
      'unsupported',
      `${method} is in a part that this instance was loaded without: import { ${part} } from 'sdpa/slim/parts' and say load({ wasm, parts: [${part}] })`,
    );
    if (method.endsWith('Async')) return Promise.reject(error);
    throw error;
  };
}
