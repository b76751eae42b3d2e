/** One token's query over KV caches of every kind, beside the plain float32 one, within an instance of their own. */

import { load } from 'sdpa';
import { randomSource } from '../../tests/js/helpers/reference.mjs';
import { PLAIN_CACHE } from './comparisons.mjs';
import { QUERY_SEED, StoredTokens, tokenChunks } from './stored-tokens.mjs';

/** @typedef {import('./cases.mjs').Case} Case */
/** @typedef {import('sdpa').KVCache} KVCache */

/** Tokens that are appended at once. */
const CHUNK = 1024;

/** Tokens that a ring has lost, so that its oldest one is not in its first place; no multiple of a tile. */
const LOST = 1000;

/**
 * @param {string} kind
 * @param {number} tokens
 * @returns {Partial<import('sdpa').KVCacheOptions>}
 */
function optionsOf(kind, tokens) {
  const [name, pageSize] = kind.split('-');
  switch (name) {
    case 'float32':
    case 'float16':
    case 'int8':
      return { dtype: name, capacity: tokens, fixed: true };
    case 'paged':
      return { pageSize: Number(pageSize), capacity: tokens, fixed: true };
    case 'ring':
      return { window: tokens };
    default:
      throw new Error(`there is no cache ${kind}`);
  }
}

/**
 * @param {import('sdpa').Sdpa} sdpa the build
 * @param {Case} c
 * @param {readonly string[]} kinds
 * @returns {Promise<import('./subject.mjs').Subject>} disposing of it gives the memory back
 */
export async function cacheCalls({ variant }, c, kinds) {
  // The plain one is last, as it takes longest.
  const all = [...kinds.filter((kind) => kind !== PLAIN_CACHE), PLAIN_CACHE];
  const sdpa = await load({ variant });
  const { numHeads, numKvHeads, seqlenKv, headDim } = c;
  try {
    const caches = all.map((kind) =>
      sdpa.createKVCache({ batch: 1, numKvHeads, headDim, ...optionsOf(kind, seqlenKv) }),
    );
    appendTokens(c, caches, 0, seqlenKv);
    const ring = caches[all.indexOf('ring')];
    if (ring) appendTokens(c, [ring], seqlenKv, LOST);
    const query = sdpa.tensor([1, numHeads, 1, headDim]);
    const out = sdpa.tensor(query.shape);
    query.data.set(randomSource(QUERY_SEED).tensor(...query.shape).data);
    const stored = new StoredTokens(c, /** @type {Float32Array} */ (query.data).slice());
    const calls = caches.map((cache) => () => void cache.attend(query, { out }));
    return {
      calls: Object.fromEntries(all.map((kind, i) => [kind, calls[i]])),
      facts: Object.fromEntries(
        all.map((kind, i) => {
          calls[i]();
          const { dtype = 'float32' } = optionsOf(kind, seqlenKv);
          const error = stored.check(dtype, kind === 'ring' ? LOST : 0, /** @type {Float32Array} */ (out.data));
          const held = caches[i].byteLength;
          return [kind, { error, held, bytes: held + query.data.byteLength + out.data.byteLength }];
        }),
      ),
      dispose: () => sdpa.dispose(),
    };
  } catch (error) {
    sdpa.dispose();
    throw error;
  }
}

/**
 * @param {Case} c
 * @param {KVCache[]} caches
 * @param {number} first
 * @param {number} count
 */
function appendTokens(c, caches, first, count) {
  for (const { key, value } of tokenChunks(c, first, count, CHUNK)) {
    for (const cache of caches) cache.append(key, value, { layout: 'blhd' });
  }
}
