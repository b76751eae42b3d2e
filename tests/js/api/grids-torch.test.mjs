// The sample inputs of PyTorch's OpInfo of scaled_dot_product_attention, through sdpa/torch. They are small: each is drawn often.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { torchFunctional } from 'sdpa/torch';
import { isDropped } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { chosenRows } from './grids-oracle.mjs';
import { cross, numbers, sweep } from './grids-sweep.mjs';

const { scaledDotProductAttention } = torchFunctional(await loadVariant());

/** Repeats a tensor until it has four dimensions, 4 batch rows and 4 heads. @param {any} tensor */
function broadcast({ data, shape }) {
  const [L, D] = shape.slice(-2);
  const heads = shape.length === 4 ? 16 : 4;
  const all = new Float32Array(16 * L * D);
  for (let n = 0; n < 16; n++) all.set(data.subarray((n % heads) * L * D, ((n % heads) + 1) * L * D), n * L * D);
  return all;
}

/**
 * @param {any} setting
 * @param {number} seed
 * @param {import('./grids-sweep.mjs').Errors} errors
 */
function run({ shapes, isCausal, dropoutP, enableGqa, mask }, seed, errors) {
  const { tensor } = numbers(seed);
  const [query, key, value] = shapes.map((/** @type {number[]} */ shape) => tensor(...shape));
  const attnMask = mask ? tensor(3, 6) : undefined;
  const got = scaledDotProductAttention(query, key, value, {
    isCausal,
    enableGqa,
    attnMask,
    ...(dropoutP > 0 && { dropoutP, seed }),
  });
  // Without a head axis the first one is the heads' or the batch's, which differ in nothing but the cells that dropout takes.
  const isBatched = shapes.some((/** @type {number[]} */ shape) => shape.length === 4);
  const [B, H] = isBatched ? [4, 4] : [1, 4];
  const [, , v] = shapes;
  const Dv = v[v.length - 1];
  assert.deepEqual(got.shape, [...(isBatched ? [4] : []), 4, 3, Dv]);
  const [q, k, values] = [query, key, value].map((x) => (isBatched ? broadcast(x) : x.data));
  const drop = { p: dropoutP, seed };
  const want = chosenRows(
    {
      sizes: { B, Hq: H, Hkv: H, L: 3, S: 6, D: 8, Dv },
      exact: { query: q, key: k },
      plain: { query: q, key: k },
      value: values,
      ...(attnMask && { bias: attnMask.data }),
      sees: (_b, _h, i, j) => !isCausal || j <= i,
      ...(dropoutP > 0 && { dropout: dropoutP, dropped: (b, h, i, j) => isDropped(drop, b, h, i, j) }),
    },
    [0, 1, 2],
  );
  errors.add(got.data, want.exact.out, want.plain.out);
  return B * H * 3;
}

test('PyTorch: sample inputs of scaled_dot_product_attention', async () => {
  const kv = [4, 4, 6, 8];
  const settings = [
    ...cross({
      shapes: [
        [[4, 3, 8], [4, 6, 8], [4, 6, 8]], // prettier-ignore
        [[4, 4, 3, 8], kv, kv],
        [[4, 3, 8], kv, kv],
        [[4, 4, 3, 8], kv, [4, 4, 6, 16]],
      ],
      isCausal: [false, true],
      dropoutP: [0, 0.5],
      enableGqa: [false, true],
    }),
    { shapes: [[4, 4, 3, 8], kv, kv], isCausal: false, dropoutP: 0, mask: true },
  ];
  await sweep('PyTorch, sample inputs', settings, { sample: settings.length, run });
});
