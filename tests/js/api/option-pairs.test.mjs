// Every pair of options once, against the float64 reference: the pairs are generated from a list, on sizes that cross tiles of 64 rows and
// of 64 keys.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blockMaskOf, forReference, randomBlocks } from '../helpers/block-masks.mjs';
import { tolerance } from '../helpers/check.mjs';
import { largestError, random16, randomSource, referenceAttention } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';

const sdpa = await loadVariant();

/** @typedef {{ B: number, Hq: number, Hkv: number, L: number, S: number, D: number, Dv: number }} Sizes */
/** @typedef {ReturnType<typeof randomSource>} Random */

/**
 * One side of a pair. `excludes`: what it shares with others that cannot stand beside it by the rules.
 * @typedef {object} Entry
 * @property {string} name
 * @property {Partial<Sizes>} [sizes]
 * @property {(sizes: Sizes, random: Random) => any} [options]
 * @property {'float16' | 'bfloat16'} [dtype]
 * @property {string} [excludes]
 */

/** @type {Sizes} */
const usual = { B: 2, Hq: 2, Hkv: 2, L: 67, S: 150, D: 12, Dv: 20 };

/** @param {number} count @param {(i: number) => number} of */
const ints = (count, of) => Int32Array.from({ length: count }, (_, i) => of(i));

/** @param {Random} random @param {number[]} shape */
const booleans = (random, ...shape) => ({
  data: Uint8Array.from({ length: shape.reduce((a, b) => a * b) }, () => (random.uniform() < 0.7 ? 1 : 0)),
  shape,
});

/** @type {Entry[]} */
const entries = [
  { name: 'scale', options: () => ({ scale: -0.4 }) },
  { name: 'softcap', options: () => ({ softcap: 1.3 }) },
  { name: 'mask', options: ({ B, L, S }, random) => ({ mask: booleans(random, B, 1, L, S) }) },
  { name: 'bias', options: ({ Hq, L, S }, random) => ({ bias: random.tensor(Hq, L, S) }), excludes: 'bias' },
  {
    name: 'bias of 16 bits',
    options: ({ S }, { uniform }) => ({
      bias: { data: random16(S, 'bfloat16', uniform), shape: [S], dtype: 'bfloat16' },
    }),
    excludes: 'bias',
  },
  { name: 'causal', options: () => ({ causal: true }) },
  { name: 'window', options: () => ({ window: [40, 9] }) },
  { name: 'chunk', options: () => ({ chunk: 45 }) },
  { name: 'globalKeys', options: () => ({ globalKeys: 5 }) },
  { name: 'alibiSlopes', options: ({ B, Hq }, { uniform }) => ({ alibiSlopes: perHead(B, Hq, () => uniform() / 10) }) },
  { name: 'lower-right', options: () => ({ align: 'lower-right' }), excludes: 'place' },
  { name: 'upper-left', options: () => ({ align: 'upper-left' }), excludes: 'place' },
  { name: 'queryOffset', options: () => ({ queryOffset: 31 }), excludes: 'place' },
  {
    name: 'queryOffset of each',
    options: ({ B }) => ({ queryOffset: ints(B, (b) => 70 - 90 * b) }),
    excludes: 'place',
  },
  { name: 'queryLengths', options: ({ B, L }) => ({ queryLengths: ints(B, (b) => Math.max(0, L - 20 * b - 1)) }) },
  { name: 'kvLengths', options: ({ B, S }) => ({ kvLengths: ints(B, (b) => S - 11 - 70 * b) }) },
  {
    name: 'sorted segmentIds',
    options: ({ L, S }) => ({
      segmentIds: { query: ints(L, (i) => Math.floor(i / 25)), key: ints(S, (j) => Math.floor(j / 55)) },
    }),
    excludes: 'segments',
  },
  {
    name: 'mixed segmentIds',
    options: ({ B, L, S }) => ({
      segmentIds: { query: ints(B * L, (i) => i % 4), key: ints(B * S, (j) => (j * 7) % 3) },
    }),
    excludes: 'segments',
  },
  {
    name: 'cuSeqlens',
    sizes: { B: 1 },
    options: ({ L }) => {
      const second = Math.floor(L / 3);
      return {
        cuSeqlens: { query: Int32Array.of(0, second, second, Math.ceil(0.95 * L)), key: Int32Array.of(0, 33, 41, 149) },
      };
    },
  },
  {
    name: 'blockMask',
    options: ({ Hq, L, S }, random) => ({ blockMask: blockMaskOf(randomBlocks(random, [1, Hq, L, S])) }),
  },
  { name: 'sinks', options: ({ B, Hq }, { normal }) => ({ sinks: perHead(B, Hq, normal) }) },
  { name: 'smoothSoftmax', options: () => ({ smoothSoftmax: true }) },
  { name: 'dropout', options: () => ({ dropout: { p: 0.25, seed: 98765432109 } }) },
  { name: 'returnLse', options: () => ({ returnLse: true }) },
  ...['scaled', 'capped', 'biased', 'weights'].map((scores) => ({
    name: `scores: ${scores}`,
    options: () => ({ scores }),
    excludes: 'scores',
  })),
  { name: 'blhd', options: () => ({ layout: 'blhd' }) },
  { name: 'out', options: ({ B, Hq, L, Dv }) => ({ out: new Float32Array(B * Hq * L * Dv) }) },
  { name: 'grouped heads', sizes: { Hq: 4 } },
  { name: 'one query row', sizes: { L: 1 } },
  { name: 'float16', dtype: 'float16', excludes: 'dtype' },
  { name: 'bfloat16', dtype: 'bfloat16', excludes: 'dtype' },
];

