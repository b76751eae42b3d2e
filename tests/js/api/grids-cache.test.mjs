// Tables of flash-attention's tests of KV caches (tests/test_flash_attn.py and hopper/test_flash_attn.py), through createKVCache(): keys
// appended in two steps to rows of their own lengths, rotated or not, in pages or not, behind left padding or not. Options are drawn
// for each size; two batch rows (one where a call is large), six query heads at most.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadVariant } from '../helpers/sdpa.mjs';
import { toHalf } from './grids-half.mjs';
import { chosenRows } from './grids-oracle.mjs';
import { turned } from './grids-rotation.mjs';
import { drawOptions, isFull, numbers, pickRows, rowsOf, sweep } from './grids-sweep.mjs';

const sdpa = await loadVariant();

/** Batch rows and heads. @param {any} setting */
function sizesOf({ lengths: [L, S], headDim: D, kvHeads }) {
  const large = 12 * L * S * 2 * D > 2e7;
  const group = S > 5000 ? Math.min(2, 6 / kvHeads) : 6 / kvHeads;
  return large ? { B: 1, Hq: group, Hkv: 1, L, S, D, Dv: D } : { B: 2, Hq: 6, Hkv: kvHeads, L, S, D, Dv: D };
}

/** Of the sample. @param {any} setting */
const cost = ({ lengths: [L, S], headDim }) => (L * S * headDim) / 2e6 + (S * headDim) / 5e5;

/**
 * @param {any} setting
 * @param {number} seed
 * @param {import('./grids-sweep.mjs').Errors} errors
 */
function run(setting, seed, errors) {
  const { rotary, appended, padded, pageSize, causal, local, alibi, ragged, half } = setting;
  const random = numbers(seed);
  const { whole } = random;
  const sizes = sizesOf(setting);
  const { B, Hq, Hkv, L, S, D } = sizes;
  const added = appended ? Math.min(whole(1, L), S - 1) : 0;
  const before = Array.from({ length: B }, () => whole(1, S - added));
  const lengths = before.map((n) => n + added);
  const longest = Math.max(...lengths);
  const dtype = half && !rotary ? 'float16' : 'float32';
  const value = (/** @type {{ data: Float32Array, shape: number[] }} */ x) => (dtype === 'float16' ? toHalf(x) : x);
  const query = random.tensor(B, Hq, L, D);
  const parts = [S - added, added].map((n) => [random.tensor(B, Hkv, n, D), random.tensor(B, Hkv, n, D)].map(value));
  const queryLengths = ragged ? Array.from({ length: B }, () => whole(1, L)) : Array(B).fill(L);
  const padding = lengths.map((n) => (padded ? whole(0, n >> 1) : 0));
  const window = local ? [whole(0, longest - 1), whole(0, longest - 1)] : [Infinity, Infinity];
  const slopes = alibi ? Float32Array.from({ length: Hq }, () => 0.3 * random.uniform()) : undefined;

  const rope = rotary && { pairing: rotary.pairing, rotaryDim: 2 * Math.floor((rotary.fraction * D) / 2) };
  const cache = sdpa.createKVCache({
    batch: B,
    numKvHeads: Hkv,
    headDim: D,
    dtype: /** @type {any} */ (dtype),
    ...(pageSize && { pageSize }),
    ...(rope && { rope }),
  });
  cache.append(parts[0][0], parts[0][1], { lengths: Int32Array.from(before) });
  if (added > 0) cache.append(parts[1][0], parts[1][1]);
  assert.deepEqual([...cache.lengths], lengths);
  const mask = { data: new Uint8Array(B * longest), shape: [B, 1, 1, longest] };
  for (let b = 0; b < B; b++) mask.data.fill(1, b * longest + padding[b], b * longest + lengths[b]);
  const got = cache.attend(query, {
    causal,
    ...(local && { window: /** @type {[number, number]} */ (window) }),
    ...(slopes && { alibiSlopes: slopes }),
    ...(padded && { mask }),
    ...(ragged && { queryLengths: Int32Array.from(queryLengths) }),
  });
  checkValues(cache, { parts, before, lengths, sizes, seed });
  cache.dispose();

  const [key, values] = [0, 1].map((n) => joined(parts, n, before, sizes));
  const position = (/** @type {number} */ b, /** @type {number} */ i) => lengths[b] - queryLengths[b] + i;
  const keyPosition = (/** @type {number} */ _b, /** @type {number} */ j) => j;
  const rotated = (/** @type {(x: number) => number} */ round) => ({
    query: rope ? turned(query, position, rope, round) : query.data,
    key: rope ? turned({ data: key, shape: [B, Hkv, S, D] }, keyPosition, rope, round) : key,
  });
  const rows = Math.max(isFull ? 6 : 3, Math.floor(1e6 / (B * Hq * S * 2 * D)));
  const picks = pickRows(L, rows, whole);
  const want = chosenRows(
    {
      sizes,
      exact: rotated((x) => x),
      plain: rotated(Math.fround),
      value: values,
      ...(slopes && { slopes, distance: (b, i, j) => Math.abs(position(b, i) - j) }),
      sees: (b, _h, i, j) =>
        i < queryLengths[b] &&
        j < lengths[b] &&
        j >= padding[b] &&
        (!causal || j <= position(b, i)) &&
        j >= position(b, i) - window[0] &&
        j <= position(b, i) + window[1],
    },
    picks,
  );
  errors.add(rowsOf(got.out, picks), want.exact.out, want.plain.out);
  return B * Hq * picks.length;
}

