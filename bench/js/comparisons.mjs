/**
 * What is timed beside a plain call in the same turns: options of attention(), block masks, KV caches,
 * gradients, weights. Each set is one plain call and
 * what it is compared with.
 */

import { caseName, CASES, isDecode, MEMORY_CASE } from './cases.mjs';

/** @typedef {import('./cases.mjs').Case} Case */

/** @typedef {'options' | 'blocks' | 'caches' | 'backward' | 'weights'} Group */

/**
 * @typedef {object} ComparisonSet
 * @property {string} name
 * @property {Group} group
 * @property {Case} case of the plain call; of a cache the call that reads all its tokens
 * @property {readonly string[]} kinds what is compared with it
 */

const CACHE_KINDS = ['float32', 'float16', 'int8', 'paged-256', 'paged-16', 'ring'];

/** The plain one among them. */
export const PLAIN_CACHE = 'float32';

/** @type {readonly ComparisonSet[]} */
export const SETS = [
  set('options', named('bert512'), ['mask', 'bias', 'softcap', 'alibiSlopes', 'sinks', 'dropout']),
  set('options', named('gpt2-1024'), ['alibiSlopes', 'sinks', 'dropout', 'window', 'window+globalKeys']),
  set('options', named('long4k'), ['segmentIds', 'cuSeqlens', 'blockMask']),
  set('blocks', sized('long8k', 1, 1, 8192, 8192, 64), ['128x128', '64x64']),
  set('blocks', named('long4k'), ['causal']),
  set('caches', sized('dec-gpt2-32k', 12, 12, 1, 32768, 64), CACHE_KINDS),
  set('caches', sized('dec-llama-32k', 32, 8, 1, 32768, 128), CACHE_KINDS),
  set('backward', named('gpt2-1024'), ['causal']),
  set('backward', named('llama512'), ['causal']),
  set('weights', MEMORY_CASE, ['pool-512x512']),
];

/**
 * @param {Group} group
 * @param {Case} c
 * @param {readonly string[]} kinds
 * @returns {ComparisonSet}
 */
function set(group, c, kinds) {
  return { name: `${group}/${c.nickname}`, group, case: c, kinds };
}

/** @param {string} nickname @returns {Case} */
function named(nickname) {
  const found = CASES.find((c) => c.nickname === nickname);
  if (!found) throw new Error(`there is no case ${nickname}`);
  return found;
}

/**
 * @param {string} nickname
 * @param {number[]} sizes
 * @returns {Case}
 */
function sized(nickname, ...sizes) {
  const [numHeads, numKvHeads, seqlenQ, seqlenKv, headDim] = sizes;
  return { nickname, option: 'dense', batch: 1, numHeads, numKvHeads, seqlenQ, seqlenKv, headDim };
}

/**
 * @param {ComparisonSet} of
 * @param {string} kind
 * @returns {string} e.g. `attention/options/dense+alibi/B:1/H:12/Hkv:12/Sq:512/Skv:512/D:64`
 */
export function comparisonName({ group, case: c }, kind) {
  const what = group === 'options' || group === 'weights' ? `${c.option}+${kind}` : kind;
  return caseName(c).replace(`${isDecode(c) ? 'decode' : 'prefill'}/${c.option}`, `${group}/${what}`);
}
