// Every option of attention() that its gradients depend on, on sizes that cross tiles, and problems made of them.

import { blockMaskOf, randomBlocks } from '../helpers/block-masks.mjs';
import { random16, randomSource } from '../helpers/reference.mjs';

/** @typedef {{ B: number, Hq: number, Hkv: number, L: number, S: number, D: number, Dv: number }} Sizes */
/** @typedef {ReturnType<typeof randomSource>} Random */

/**
 * `excludes`: what it shares with others that cannot stand beside it.
 * @typedef {object} Entry
 * @property {string} name
 * @property {(sizes: Sizes, random: Random) => any} [options]
 * @property {Partial<Sizes>} [sizes]
 * @property {'float16' | 'bfloat16'} [dtype]
 * @property {string} [excludes]
 */

/** @type {Sizes} */
const usual = { B: 2, Hq: 2, Hkv: 2, L: 61, S: 107, D: 10, Dv: 14 };

/** @param {number} count @param {(i: number) => number} of */
const ints = (count, of) => Int32Array.from({ length: count }, (_, i) => of(i));

/** @param {Random} random @param {number} share @param {number[]} shape */
const booleans = ({ uniform }, share, ...shape) => ({
  data: Uint8Array.from({ length: shape.reduce((a, b) => a * b) }, () => (uniform() < share ? 1 : 0)),
  shape,
});

/** @type {Entry[]} */
export const entries = [
  { name: 'scale', options: () => ({ scale: -0.4 }) },
  { name: 'softcap', options: () => ({ softcap: 1.3 }) },
  { name: 'mask', options: ({ B, L, S }, random) => ({ mask: booleans(random, 0.7, B, 1, L, S) }) },
  { name: 'bias', options: ({ Hq, L, S }, random) => ({ bias: random.tensor(Hq, L, S) }), excludes: 'bias' },
  {
    name: 'bias of 16 bits for each key',
    options: ({ S }, { uniform }) => ({
      bias: { data: random16(S, 'bfloat16', uniform), shape: [S], dtype: 'bfloat16' },
    }),
    excludes: 'bias',
  },
  { name: 'causal', options: () => ({ causal: true, align: 'lower-right' }), excludes: 'place' },
  { name: 'causal from the first key', options: () => ({ causal: true, align: 'upper-left' }), excludes: 'place' },
  { name: 'causal from an offset', options: () => ({ causal: true, queryOffset: -7 }), excludes: 'place' },
  { name: 'window', options: () => ({ window: [20, 9] }) },
  { name: 'chunk', options: () => ({ chunk: 45 }) },
  { name: 'globalKeys under a window', options: () => ({ globalKeys: 5, window: [9, 3] }), excludes: 'window' },
  { name: 'alibiSlopes', options: (_, { uniform }) => ({ alibiSlopes: [uniform() / 10, uniform() / 10] }) },
  { name: 'queryLengths', options: ({ B, L }) => ({ queryLengths: ints(B, (b) => L - 20 * b - 1) }) },
  { name: 'kvLengths', options: ({ B, S }) => ({ kvLengths: ints(B, (b) => Math.max(0, S - 11 - 70 * b)) }) },
  {
    name: 'segmentIds',
    options: ({ B, L, S }) => ({
      segmentIds: { query: ints(B * L, (i) => i % 4), key: ints(B * S, (j) => (j * 7) % 3) },
    }),
  },
  {
    name: 'cuSeqlens',
    sizes: { B: 1 },
    options: ({ L, S }) => ({
      cuSeqlens: { query: ints(4, (s) => [0, 20, 20, L - 3][s]), key: ints(4, (s) => [0, 31, 60, S - 2][s]) },
    }),
  },
  {
    name: 'blockMask',
    options: ({ B, Hq, L, S }, random) => ({ blockMask: blockMaskOf(randomBlocks(random, [B, Hq, L, S])) }),
  },
  {
    name: 'sinks',
    options: ({ B, Hq }, { normal }) => ({
      sinks: { data: Float32Array.from({ length: B * Hq }, normal), shape: [B, Hq] },
    }),
  },
  { name: 'smoothSoftmax', options: () => ({ smoothSoftmax: true }) },
  { name: 'dropout', options: () => ({ dropout: { p: 0.3, seed: 2 ** 40 + 5 } }) },
  { name: 'heads that share keys', sizes: { Hkv: 1 } },
  { name: 'float16', dtype: 'float16', excludes: 'dtype' },
  { name: 'bfloat16', dtype: 'bfloat16', excludes: 'dtype' },
];

/** @param {Entry} a @param {Entry} b */
export const excludeEachOther = (a, b) => a.excludes !== undefined && a.excludes === b.excludes;

/**
 * A call with the options of some entries, and gradients of its results.
 * @param {Entry[]} chosen
 * @param {Partial<Sizes>} [other] sizes
 */
export function problemOf(chosen, other = {}) {
  const sizes = Object.assign({}, usual, ...chosen.map((entry) => entry.sizes), other);
  const random = randomSource(7);
  const { B, Hq, Hkv, L, S, D, Dv } = sizes;
  const dtype = chosen.map((entry) => entry.dtype).find(Boolean);
  const input = (/** @type {number[]} */ ...shape) =>
    dtype
      ? {
          data: random16(
            shape.reduce((a, b) => a * b),
            dtype,
            random.uniform,
          ),
          shape,
          dtype,
        }
      : random.tensor(...shape);
  const [query, key, value] = [input(B, Hq, L, D), input(B, Hkv, S, D), input(B, Hkv, S, Dv)];
  const upstream = { dOut: random.tensor(B, Hq, L, Dv), dLse: random.tensor(B, Hq, L) };
  const options = Object.assign({}, ...chosen.map((entry) => entry.options?.(sizes, random)));
  const positional = ['causal', 'window', 'chunk', 'alibiSlopes'].some((name) => options[name] !== undefined);
  const placed = options.align !== undefined || options.queryOffset !== undefined;
  if (positional && !placed && !options.cuSeqlens) options.align = 'lower-right';
  // Rows that see nothing have a log-sum-exp of -Infinity, or of their sink: no loss depends on it beyond the lengths.
  return { query, key, value, upstream, options, sizes };
}

/**
 * Forward and backward.
 * @param {import('sdpa').Sdpa} sdpa
 * @param {ReturnType<typeof problemOf>} problem
 */
export function differentiate(sdpa, { query, key, value, upstream, options }) {
  const { out, lse } = sdpa.attention(query, key, value, { ...options, returnLse: true });
  return sdpa.attentionBackward(query, key, value, { out, lse, ...upstream }, options);
}
