// torchFunctional(sdpa).scaledDotProductAttention: shapes and types, on PyTorch's own sample inputs and around them.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { torchFunctional } from 'sdpa/torch';
import { random16, randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { makeCheck } from './torch-check.mjs';

const sdpa = await loadVariant();
const { scaledDotProductAttention } = torchFunctional(sdpa);
const check = makeCheck(sdpa);
const random = randomSource(21);

describe('the sample inputs of PyTorch', () => {
  const shapes = [
    [
      [4, 3, 8],
      [4, 6, 8],
      [4, 6, 8],
    ],
    [
      [4, 4, 3, 8],
      [4, 4, 6, 8],
      [4, 4, 6, 8],
    ],
    [
      [4, 3, 8],
      [4, 4, 6, 8],
      [4, 4, 6, 8],
    ],
    [
      [4, 4, 3, 8],
      [4, 4, 6, 8],
      [4, 4, 6, 16],
    ],
  ];
  for (const [q, k, v] of shapes) {
    for (const isCausal of [false, true]) {
      for (const p of [0, 0.5]) {
        for (const enableGqa of [false, true]) {
          test(`q [${q}], k [${k}], v [${v}], isCausal ${isCausal}, dropoutP ${p}, enableGqa ${enableGqa}`, () => {
            const dropout = p > 0 ? { p, seed: 77 } : undefined;
            const [query, key, value] = [random.tensor(...q), random.tensor(...k), random.tensor(...v)];
            const without = isCausal || p > 0 ? {} : undefined;
            check(query, key, value, { isCausal, enableGqa, ...(dropout && { dropout }) }, without);
          });
        }
      }
    }
  }
  test('a float mask (3, 6)', () => {
    const [query, key, value] = [random.tensor(4, 4, 3, 8), random.tensor(4, 4, 6, 8), random.tensor(4, 4, 6, 8)];
    check(query, key, value, { attnMask: random.tensor(3, 6) }, {});
  });
});

describe('leading dimensions', () => {
  for (const [q, k, v] of [
    [
      [3, 8],
      [6, 8],
      [6, 5],
    ],
    [
      [5, 3, 8],
      [5, 6, 8],
      [5, 6, 5],
    ],
    [
      [2, 3, 2, 3, 8],
      [2, 3, 2, 6, 8],
      [2, 3, 2, 6, 5],
    ],
    [
      [2, 1, 3, 2, 2, 3, 4],
      [2, 1, 3, 2, 2, 6, 4],
      [2, 1, 3, 2, 2, 6, 4],
    ],
    [
      [3, 8],
      [2, 4, 6, 8],
      [2, 4, 6, 5],
    ],
    [
      [2, 4, 3, 8],
      [6, 8],
      [6, 5],
    ],
    [
      [2, 4, 3, 8],
      [2, 1, 6, 8],
      [2, 1, 6, 5],
    ],
    [
      [2, 4, 3, 8],
      [1, 4, 6, 8],
      [4, 6, 5],
    ],
    [
      [1, 4, 3, 8],
      [2, 1, 6, 8],
      [2, 4, 6, 5],
    ],
    [
      [2, 1, 3, 8],
      [1, 4, 6, 8],
      [1, 1, 6, 5],
    ],
    [
      [1, 1, 3, 8],
      [1, 1, 6, 8],
      [3, 2, 6, 5],
    ],
    [
      [3, 1, 2, 3, 8],
      [2, 1, 6, 8],
      [3, 1, 1, 6, 5],
    ],
  ]) {
    test(`of q [${q}], k [${k}], v [${v}] broadcast`, () => {
      check(random.tensor(...q), random.tensor(...k), random.tensor(...v), { scale: 0.7 });
    });
  }

  test('heads of key and value are shared by groups with enableGqa', () => {
    for (const [q, k] of [
      [
        [2, 6, 3, 8],
        [2, 2, 5, 8],
      ],
      [
        [2, 6, 3, 8],
        [2, 1, 5, 8],
      ],
      [
        [6, 3, 8],
        [3, 5, 8],
      ],
      [
        [6, 3, 8],
        [2, 2, 5, 8],
      ],
      [
        [2, 3, 6, 3, 8],
        [2, 1, 2, 5, 8],
      ],
      [
        [2, 6, 3, 8],
        [2, 6, 5, 8],
      ],
    ]) {
      const [query, key, value] = [random.tensor(...q), random.tensor(...k), random.tensor(...k)];
      check(query, key, value, { enableGqa: true });
      check(
        query,
        key,
        value,
        { enableGqa: true, isCausal: true, dropout: { p: 0.3, seed: 2 ** 40 + 9 } },
        { enableGqa: true },
      );
    }
  });

  test('a head that all query heads share, and a mask that all batch rows share, are not repeated in memory', async () => {
    /** Peak of a fresh instance, and the bytes of what it was given. @param {any[]} tensors @param {any} [options] */
    const peakOf = async (tensors, options) => {
      const fresh = await loadVariant();
      torchFunctional(fresh).scaledDotProductAttention(...tensors, options);
      const { peak } = fresh.memory();
      fresh.dispose();
      return peak;
    };
    const query = random.tensor(2, 8, 4, 64);
    const key = random.tensor(2, 1, 4000, 64);
    const keyBytes = 4 * key.data.length;
    const shared = await peakOf([query, key, key]);
    assert.ok(shared < 3 * keyBytes, `peak ${shared} for twice ${keyBytes}`);

    const [long, few] = [random.tensor(4, 2, 256, 4), random.tensor(4, 2, 2000, 4)];
    const attnMask = random.tensor(2, 256, 2000);
    const maskBytes = 4 * attnMask.data.length;
    const masked = await peakOf([long, few, few], { attnMask });
    assert.ok(masked < 2 * maskBytes, `peak ${masked} for ${maskBytes}`);
  });

  test('nothing in, nothing out, and no key gives zeros', () => {
    for (const [q, k, shape] of [
      [
        [0, 3, 8],
        [0, 6, 8],
        [0, 3, 8],
      ],
      [
        [2, 0, 3, 8],
        [2, 0, 6, 8],
        [2, 0, 3, 8],
      ],
      [
        [2, 0, 8],
        [2, 6, 8],
        [2, 0, 8],
      ],
      [
        [2, 3, 8],
        [2, 0, 8],
        [2, 3, 8],
      ],
      [
        [0, 2, 3, 8],
        [2, 6, 8],
        [0, 2, 3, 8],
      ],
    ]) {
      const got = scaledDotProductAttention(random.tensor(...q), random.tensor(...k), random.tensor(...k));
      assert.deepEqual(got.shape, shape);
      assert.deepEqual(got.data, new Float32Array(shape.reduce((a, n) => a * n, 1)));
    }
  });
});

describe('types', () => {
  for (const dtype of /** @type {const} */ (['float16', 'bfloat16'])) {
    test(`${dtype} in, ${dtype} out, rounded once`, () => {
      /** @param {number[]} shape */
      const make = (...shape) => ({
        data: random16(
          shape.reduce((a, n) => a * n, 1),
          dtype,
          random.uniform,
        ),
        shape,
        dtype,
      });
      const [query, key] = [make(2, 3, 8), make(4, 1, 5, 8)];
      const got = scaledDotProductAttention(query, key, key);
      assert.deepEqual([got.dtype, got.shape], [dtype, [4, 2, 3, 8]]);
      assert.ok(got.data instanceof Uint16Array);
      // Widened by hand: the float32 result, to which the 16-bit one must be the nearest.
      const repeat = { ...query, shape: [1, 2, 3, 8], data: query.data };
      const wide = [0, 1, 2, 3].flatMap((b) => [
        ...sdpa.attention(repeat, part(key, b, 40), part(key, b, 40)).out.data,
      ]);
      const share = dtype === 'float16' ? 2 ** -11 : 2 ** -8;
      const values = sdpa.attention(
        { data: new Float32Array(got.data.length), shape: [1, got.data.length, 1, 1] },
        { data: new Float32Array(got.data.length), shape: [1, got.data.length, 1, 1] },
        { data: got.data, shape: [1, got.data.length, 1, 1], dtype },
      ).out.data;
      values.forEach((value, i) => assert.ok(Math.abs(value - wide[i]) <= share * Math.abs(wide[i]) + 2 ** -24));
    });
  }

  /** @param {any} tensor @param {number} b @param {number} size */
  function part({ data, dtype }, b, size) {
    return { data: data.slice(b * size, (b + 1) * size), shape: [1, 1, 5, 8], dtype };
  }

  test('tensors in wasm memory and those of other libraries pass', () => {
    const [query, key, value] = [random.tensor(2, 3, 8), random.tensor(2, 5, 8), random.tensor(2, 5, 8)];
    const want = scaledDotProductAttention(query, key, value);
    const resident = [query, key, value].map(({ data, shape }) => {
      const own = sdpa.tensor(shape);
      own.data.set(data);
      return own;
    });
    assert.deepEqual(scaledDotProductAttention(...resident), want);
    resident.forEach((tensor) => tensor.dispose());
    const theirs = [query, key, value].map(({ data, shape }) => ({ data, dims: shape, type: 'float32' }));
    assert.deepEqual(scaledDotProductAttention(...theirs), want);
  });
});
