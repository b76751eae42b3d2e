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

/** Parts of this copy of the package: another's do not know this one's tensors and masks, and may be of another version. */
const made = new WeakSet();

/**
 * Methods of an instance that the slim entry has only where it is given them: `caches`, `gradients`, `layers`, `linear`, `weights`; or, in
 * `workers`, the program that workers run. Of `sdpa/slim/parts`.
 * @typedef {object} Part
 * @property {(typeof partOf)[keyof typeof partOf] | 'workers'} name
 * @property {Readonly<Record<string, Function>>} methods
 * @property {string | undefined} workerText
 */

/**
 * @typedef {typeof import('./parts/caches.js').caches.methods & typeof import('./parts/gradients.js').gradients.methods
 *   & typeof import('./parts/layers.js').layers.methods & typeof import('./parts/linear.js').linear.methods
 *   & typeof import('./parts/weights.js').weights.methods} Methods
 */

/**
 * @template {Record<string, Function>} M
 * @param {Part['name']} name
 * @param {M} methods
 * @param {string} [workerText]
 */
export function makePart(name, methods, workerText) {
  const part = Object.freeze({ name, methods, workerText });
  made.add(part);
  return part;
}

/**
 * @param {unknown} given
 * @returns {{ methods: Methods, workerText: string | null }} methods of parts that are not there say so
 * @throws TypeError `type`
 */
export function combineParts(given) {
  if (!Array.isArray(given)) throw badParts(`got ${show(given)}`);
  const parts = Array.from(given);
  const other = parts.findIndex((part) => !made.has(part));
  if (other >= 0) {
    const isLike = typeof parts[other]?.name === 'string' && typeof parts[other].methods === 'object';
    throw badParts(
      isLike
        ? `parts[${other}] is of another copy of the package: take load and parts both by import or both by require, of one version`
        : `parts[${other}] is ${show(parts[other])}`,
    );
  }
  /** @type {Record<string, Function>} */
  const methods = {};
  for (const [method, part] of Object.entries(partOf)) methods[method] = missing(method, part);
  Object.assign(methods, ...parts.map((part) => part.methods));
  const workerText = parts.find((part) => part.workerText !== undefined)?.workerText ?? null;
  return { methods: /** @type {any} */ (methods), workerText };
}

/** @param {string} but */
const badParts = (but) => typeError('type', `parts must be an array of what 'sdpa/slim/parts' exports, but ${but}`);

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
