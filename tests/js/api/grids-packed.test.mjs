// flash-attention 2's and 3's tests of packed sequences (tests/test_flash_attn.py and hopper/test_flash_attn.py), through cuSeqlens:
// three sequences of random lengths, options drawn for each size, at most six heads.

import { test } from 'node:test';
import { isDropped } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { chosenRows } from './grids-oracle.mjs';
import { drawOptions, numbers, pickRows, rowsOf, sweep } from './grids-sweep.mjs';

const sdpa = await loadVariant();
const sequences = 3;

/**
 * @param {any} setting
 * @param {number} seed
 * @param {import('./grids-sweep.mjs').Errors} errors
 */
function run({ lengths, headDim: D, kvHeads, softcap, causal, local, alibi, dropout }, seed, errors) {
  const { tensor, whole, uniform } = numbers(seed);
  const group = 6 / kvHeads;
  const Hkv = lengths[0] * lengths[1] * D > 3e6 ? 1 : kvHeads;
  const Hq = Hkv * (lengths[0] * lengths[1] * D > 2e7 ? 1 : group);
  const starts = lengths.map((/** @type {number} */ most) => {
    const least = uniform() < 0.5 ? Math.max(1, most - 20) : Math.ceil(most / 3);
    const ends = Int32Array.from({ length: sequences + 1 }, (_, n) => (n === 0 ? 0 : whole(least, most)));
    ends.forEach((_, n) => n > 0 && (ends[n] += ends[n - 1]));
    return ends;
  });
  const [L, S] = starts.map((/** @type {Int32Array} */ ends) => ends[sequences]);
  const query = tensor(1, Hq, L, D);
  if (softcap) query.data.forEach((x, n) => (query.data[n] = softcap * x));
  const [key, value] = [tensor(1, Hkv, S, D), tensor(1, Hkv, S, D)];
  const window = local ? [whole(0, lengths[1] - 1), whole(0, lengths[1] - 1)] : [Infinity, Infinity];
  const slopes = alibi ? Float32Array.from({ length: Hq }, () => 0.3 * uniform()) : undefined;
  const drop = { p: dropout, seed: whole(0, 2 ** 40) };
  const got = sdpa.attention(query, key, value, {
    cuSeqlens: { query: starts[0], key: starts[1] },
    causal,
    softcap,
    ...(local && { window: /** @type {[number, number]} */ (window) }),
    ...(slopes && { alibiSlopes: slopes }),
    ...(dropout > 0 && { dropout: drop }),
  });

  const sequenceOf = Int32Array.from(
    { length: L },
    (_, i) => starts[0].findIndex((/** @type {number} */ end) => i < end) - 1,
  );
  const position = (/** @type {number} */ i) => {
    const s = sequenceOf[i];
    return i - starts[0][s + 1] + starts[1][s + 1];
  };
  const sees = (
    /** @type {number} */ _b,
    /** @type {number} */ _h,
    /** @type {number} */ i,
    /** @type {number} */ j,
  ) => {
    const s = sequenceOf[i];
    const p = position(i);
    return j >= starts[1][s] && j < starts[1][s + 1] && (!causal || j <= p) && j >= p - window[0] && j <= p + window[1];
  };
  const picks = pickRows(L, Math.max(3, Math.floor(1e6 / (Hq * lengths[1] * 2 * D))), whole);
  const want = chosenRows(
    {
      sizes: { B: 1, Hq, Hkv, L, S, D, Dv: D },
      exact: { query: query.data, key: key.data },
      plain: { query: query.data, key: key.data },
      value: value.data,
      softcap,
      sees,
      ...(slopes && { slopes, distance: (_b, i, j) => Math.abs(position(i) - j) }),
      ...(dropout > 0 && { dropout, dropped: (b, h, i, j) => isDropped(drop, b, h, i, j) }),
    },
    picks,
  );
  errors.add(rowsOf(got.out, picks), want.exact.out, want.plain.out);
  return Hq * picks.length;
}

test('flash-attention 2 and 3: packed sequences', async () => {
  const lengths = [[1, 147], [113, 203], [128, 217], [113, 211], [108, 256], [256, 512], [512, 256], [1024, 1024], [1023, 1024], [1024, 1023], [2048, 2048], [1, 1], [1, 3], [2, 1], [511, 1], [3, 513], [64, 128], [307, 256], [640, 128]]; // prettier-ignore
  const headDim = [32, 59, 64, 80, 96, 111, 128, 160, 192, 224, 256];
  const options = {
    kvHeads: [6, 2, 1],
    softcap: [0, 0, 15, 50],
    causal: [false, true],
    local: [false, true],
    alibi: [false, true],
    dropout: [0, 0.17],
  };
  await sweep('flash-attention 2 and 3, packed sequences', drawOptions({ lengths, headDim }, options, 3), {
    sample: 12,
    run,
    cost: ({ lengths: [L, S], headDim: D }) => (L * S * D) / 3e6,
  });
});
