// attentionBackward() against its formulas in float64, for every option alone and beside causal; what it gives in which shapes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { assertSameBits } from '../helpers/workers.mjs';
import { differentiate, entries, excludeEachOther, problemOf } from './gradients-options.mjs';
import { assertGradients, referenceGradients } from './gradients-reference.mjs';

const sdpa = await loadVariant();

/** @param {ReturnType<typeof problemOf>} problem */
function check(problem) {
  const { query, key, value, upstream, options } = problem;
  const got = differentiate(sdpa, problem);
  assertGradients(got, referenceGradients(query, key, value, upstream, options));
  return got;
}

const causal = entries.filter(({ name }) => name.startsWith('causal'));

for (const entry of entries) {
  test(`${entry.name}: the gradients are those of the formulas, alone and beside causal`, () => {
    check(problemOf([entry]));
    for (const other of causal) if (!excludeEachOther(entry, other)) check(problemOf([other, entry]));
  });
}

test('no option and no dLse: the gradients are those of the formulas', () => {
  const problem = problemOf([]);
  const got = check({ ...problem, upstream: { dOut: problem.upstream.dOut } });
  assert.deepEqual(Object.keys(got).sort(), ['dKey', 'dQuery', 'dScale', 'dValue']);
  assert.equal(typeof got.dScale, 'number');
});

test('many options at once', () => {
  const names = ['softcap', 'bias', 'causal', 'globalKeys under a window', 'alibiSlopes', 'queryLengths', 'kvLengths'];
  const more = ['mask', 'sinks', 'smoothSoftmax', 'dropout', 'heads that share keys'];
  check(problemOf(entries.filter(({ name }) => [...names, ...more].includes(name))));
});

test('sinks beside smoothSoftmax have the gradients of what was given, sinks of -Infinity those of none', () => {
  const problem = problemOf([]);
  for (const sinks of [
    [0.5, -40],
    [-Infinity, 3],
  ]) {
    check({ ...problem, options: { sinks, smoothSoftmax: true } });
    const { dSinks } = check({ ...problem, options: { sinks } });
    assert.deepEqual(dSinks.shape, [2]);
  }
});

test('a bias of any shape has a gradient of that shape, summed over its repeated dimensions', () => {
  const problem = problemOf(entries.filter(({ name }) => name === 'heads that share keys'));
  const { B, Hq, L, S } = problem.sizes;
  const random = randomSource(3);
  for (const shape of [
    [S],
    [1, S],
    [L, 1],
    [L, S],
    [Hq, 1, S],
    [1, L, S],
    [B, 1, 1, S],
    [B, Hq, L, S],
    [1, 1, 1, 1],
    [],
  ]) {
    const { dBias } = check({ ...problem, options: { bias: random.tensor(...shape) } });
    assert.deepEqual(dBias.shape, shape);
  }
});

test('gradients have the shapes of what they are gradients of, in every rank and layout, with the same bits', () => {
  const sizes = { B: 1, Hq: 2, Hkv: 1 };
  const problem = problemOf([], sizes);
  const whole = differentiate(sdpa, problem);
  const cut = (/** @type {any} */ x, /** @type {number} */ rank) => ({ ...x, shape: x.shape.slice(4 - rank) });
  const { query, key, value, upstream } = problem;
  const three = differentiate(sdpa, {
    ...problem,
    query: cut(query, 3),
    key: cut(key, 3),
    value: cut(value, 3),
    upstream: { dOut: cut(upstream.dOut, 3), dLse: { ...upstream.dLse, shape: [2, problem.sizes.L] } },
  });
  assert.deepEqual(three.dQuery.shape, query.shape.slice(1));
  assert.deepEqual(three.dKey.data, whole.dKey.data);

  const turned = (/** @type {any} */ { data, shape: [b, x, y, d] }) => {
    const to = new Float32Array(data.length);
    for (let n = 0; n < data.length; n++) {
      const [c, j, i, a] = [n % d, Math.floor(n / d) % y, Math.floor(n / d / y) % x, Math.floor(n / d / y / x)];
      to[((a * y + j) * x + i) * d + c] = data[n];
    }
    return { data: to, shape: [b, y, x, d] };
  };
  const blhd = differentiate(sdpa, {
    ...problem,
    query: turned(query),
    key: turned(key),
    value: turned(value),
    upstream: { dOut: turned(upstream.dOut), dLse: upstream.dLse },
    options: { layout: 'blhd' },
  });
  const back = { dQuery: turned(blhd.dQuery), dKey: turned(blhd.dKey), dValue: turned(blhd.dValue) };
  const { dQuery, dKey, dValue } = whole;
  assertSameBits(back, { dQuery, dKey, dValue });

  const one = problemOf([], { B: 1, Hq: 1, Hkv: 1 });
  const two = differentiate(sdpa, {
    ...one,
    query: cut(one.query, 2),
    key: cut(one.key, 2),
    value: cut(one.value, 2),
    upstream: { dOut: cut(one.upstream.dOut, 2), dLse: { ...one.upstream.dLse, shape: [one.sizes.L] } },
  });
  assert.deepEqual(two.dQuery.shape, one.query.shape.slice(2));
  assert.deepEqual(two.dQuery.data, differentiate(sdpa, one).dQuery.data);
});

