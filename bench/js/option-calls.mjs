/** Calls of attention() with one option more, beside the plain call. */

import { pairs, WINDOW_LEFT } from './cases.mjs';
import { Problem } from './problem.mjs';
import { besidePlain } from './subject.mjs';

/** @typedef {import('./cases.mjs').Case} Case */
/** @typedef {import('./problem.mjs').Extra} Extra */
/** @typedef {import('sdpa').Sdpa} Sdpa */

/** Share of the weights that are dropped. */
const DROPOUT = 0.1;

/** First keys that stay visible under a window: as many as StreamingLLM takes. */
const GLOBAL_KEYS = 4;

/** Tokens of the documents that are packed into 4096: about 512 each, and none begins with a tile but the first. */
const DOCUMENTS = [385, 641, 511, 450, 575, 520, 498, 516];

/**
 * @param {Sdpa} sdpa
 * @param {Case} c
 * @param {readonly string[]} kinds
 * @returns {import('./subject.mjs').Subject}
 */
export const optionCalls = (sdpa, c, kinds) =>
  besidePlain(
    sdpa,
    c,
    kinds.map((kind) => ({ kind, ...withOption(sdpa, c, kind) })),
  );

/**
 * @param {Sdpa} sdpa
 * @param {Case} c
 * @param {string} kind
 * @returns {{ problem: Problem, share?: number }}
 */
function withOption(sdpa, c, kind) {
  const { numHeads } = c;
  /** @param {Extra['options']} options @param {Extra['rowOptions']} [rowOptions] */
  const plus = (options, rowOptions = () => ({})) => new Problem(sdpa, c, { options, rowOptions });
  switch (kind) {
    case 'mask':
    case 'bias':
    case 'softcap':
      return { problem: new Problem(sdpa, { ...c, option: kind }) };
    case 'window':
      return { problem: new Problem(sdpa, { ...c, option: kind }), share: windowShare(c, 0) };
    case 'window+globalKeys': {
      const options = { globalKeys: GLOBAL_KEYS };
      const problem = new Problem(sdpa, { ...c, option: 'window' }, { options, rowOptions: () => options });
      return { problem, share: windowShare(c, GLOBAL_KEYS) };
    }
    case 'alibiSlopes': {
      const alibiSlopes = sdpa.alibiSlopes(numHeads);
      return { problem: plus({ alibiSlopes }, (h) => ({ alibiSlopes: [alibiSlopes[h]] })) };
    }
    case 'sinks': {
      const sinks = Float32Array.from({ length: numHeads }, (_, h) => Math.sin(h));
      return { problem: plus({ sinks }, (h) => ({ sinks: [sinks[h]] })) };
    }
    case 'dropout':
      return { problem: plus({ dropout: { p: DROPOUT, seed: 1 } }) };
    case 'segmentIds':
    case 'cuSeqlens':
    case 'blockMask': {
      const { options, ids, share } = documents(sdpa, c);
      const segments = (/** @type {number} */ i) => ({ segmentIds: { query: [ids[i]], key: ids } });
      return { problem: plus({ [kind]: options[kind] }, (_, i) => segments(i)), share };
    }
    default:
      throw new Error(`there is no option ${kind}`);
  }
}

/**
 * The same documents by each of the options that can say it.
 * @param {Sdpa} sdpa
 * @param {Case} c
 */
function documents(sdpa, { seqlenQ }) {
  const starts = Int32Array.from([0, ...DOCUMENTS]);
  for (let s = 1; s < starts.length; s++) starts[s] += starts[s - 1];
  if (starts[DOCUMENTS.length] !== seqlenQ) throw new Error(`the documents do not fill ${seqlenQ} tokens`);
  const ids = Int32Array.from(DOCUMENTS.flatMap((length, id) => Array(length).fill(id)));
  return {
    ids,
    options: {
      segmentIds: { query: ids, key: ids },
      cuSeqlens: { query: starts, key: starts },
      blockMask: sdpa.masks.documents(ids),
    },
    share: DOCUMENTS.reduce((sum, length) => sum + length ** 2, 0) / seqlenQ ** 2,
  };
}

/**
 * @param {Case} c causal
 * @param {number} globalKeys
 * @returns {number} share of the causal cells that a window and the first keys leave
 */
function windowShare(c, globalKeys) {
  let first = 0;
  for (let i = 0; i < c.seqlenQ; i++) first += Math.max(0, Math.min(globalKeys, i - WINDOW_LEFT));
  return (pairs({ ...c, option: 'window' }) + first) / pairs(c);
}