/**
 * Keys or values of both steps as (B, Hkv, S, D) numbers, each row's one after the other.
 * @param {any[][]} parts
 * @param {number} which 0: keys, 1: values
 * @param {number[]} before
 * @param {any} sizes
 */
function joined(parts, which, before, { B, Hkv, S, D }) {
  const all = new Float32Array(B * Hkv * S * D);
  for (let head = 0; head < B * Hkv; head++) {
    const at = head * S * D;
    const first = parts[0][which].numbers ?? parts[0][which].data;
    const second = parts[1][which].numbers ?? parts[1][which].data;
    const [n, m] = parts.map((part) => part[which].shape[2]);
    all.set(first.subarray(head * n * D, (head + 1) * n * D), at);
    all.set(second.subarray(head * m * D, (head + 1) * m * D), at + before[Math.floor(head / Hkv)] * D);
  }
  return all;
}

/**
 * A row that sees one key alone gets that key's value: it is the one that was written, bit for bit.
 * @param {import('sdpa').KVCache} cache
 * @param {any} written
 */
function checkValues(cache, { parts, before, lengths, sizes, seed }) {
  const { B, Hkv, D, S } = sizes;
  const { whole, tensor } = numbers(seed + 1);
  const longest = Math.max(...lengths);
  const mask = { data: new Uint8Array(B * longest), shape: [B, 1, 1, longest] };
  const keys = lengths.map((/** @type {number} */ n) => whole(0, n - 1));
  keys.forEach((/** @type {number} */ j, /** @type {number} */ b) => (mask.data[b * longest + j] = 1));
  const { out } = cache.attend(tensor(B, Hkv, 1, D), { causal: false, mask });
  const values = joined(parts, 1, before, sizes);
  for (let head = 0; head < B * Hkv; head++) {
    const at = (head * S + keys[Math.floor(head / Hkv)]) * D;
    assert.deepEqual(out.data.subarray(head * D, (head + 1) * D), values.subarray(at, at + D));
  }
}

test('flash-attention 2: KV caches', async () => {
  const options = {
    kvHeads: [6, 3, 1],
    rotary: [
      null,
      ...[0.5, 1].flatMap((fraction) => ['half', 'interleaved'].map((pairing) => ({ fraction, pairing }))),
    ],
    appended: [false, true],
    padded: [false, true],
    pageSize: [0, 256],
    causal: [false, true],
    local: [false, true],
    alibi: [false, true],
    half: [false, true],
  };
  const headDim = [32, 59, 64, 80, 128, 256];
  const short = [[1, 128], [1, 339], [3, 1024], [64, 800], [64, 256], [3, 799], [64, 2048], [128, 128]]; // prettier-ignore
  const long = [[16, 20000], [1, 131072], [16, 131072]]; // prettier-ignore
  const settings = [
    ...drawOptions({ lengths: short, headDim }, options, 12),
    ...drawOptions({ lengths: long, headDim }, options, 2),
  ];
  await sweep('flash-attention 2, KV cache', settings, { sample: 12, run, cost });
});

test('flash-attention 3: KV caches', async () => {
  const options = {
    kvHeads: [6, 2, 1],
    appended: [false, true],
    padded: [false, true],
    ragged: [false, true],
    causal: [false, true],
    local: [false, true],
  };
  const sizes = {
    lengths: [[1, 128], [1, 339], [3, 1024], [64, 800], [64, 256], [3, 799], [64, 2048], [16, 20000], [128, 128], [256, 512], [2048, 3577]], // prettier-ignore
    headDim: [128],
    pageSize: [1, 4, 128],
  };
  await sweep('flash-attention 3, KV cache', drawOptions(sizes, options, 6), { sample: 8, run, cost });
});
