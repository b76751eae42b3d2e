// BigBird (Zaheer et al. 2020): a band of blocks, the first and the last blocks, and some blocks at random. Global tokens are blocks or
// chosen tokens of the sequence (the paper's ITC), or tokens more that stand before it (its ETC).

import { rangeError } from '../errors.js';
import { readNamed } from '../named-options.js';
import { readSize, wholeNumber } from './arguments.js';
import { philox } from './philox.js';
import { addBoth, GlobalTokens } from './span-lists.js';
import { fromSpans } from './spans.js';

/**
 * Options of bigbird(). Sizes are in blocks but for blockSize.
 * @typedef {object} BigbirdOptions
 * @property {number} [blockSize] tokens in a block; 64 where absent, and fastest as a multiple of 64
 * @property {number} [window] blocks of the band with the query's own block in the middle: an odd number; 3 where absent
 * @property {number} [randomBlocks] blocks that each block of queries sees besides, all of them where there are
 *   fewer; 3 where absent
 * @property {number} [globalBlocks] blocks at either end that see all and are seen by all; 1 where absent, or 0 with extraTokens
 * @property {number} [extraTokens] tokens before the sequence that see all and are seen by all; blocks are counted behind them. 0 where
 *   absent
 * @property {readonly number[] | Int32Array} [globalTokens] indices of more tokens that see all and are seen by all, extraTokens counted
 * @property {number} [seed] of the random blocks, 0 ... 2^53 - 1; 0 where absent
 * @property {number} [heads] heads with random blocks of their own; 1 (the same for all) where absent
 */

/**
 * Query and key blocks at most (window - 1) / 2 apart, the first and the last `globalBlocks` blocks for everyone, and
 * `randomBlocks` others for each block of queries. Where the length is no multiple of the block size, the last block
 * is shorter.
 *
 * The random blocks of query block r of head h are drawn without repetition from the n blocks that r does not see
 * otherwise, in ascending order, by Floyd's algorithm: for k = n - randomBlocks ... n - 1, t = floor(w·(k + 1)/2^32),
 * take t, or k where t is taken, with w the first word of Philox 4x32-10 at counter (k, r, h, 0) and key (seed mod
 * 2^32, floor(seed / 2^32)).
 * @param {number} length of the sequence, extraTokens included, L = S
 * @param {BigbirdOptions} [options]
 * @returns {import('./block-mask.js').BlockMask} with a batch of 1
 * @throws TypeError or RangeError with a `code`
 */
export function bigbird(length, options) {
  const size = readSize('bigbird length', length);
  const known = ['blockSize', 'window', 'randomBlocks', 'globalBlocks', 'extraTokens', 'globalTokens', 'seed', 'heads'];
  const given = readNamed('bigbird', options, known);
  const read = (/** @type {string} */ name, /** @type {number} */ usual, /** @type {number} */ least) =>
    wholeNumber(`bigbird ${name}`, given[name] ?? usual, least, Number.MAX_SAFE_INTEGER);
  const blockSize = read('blockSize', 64, 1);
  const band = read('window', 3, 1);
  const draws = read('randomBlocks', 3, 0);
  const extra = read('extraTokens', 0, 0);
  if (extra > size) throw rangeError('option', `bigbird extraTokens is ${extra} but the length is ${size}`);
  const ends = read('globalBlocks', extra === 0 ? 1 : 0, 0);
  const globals = new GlobalTokens('bigbird globalTokens', given.globalTokens, size);
  const seed = read('seed', 0, 0);
  const heads = read('heads', 1, 1);
  if (band % 2 === 0) throw rangeError('option', `bigbird window must be an odd number of blocks, got ${band}`);
  const plan = { blocks: Math.ceil((size - extra) / blockSize), reach: (band - 1) / 2, ends, draws, seed };

  let block = -1;
  /** @type {number[]} */
  let seen = [];
  return fromSpans({ rows: size, columns: size, batch: 1, heads }, (spans, i, _, h) => {
    const at = i - extra;
    if (at >= 0 && at % blockSize === 0) {
      block = at / blockSize;
      seen = seenBy(plan, block, h).map((b) => extra + b * blockSize);
    }
    if (at < 0 || globals.has(i)) return spans.add(0, size);
    spans.add(0, extra);
    addBoth(spans, seen, globals.spans, size);
  });
}

/**
 * @param {{ blocks: number, reach: number, ends: number, draws: number, seed: number }} plan
 * @param {number} block of queries
 * @param {number} head
 * @returns {number[]} spans of blocks in ascending order: first, the one after the last, first, …
 */
function seenBy({ blocks, reach, ends, draws, seed }, block, head) {
  if (block < ends || block >= blocks - ends) return [0, blocks];
  const from = Math.max(block - reach, ends);
  const to = Math.min(block + reach + 1, blocks - ends);
  const left = from - ends;
  const others = left + (blocks - ends - to);
  const taken = draw(others, Math.min(draws, others), seed, block, head);
  const random = taken.sort((a, b) => a - b).map((k) => (k < left ? ends + k : to + k - left));
  const spans = [0, ends];
  for (const b of random) if (b < from) spans.push(b, b + 1);
  spans.push(from, to);
  for (const b of random) if (b >= to) spans.push(b, b + 1);
  spans.push(blocks - ends, blocks);
  return spans;
}

/**
 * @param {number} n
 * @param {number} count at most n
 * @param {number} seed
 * @param {number} block
 * @param {number} head
 * @returns {number[]} `count` different numbers of 0 ... n - 1
 */
function draw(n, count, seed, block, head) {
  /** @type {Set<number>} */
  const taken = new Set();
  for (let k = n - count; k < n; k++) {
    const word = philox((seed % 2 ** 32) | 0, Math.floor(seed / 2 ** 32), k, block, head, 0);
    const t = Math.floor((word * (k + 1)) / 2 ** 32);
    taken.add(taken.has(t) ? k : t);
  }
  return [...taken];
}
