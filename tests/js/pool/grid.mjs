// Calls with every option, long enough to be cut by rows or heads, or with entries enough to be put together.

import { masks } from 'sdpa';
import { randomBlocks } from '../helpers/block-masks.mjs';
import { random16, randomSource } from '../helpers/reference.mjs';

const random = randomSource(20);
const x = random.tensor;

/** @param {'float16' | 'bfloat16'} dtype @param {number[]} shape */
const half = (dtype, ...shape) => ({
  data: random16(
    shape.reduce((a, b) => a * b),
    dtype,
    random.uniform,
  ),
  shape,
  dtype,
});

/** @param {number[]} shape */
const mask = (...shape) => ({
  data: Uint8Array.from({ length: shape.reduce((a, b) => a * b) }, () => (random.uniform() < 0.7 ? 1 : 0)),
  shape,
});

/** @param {number} count @param {(i: number) => number} of */
const ids = (count, of) => Int32Array.from({ length: count }, (_, i) => of(i));

/** @param {number} batch @param {number} heads */
const perHead = (batch, heads) => ({
  data: Float32Array.from({ length: batch * heads }, () => random.uniform() / 10),
  shape: [batch, heads],
});

export const L = 500;
const S = 700;

/** @type {[string, any[], any][]} query, key and value; options */
export const grid = [
  ['dense', [x(2, 2, L, 32), x(2, 2, L, 32), x(2, 2, L, 32)], { returnLse: true }],
  ['causal', [x(1, 3, L, 24), x(1, 3, L, 24), x(1, 3, L, 40)], { causal: true, returnLse: true }],
  ['lower-right', [x(2, L, 32), x(2, S, 32), x(2, S, 32)], { causal: true, align: 'lower-right', returnLse: true }],
  ['more queries than keys', [x(2, S, 32), x(2, L, 32), x(2, L, 32)], { causal: true, align: 'lower-right' }],
  ['upper-left', [x(2, L, 32), x(2, S, 32), x(2, S, 32)], { causal: true, align: 'upper-left' }],
  ['one offset', [x(2, L, 32), x(2, S, 32), x(2, S, 32)], { causal: true, queryOffset: 33 }],
  ['the farthest offset', [x(2, L, 32), x(2, S, 32), x(2, S, 32)], { causal: true, queryOffset: 2 ** 31 }],
  [
    'a window from the farthest offset',
    [x(2, L, 32), x(2, S, 32), x(2, S, 32)],
    { window: [2 ** 31 - 100, 3], queryOffset: 2 ** 31, returnLse: true },
  ],
  [
    'the farthest offset before',
    [x(2, L, 32), x(2, S, 32), x(2, S, 32)],
    { window: [9, 2 ** 31 + 9], queryOffset: -(2 ** 31) },
  ],
  [
    'offsets per batch row',
    [x(3, 1, L, 32), x(3, 1, S, 32), x(3, 1, S, 32)],
    { window: [90, 5], queryOffset: Int32Array.of(-40, 0, 190), returnLse: true },
  ],
  ['window', [x(2, L, 32), x(2, L, 32), x(2, L, 32)], { window: [100, Infinity] }],
  ['causal window', [x(2, L, 32), x(2, L, 32), x(2, L, 32)], { window: [64, 3], causal: true }],
  [
    'lengths',
    [x(3, 2, L, 32), x(3, 2, S, 32), x(3, 2, S, 32)],
    {
      causal: true,
      align: 'lower-right',
      queryLengths: Int32Array.of(L, 0, 77),
      kvLengths: Int32Array.of(0, 300, S),
      returnLse: true,
    },
  ],
  ['mask of keys', [x(2, 2, L, 16), x(2, 2, S, 16), x(2, 2, S, 16)], { mask: mask(2, 1, 1, S) }],
  ['mask of rows and keys', [x(2, 2, L, 16), x(2, 2, S, 16), x(2, 2, S, 16)], { mask: mask(L, S), returnLse: true }],
  ['mask of rows', [x(2, L, 16), x(2, S, 16), x(2, S, 16)], { mask: mask(2, L, 1), returnLse: true }],
  ['bias of heads', [x(2, 3, L, 16), x(2, 3, S, 16), x(2, 3, S, 16)], { bias: x(3, L, S), mask: mask(2, 1, L, 1) }],
  ['bias of 16 bits', [x(2, L, 16), x(2, S, 16), x(2, S, 16)], { bias: half('float16', 1, S), softcap: 2.5 }],
  ['scale and softcap', [x(2, L, 32), x(2, S, 32), x(2, S, 32)], { scale: -0.3, softcap: 1.5 }],
  ['grouped heads', [x(1, 6, L, 32), x(1, 2, S, 32), x(1, 2, S, 48)], { returnLse: true, mask: mask(6, 1, S) }],
  ['one key head', [x(2, 5, L, 32), x(2, 1, S, 32), x(2, 1, S, 32)], { causal: true, align: 'upper-left' }],
  [
    'blhd',
    [x(2, L, 4, 32), x(2, S, 2, 32), x(2, S, 2, 40)],
    { layout: 'blhd', returnLse: true, window: [200, 200], align: 'lower-right' },
  ],
  ['blhd of wide rows', [x(L, 2, 100), x(S, 2, 100), x(S, 2, 130)], { layout: 'blhd', scores: 'capped', softcap: 3 }],
  ['one head', [x(L, 64), x(S, 64), x(S, 64)], { returnLse: true, scores: 'biased', bias: x(L, 1) }],
  ['float16', [half('float16', 2, L, 32), half('float16', 2, S, 32), half('float16', 2, S, 32)], { returnLse: true }],
  ['bfloat16 keys in blhd', [x(L, 4, 32), half('bfloat16', S, 2, 32), x(S, 2, 32)], { layout: 'blhd' }],
  ['scores', [x(2, 2, L, 16), x(2, 2, L, 16), x(2, 2, L, 16)], { scores: 'scaled', causal: true }],
  ['weights', [x(1, 4, L, 16), x(1, 2, S, 16), x(1, 2, S, 16)], { scores: 'weights', returnLse: true }],
  [
    'many small entries',
    [x(150, 3, 49, 16), x(150, 3, 49, 16), x(150, 3, 49, 16)],
    { bias: x(3, 49, 49), mask: mask(150, 1, 49, 49), returnLse: true },
  ],
  [
    'many ragged entries',
    [x(90, 2, 20, 16), x(90, 1, 200, 16), x(90, 1, 200, 16)],
    {
      causal: true,
      align: 'lower-right',
      kvLengths: Int32Array.from({ length: 90 }, (_, b) => (b * 37) % 201),
      queryLengths: Int32Array.from({ length: 90 }, (_, b) => b % 21),
      returnLse: true,
    },
  ],
  [
    'chunks',
    [x(2, 2, L, 64), x(2, 2, S, 64), x(2, 2, S, 64)],
    { chunk: 90, queryOffset: Int32Array.of(13, -70), returnLse: true },
  ],
  [
    'chunks from the farthest offset',
    [x(2, L, 64), x(2, S, 64), x(2, S, 64)],
    { chunk: 2 ** 31 + 80, queryOffset: 2 ** 31, returnLse: true },
  ],
  [
    'global keys',
    [x(4, L, 32), x(2, S, 32), x(2, S, 32)],
    { window: [60, 0], globalKeys: 70, align: 'lower-right', returnLse: true },
  ],
  [
    'slopes of heads',
    [x(2, 4, L, 64), x(2, 2, S, 64), x(2, 2, S, 64)],
    { alibiSlopes: [0.1, 0.02, -0.01, 0], align: 'upper-left', returnLse: true },
  ],
  [
    'slopes of each batch row from the farthest offset',
    [x(3, 2, L, 64), x(3, 2, S, 64), x(3, 2, S, 64)],
    { alibiSlopes: perHead(3, 2), queryOffset: 2 ** 31 },
  ],
  [
    'sorted segments',
    [x(2, 2, L, 64), x(2, 2, S, 64), x(2, 2, S, 64)],
    { segmentIds: { query: ids(L, (i) => i / 70), key: ids(S, (j) => j / 90) }, returnLse: true },
  ],
  [
    'mixed segments of each batch row',
    [x(3, 1, L, 64), x(3, 1, S, 64), x(3, 1, S, 64)],
    { segmentIds: { query: ids(3 * L, (i) => i % 5), key: ids(3 * S, (j) => (j * 7) % 9) }, returnLse: true },
  ],
  [
    'packed sequences',
    [x(1, 4, 1000, 64), x(1, 2, 1100, 64), x(1, 2, 1100, 64)],
    {
      cuSeqlens: { query: Int32Array.of(0, 7, 7, 733, 980), key: Int32Array.of(0, 100, 130, 960, 1099) },
      returnLse: true,
    },
  ],
  [
    'packed causal sequences',
    [x(1, 4, L, 32), x(1, 2, S, 32), x(1, 2, S, 32)],
    {
      cuSeqlens: { query: Int32Array.of(0, 7, 7, 333, 480), key: Int32Array.of(0, 100, 130, 160, 699) },
      causal: true,
      returnLse: true,
    },
  ],
  [
    'packed sequences with everything positional',
    [x(1, 1500, 4, 64), x(1, 1600, 2, 64), x(1, 1600, 2, 64)],
    {
      cuSeqlens: { query: Int32Array.of(0, 650, 1500), key: Int32Array.of(0, 900, 1600) },
      layout: 'blhd',
      window: [400, 330],
      globalKeys: 9,
      chunk: 550,
      alibiSlopes: [0.1, 0.02, -0.01, 0],
      queryOffset: 21,
      kvLengths: Int32Array.of(1550),
      queryLengths: Int32Array.of(1490),
    },
  ],
  [
    'a block mask of all heads',
    [x(2, 2, L, 96), x(2, 2, S, 96), x(2, 2, S, 96)],
    { blockMask: masks.fromDense(randomBlocks(random, [1, 1, L, S])), returnLse: true },
  ],
  [
    'a block mask of each head and batch row',
    [x(2, 4, L, 96), x(2, 2, S, 96), x(2, 2, S, 96)],
    { blockMask: masks.fromDense(randomBlocks(random, [2, 4, L, S])), returnLse: true },
  ],
  [
    'a block mask of many small entries',
    [x(90, 2, 49, 16), x(90, 2, 49, 16), x(90, 2, 49, 16)],
    { blockMask: masks.fromDense(randomBlocks(random, [90, 1, 49, 49])) },
  ],
  ['sinks', [x(2, 4, L, 16), x(2, 2, S, 16), x(2, 2, S, 16)], { sinks: perHead(2, 4), returnLse: true }],
  [
    'smooth softmax of rows that see nothing',
    [x(4, L, 64), x(2, S, 64), x(2, S, 64)],
    { smoothSoftmax: true, queryLengths: Int32Array.of(333), returnLse: true },
  ],
  [
    'dropout',
    [x(2, 4, L, 64), x(2, 2, S, 64), x(2, 2, S, 64)],
    { dropout: { p: 0.3, seed: 12345678901 }, returnLse: true },
  ],
  [
    'dropout of many small entries',
    [x(150, 3, 49, 16), x(150, 3, 49, 16), x(150, 3, 49, 16)],
    { dropout: { p: 0.1, seed: 4 } },
  ],
  [
    'everything together',
    [half('float16', 2, L, 4, 128), x(2, S, 2, 128), half('bfloat16', 2, S, 2, 96)],
    {
      layout: 'blhd',
      softcap: 4,
      mask: mask(2, 1, L, S),
      bias: x(4, 1, S),
      causal: true,
      window: [300, 40],
      globalKeys: 20,
      chunk: 256,
      align: 'lower-right',
      alibiSlopes: perHead(2, 4),
      segmentIds: { query: ids(L, (i) => i % 2), key: ids(S, (j) => j % 3) },
      blockMask: masks.fromDense(randomBlocks(random, [2, 1, L, S])),
      sinks: [0.5, -1, 2, -Infinity],
      smoothSoftmax: true,
      dropout: { p: 0.2, seed: 8 },
      kvLengths: Int32Array.of(S, 600),
      queryLengths: Int32Array.of(450, L),
      returnLse: true,
      scores: 'biased',
    },
  ],
  ['one query row', [x(2, 8, 1, 64), x(2, 2, 3000, 64), x(2, 2, 3000, 64)], { returnLse: true }],
  ['one of everything', [x(1, 1), x(1, 1), x(1, 1)], { returnLse: true, scores: 'weights' }],
];