test('resident tensors and views with an offset give the same bits, and nothing is left allocated', () => {
  const problem = problemOf(entries.filter(({ name }) => name === 'bias'));
  const { query, key, value, upstream, options } = problem;
  const { out, lse } = sdpa.attention(query, key, value, { ...options, returnLse: true });
  const want = differentiate(sdpa, problem);
  const { held } = sdpa.memory();
  const resident = (/** @type {any} */ { data, shape }) => {
    const tensor = sdpa.tensor(shape);
    tensor.data.set(data);
    return tensor;
  };
  const tensors = [query, key, value, out, lse, upstream.dOut, upstream.dLse, options.bias].map(resident);
  const [q, k, v, o, l, dOut, dLse, bias] = tensors;
  assertSameBits(tensorsOf(sdpa.attentionBackward(q, k, v, { out: o, lse: l, dOut, dLse }, { bias })), tensorsOf(want));
  tensors.forEach((tensor) => tensor.dispose());
  const shifted = (/** @type {any} */ { data, shape }) => {
    const padded = new Float32Array(data.length + 5);
    padded.set(data, 3);
    return { data: padded.subarray(3, 3 + data.length), shape };
  };
  const given = { out: shifted(out), lse: shifted(lse), dOut: shifted(upstream.dOut), dLse: shifted(upstream.dLse) };
  const got = sdpa.attentionBackward(shifted(query), shifted(key), shifted(value), given, options);
  assertSameBits(tensorsOf(got), tensorsOf(want));
  assert.equal(sdpa.memory().held, held);
});

test('the options of the forward call can be passed on with their returnLse', () => {
  const problem = problemOf([]);
  assertSameBits(
    tensorsOf(differentiate(sdpa, { ...problem, options: { returnLse: true } })),
    tensorsOf(differentiate(sdpa, problem)),
  );
});

test('no queries, no keys, no batch: zeros and empty arrays', () => {
  const zeros = (/** @type {Float32Array} */ data) => data.every((x) => x === 0);
  const noQueries = differentiate(sdpa, problemOf([], { L: 0 }));
  assert.deepEqual(noQueries.dQuery.shape, [2, 2, 0, 10]);
  assert.ok(zeros(noQueries.dKey.data) && noQueries.dKey.data.length > 0);
  const noKeys = differentiate(sdpa, problemOf([], { S: 0 }));
  assert.ok(zeros(noKeys.dQuery.data) && noKeys.dQuery.data.length > 0);
  assert.equal(noKeys.dScale, 0);
  assert.deepEqual(noKeys.dValue.shape, [2, 2, 0, 14]);
  const noBatch = differentiate(sdpa, {
    ...problemOf([], { B: 0 }),
    options: { bias: { data: new Float32Array(61), shape: [61, 1] } },
  });
  assert.ok(zeros(noBatch.dBias.data) && noBatch.dBias.data.length === 61);
});

test('rows that see nothing and keys that nobody sees have gradients of exactly 0', () => {
  const problem = problemOf([]);
  const { L, S, D, Dv } = problem.sizes;
  const mask = new Uint8Array(L * S).fill(1);
  mask.fill(0, 5 * S, 6 * S);
  for (let i = 0; i < L; i++) mask[i * S + 70] = 0;
  const { dQuery, dKey, dValue } = check({ ...problem, options: { mask: { data: mask, shape: [L, S] } } });
  for (let head = 0; head < 4; head++) {
    for (let c = 0; c < D; c++) assert.equal(dQuery.data[(head * L + 5) * D + c], 0);
    for (let c = 0; c < D; c++) assert.equal(dKey.data[(head * S + 70) * D + c], 0);
    for (let c = 0; c < Dv; c++) assert.equal(dValue.data[(head * S + 70) * Dv + c], 0);
  }
});

test('what cannot be seen is not read: NaN behind a length or a mask changes no bit', () => {
  const problem = problemOf(entries.filter(({ name }) => name === 'kvLengths' || name === 'queryLengths'));
  const { sizes, options, upstream } = problem;
  const want = differentiate(sdpa, problem);
  const poison = (/** @type {any} */ { data, shape }, /** @type {Int32Array} */ lengths, width = shape[3] ?? 1) => {
    const copy = data.slice();
    for (let b = 0; b < sizes.B; b++) {
      for (let h = 0; h < shape[1]; h++) {
        const row = (b * shape[1] + h) * shape[2];
        copy.fill(NaN, (row + lengths[b]) * width, (row + shape[2]) * width);
      }
    }
    return { data: copy, shape };
  };
  const got = differentiate(sdpa, {
    ...problem,
    query: poison(problem.query, options.queryLengths),
    key: poison(problem.key, options.kvLengths),
    value: poison(problem.value, options.kvLengths),
    upstream: { dOut: poison(upstream.dOut, options.queryLengths), dLse: poison(upstream.dLse, options.queryLengths) },
  });
  assertSameBits(tensorsOf(got), tensorsOf(want));
  assert.equal(got.dScale, want.dScale);
});

/** The gradients that are tensors. @param {any} result */
const tensorsOf = (result) => Object.fromEntries(Object.entries(result).filter(([, x]) => typeof x !== 'number'));

test('a row beyond queryLengths has the sink for its lse, and hands dLse on to it', () => {
  const ones = (/** @type {number[]} */ ...shape) => ({
    data: new Float32Array(shape.reduce((n, size) => n * size)).fill(1),
    shape,
  });
  const [query, key] = [ones(2, 1), ones(1, 1)];
  const upstream = {
    dOut: { data: new Float32Array(2), shape: [2, 1] },
    dLse: { data: Float32Array.of(0, 1), shape: [2] },
  };
  const mask = { data: [true, false], shape: [2, 1] };
  for (const hidden of [{ queryLengths: Int32Array.of(1) }, { mask }]) {
    const options = { sinks: [2], ...hidden };
    const { out, lse } = sdpa.attention(query, key, key, { ...options, returnLse: true });
    assert.equal(lse.data[1], 2);
    const { dSinks } = sdpa.attentionBackward(query, key, key, { out, lse, ...upstream }, options);
    assert.deepEqual(Array.from(dSinks.data), [1]);
  }
});
