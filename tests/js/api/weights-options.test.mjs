// Weights with every option of the forward call, and with each of them beside causal, against the float64 reference.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blockMaskOf, randomBlocks } from '../helpers/block-masks.mjs';
import { random16, randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { assertWeights, referenceWeights } from './weights-reference.mjs';

const sdpa = await loadVariant();

/** @typedef {{ B: number, Hq: number, Hkv: number, L: number, S: number, D: number }} Sizes */
/** @typedef {ReturnType<typeof randomSource>} Random */

/** @type {Sizes} */
const usual = { B: 2, Hq: 2, Hkv: 2, L: 57, S: 130, D: 12 };

/** @param {number} count @param {(i: number) => number} of */
const ints = (count, of) => Int32Array.from({ length: count }, (_, i) => of(i));

/**
 * `changes`: whether the weights are others without it.
 * @typedef {{ name: string, sizes?: Partial<Sizes>, dtype?: 'float16' | 'bfloat16', changes?: boolean, options?: (sizes: Sizes, random: Random) => any }} Entry
 */

/** @type {Entry[]} */
const entries = [
  { name: 'nothing', changes: false },
  { name: 'scale', options: () => ({ scale: -0.4 }) },
  { name: 'softcap', options: () => ({ softcap: 1.3 }) },
  {
    name: 'mask',
    options: ({ B, L, S }, { uniform }) => ({
      mask: { data: Uint8Array.from({ length: B * L * S }, () => Number(uniform() < 0.7)), shape: [B, 1, L, S] },
    }),
  },
  { name: 'bias', options: ({ Hq, L, S }, random) => ({ bias: random.tensor(Hq, L, S) }) },
  { name: 'window', options: () => ({ window: [40, 9] }) },
  { name: 'chunk', options: () => ({ chunk: 45 }) },
  { name: 'globalKeys under a window', options: () => ({ globalKeys: 5, window: [20, 5] }) },
  { name: 'alibiSlopes', options: () => ({ alibiSlopes: [0.1, 0.03] }) },
  { name: 'upper-left', options: () => ({ align: 'upper-left' }), changes: false },
  { name: 'queryOffset of each', options: ({ B }) => ({ queryOffset: ints(B, (b) => 70 - 90 * b) }), changes: false },
  { name: 'queryLengths', options: ({ B, L }) => ({ queryLengths: ints(B, (b) => L - 20 * b - 1) }) },
  { name: 'kvLengths', options: ({ B, S }) => ({ kvLengths: ints(B, (b) => S - 11 - 70 * b) }) },
  {
    name: 'segmentIds',
    options: ({ B, L, S }) => ({
      segmentIds: { query: ints(B * L, (i) => i % 4), key: ints(B * S, (j) => (j * 7) % 3) },
    }),
  },
  {
    name: 'cuSeqlens',
    sizes: { B: 1 },
    options: () => ({ cuSeqlens: { query: Int32Array.of(0, 19, 19, 50), key: Int32Array.of(0, 33, 41, 129) } }),
  },
  {
    name: 'blockMask',
    options: ({ Hq, L, S }, random) => ({ blockMask: blockMaskOf(randomBlocks(random, [1, Hq, L, S])) }),
  },
  { name: 'sinks', options: () => ({ sinks: [1.5, -0.5] }) },
  { name: 'smoothSoftmax', options: () => ({ smoothSoftmax: true }) },
  { name: 'no dropout', options: () => ({ dropout: { p: 0, seed: 1 } }), changes: false },
  { name: 'blhd', options: () => ({ layout: 'blhd' }), changes: false },
  { name: 'grouped heads', sizes: { Hq: 4 }, changes: false },
  { name: 'one query row', sizes: { L: 1 }, changes: false },
  { name: 'float16', dtype: 'float16', changes: false },
  { name: 'bfloat16', dtype: 'bfloat16', changes: false },
];

for (const causal of [false, true]) {
  for (const [n, entry] of entries.entries()) {
    test(`${entry.name}${causal ? ' with causal' : ''}`, () => compare(entry, causal, n));
  }
}

/** @param {Entry} entry @param {boolean} causal @param {number} seed */
function compare(entry, causal, seed) {
  const random = randomSource(500 + seed);
  const sizes = { ...usual, ...entry.sizes };
  const own = entry.options?.(sizes, random) ?? {};
  const place = own.align || own.queryOffset !== undefined || own.cuSeqlens ? {} : { align: 'lower-right' };
  const options = { ...own, ...place, ...(causal ? { causal } : {}) };
  if (options.alibiSlopes && sizes.Hq === 4) options.alibiSlopes = [0.1, 0.2, 0.3, 0.4];
  const tensor = (/** @type {number} */ heads, /** @type {number} */ rows) => {
    const { B, D } = sizes;
    const shape = options.layout === 'blhd' ? [B, rows, heads, D] : [B, heads, rows, D];
    const { dtype } = entry;
    return dtype
      ? { data: random16(B * heads * rows * D, dtype, random.uniform), shape, dtype }
      : random.tensor(...shape);
  };
  const query = tensor(sizes.Hq, sizes.L);
  const key = tensor(sizes.Hkv, sizes.S);
  const { L, Hq } = sizes;
  const wanted = {
    rows: L === 1 ? [0] : [0, 1, 18, L - 1],
    columns: [0, 64, 65, 129],
    columnSums: true,
    topK: 3,
    stats: true,
    pool: { rows: Math.min(L, 5), columns: 9, kind: seed % 2 ? 'mean' : 'max' },
    heads: [Hq - 1, 0],
  };
  const reference = referenceWeights(query, key, options);
  const { lse } = sdpa.attention(query, key, key, { ...options, returnLse: true });
  assertWeights(sdpa.attentionWeights(query, key, { ...options, ...wanted, lse }), reference, wanted);
  assertWeights(sdpa.attentionWeights(query, key, { ...options, ...wanted }), reference, wanted);
  if (entry.changes === false) return;
  const without = referenceWeights(query, key, { ...place, ...(causal ? { causal } : {}) }).rows(wanted);
  const most = Math.max(...reference.rows(wanted).data.map((p, i) => Math.abs(p - without.data[i])));
  assert.ok(most > 1e-4, `${entry.name} changes nothing here`);
}