/** @param {number} B @param {number} Hq @param {() => number} of */
const perHead = (B, Hq, of) => ({ data: Float32Array.from({ length: B * Hq }, of), shape: [B, Hq] });

/** @param {any} options */
const isPositional = ({ causal, window, chunk, alibiSlopes }) => causal || window || chunk || alibiSlopes;

/**
 * @param {Entry} a
 * @param {Entry} b
 * @param {number} seed
 */
function compare(a, b, seed) {
  const random = randomSource(seed);
  const sizes = { ...usual, ...a.sizes, ...b.sizes };
  const options = { ...a.options?.(sizes, random), ...b.options?.(sizes, random) };
  const placed = options.align || options.queryOffset !== undefined || options.cuSeqlens;
  if (isPositional(options) && !placed) options.align = 'lower-right';
  const dtype = a.dtype ?? b.dtype;
  /** @param {number} heads @param {number} rows @param {number} width */
  const tensor = (heads, rows, width) => {
    const { B } = sizes;
    const shape = options.layout === 'blhd' ? [B, rows, heads, width] : [B, heads, rows, width];
    return dtype
      ? { data: random16(B * heads * rows * width, dtype, random.uniform), shape, dtype }
      : random.tensor(...shape);
  };
  const query = tensor(sizes.Hq, sizes.L, sizes.D);
  const key = tensor(sizes.Hkv, sizes.S, sizes.D);
  const value = tensor(sizes.Hkv, sizes.S, sizes.Dv);
  const want = referenceAttention(query, key, value, forReference(options));
  const got = sdpa.attention(query, key, value, options);
  assert.deepEqual([...got.out.shape], want.shape);
  assert.equal(got.lse !== undefined, options.returnLse === true);
  assert.equal(got.scores !== undefined, options.scores !== undefined);
  if (options.out) assert.equal(got.out.data, options.out);
  /** @type {[string, any, any][]} */
  const pairs = [['out', got.out, want.out]];
  if (got.lse) pairs.push(['lse', got.lse, want.lse]);
  if (got.scores) pairs.push(['scores', got.scores, want.scores[/** @type {'weights'} */ (options.scores)]]);
  for (const [name, result, expected] of pairs) {
    const error = largestError(result.data, expected);
    assert.ok(error <= tolerance, `${a.name} with ${b.name}: ${name} differs by ${error}`);
  }
}

let tested = 0;
let excluded = 0;

for (const [i, a] of entries.entries()) {
  test(`${a.name}, with each option after it`, () => {
    for (const [j, b] of entries.entries()) {
      if (j <= i) continue;
      if (a.excludes && a.excludes === b.excludes) excluded++;
      else {
        compare(a, b, 1000 * i + j);
        tested++;
      }
    }
  });
}

test('no pair was left out but two biases, places of query 0, kinds of ids, stages or types of one tensor', () => {
  assert.equal(excluded, 1 + 6 + 1 + 6 + 1);
  assert.equal(tested, (entries.length * (entries.length - 1)) / 2 - excluded);
});
