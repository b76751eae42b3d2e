// torchFunctional(sdpa).scaledDotProductAttention: PyTorch's rules, on the shapes of PyTorch's own sample inputs and around them.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { torchFunctional } from 'sdpa/torch';
import { largestError, random16, randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { torchReference } from './torch-reference.mjs';

const sdpa = await loadVariant();
const { scaledDotProductAttention } = torchFunctional(sdpa);
const random = randomSource(21);
const tolerance = 2e-6;

/** @param {number[]} shape @param {number} share of true */
const booleans = (shape, share = 0.6) => ({
  data: Uint8Array.from({ length: shape.reduce((a, n) => a * n, 1) }, () => (random.uniform() < share ? 1 : 0)),
  shape,
  bool: true,
});

/** What the library gets of a mask above. @param {any} mask */
const given = (mask) => mask && { data: mask.data, shape: mask.shape };

/**
 * @param {any} query
 * @param {any} key
 * @param {any} value
 * @param {any} [options]
 * @param {any} [without] options that must make a difference
 */
function check(query, key, value, options = {}, without = undefined) {
  const { dropout, attnMask, ...rest } = options;
  const got = scaledDotProductAttention(query, key, value, {
    ...rest,
    ...(attnMask && { attnMask: given(attnMask) }),
    ...(dropout && { dropoutP: dropout.p, seed: dropout.seed }),
  });
  const want = torchReference(query, key, value, options);
  assert.deepEqual(got.shape, want.shape);
  assert.equal(got.dtype, 'float32');
  const worst = largestError(got.data, want.data);
  assert.ok(worst <= tolerance, `differs by ${worst}`);
  if (without) {
    const other = torchReference(query, key, value, without);
    assert.ok(largestError(other.data, want.data) > 1e-3, 'this data cannot tell whether the option is used');
  }
}

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

describe('isCausal', () => {
  test('is a lower triangle from the upper left, whatever the lengths', () => {
    for (const [L, S] of [
      [5, 9],
      [9, 5],
      [7, 7],
      [1, 6],
    ]) {
      const [query, key, value] = [random.tensor(2, L, 8), random.tensor(2, S, 8), random.tensor(2, S, 8)];
      check(query, key, value, { isCausal: true }, L < S ? {} : undefined);
      const triangle = {
        data: Uint8Array.from({ length: L * S }, (_, x) => Number(x % S <= Math.floor(x / S))),
        shape: [L, S],
      };
      const masked = scaledDotProductAttention(query, key, value, { attnMask: triangle });
      const causal = scaledDotProductAttention(query, key, value, { isCausal: true });
      assert.ok(largestError(masked.data, causal.data) <= 1e-6);
    }
  });
});

describe('attnMask', () => {
  const query = random.tensor(2, 3, 4, 8);
  const key = random.tensor(2, 3, 7, 8);
  const value = random.tensor(2, 3, 7, 8);
  const shapes = [
    [],
    [1],
    [7],
    [4, 7],
    [4, 1],
    [1, 7],
    [3, 4, 7],
    [1, 4, 7],
    [3, 1, 1],
    [2, 3, 4, 7],
    [2, 1, 1, 7],
    [1, 3, 4, 1],
    [2, 1, 4, 7],
  ];
  for (const shape of shapes) {
    test(`of shape [${shape}], boolean and float`, () => {
      const full = shape[shape.length - 1] === 7;
      check(query, key, value, { attnMask: booleans(shape) });
      check(query, key, value, { attnMask: random.tensor(...shape), scale: 0.2 }, full ? { scale: 0.2 } : undefined);
    });
  }

  test('broadcasts over leading dimensions of any number, some of them full', () => {
    const [q, k] = [random.tensor(2, 3, 2, 4, 8), random.tensor(2, 3, 2, 7, 8)];
    for (const shape of [
      [2, 3, 2, 4, 7],
      [2, 1, 2, 4, 7],
      [1, 3, 1, 4, 7],
      [3, 1, 1, 7],
      [2, 1, 1, 1, 7],
      [2, 4, 7],
    ]) {
      check(q, k, k, { attnMask: random.tensor(...shape) }, {});
      check(q, k, k, { attnMask: booleans(shape, 0.5) }, {});
    }
    check(random.tensor(4, 8), random.tensor(7, 8), random.tensor(7, 8), { attnMask: booleans([4, 7]) }, {});
    check(random.tensor(4, 8), k, k, { attnMask: booleans([3, 1, 1, 7]) }, {});
  });

  test('true attends: an array of booleans is the same as bytes', () => {
    const bytes = booleans([4, 7]);
    const flags = { data: Array.from(bytes.data, Boolean), shape: [4, 7] };
    assert.deepEqual(
      scaledDotProductAttention(query, key, value, { attnMask: flags }),
      scaledDotProductAttention(query, key, value, { attnMask: given(bytes) }),
    );
  });

  test('floats of 0 and 1 are added, and a 16-bit mask is a float mask', () => {
    const ones = random.tensor(4, 7);
    ones.data.forEach((x, i) => (ones.data[i] = x > 0 ? 1 : 0));
    check(query, key, value, { attnMask: ones }, { attnMask: { ...ones, bool: true } });
    const half = {
      data: new Uint16Array(28).map((_, i) => (ones.data[i] ? 0x3c00 : 0)),
      shape: [4, 7],
      dtype: 'float16',
    };
    assert.deepEqual(
      scaledDotProductAttention(query, key, value, { attnMask: half }),
      scaledDotProductAttention(query, key, value, { attnMask: ones }),
    );
  });

  test('-Infinity in a float mask is as false, and a row without a true is zeros', () => {
    const mask = booleans([4, 7]);
    mask.data.fill(0, 7, 14);
    const floats = { data: Float32Array.from(mask.data, (x) => (x ? 0 : -Infinity)), shape: [4, 7] };
    check(query, key, value, { attnMask: mask }, {});
    check(query, key, value, { attnMask: floats }, {});
    const { data } = scaledDotProductAttention(query, key, value, { attnMask: given(mask) });
    assert.ok(data.subarray(8, 16).every((x) => x === 0));
  });

  test('null is as none', () => {
    const want = scaledDotProductAttention(query, key, value);
    assert.deepEqual(scaledDotProductAttention(query, key, value, { attnMask: null, scale: null }), want);
    assert.deepEqual(scaledDotProductAttention(query, key, value, { attnMask: null, isCausal: false }), want);
  });
});

describe('scale', () => {
  const [query, key] = [random.tensor(2, 3, 8), random.tensor(2, 5, 8)];
  for (const scale of [0.3, 0, -1]) {
    test(`${scale} is used as given`, () => check(query, key, random.tensor(2, 5, 8), { scale }, {}));
  }
});

describe('dropoutP', () => {
  const [query, key, value] = [random.tensor(2, 3, 20, 8), random.tensor(2, 3, 30, 8), random.tensor(2, 3, 30, 8)];
  test('drops the same weights for the same seed, others for another', () => {
    for (const seed of [0, 1, 2 ** 53 - 1]) check(query, key, value, { dropout: { p: 0.4, seed } }, {});
    const first = scaledDotProductAttention(query, key, value, { dropoutP: 0.4, seed: 3 });
    assert.deepEqual(scaledDotProductAttention(query, key, value, { dropoutP: 0.4, seed: 3 }), first);
    assert.notDeepEqual(scaledDotProductAttention(query, key, value, { dropoutP: 0.4, seed: 4 }), first);
  });
  test('draws a seed for each call where none is given', () => {
    const [a, b] = [1, 2].map(() => scaledDotProductAttention(query, key, value, { dropoutP: 0.5 }).data);
    assert.notDeepEqual(a, b);
  });
  test('is off at 0, whatever the seed, and drops everything at 1', () => {
    const want = scaledDotProductAttention(query, key, value);
    assert.deepEqual(scaledDotProductAttention(query, key, value, { dropoutP: 0, seed: 5 }), want);
    const { data } = scaledDotProductAttention(query, key, value, { dropoutP: 1, seed: 5 });
    assert.ok(data.every((x) => x === 0));
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
