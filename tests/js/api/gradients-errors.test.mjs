// What attentionBackward() and gradientCheck() refuse, before anything is changed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from 'sdpa';
import { assertThrows } from '../helpers/errors.mjs';
import { loadVariant, VARIANT } from '../helpers/sdpa.mjs';
import { problemOf } from './gradients-options.mjs';

const sdpa = await loadVariant();
const { query, key, value, upstream } = problemOf([], { B: 1, L: 5, S: 7 });
const { out, lse } = sdpa.attention(query, key, value, { returnLse: true });
const good = { out, lse, ...upstream };

/**
 * @param {any} given
 * @param {any} [options]
 */
const backward = (given, options) => () => sdpa.attentionBackward(query, key, value, given, options);

test('what the forward pass gave and its gradients are an object of tensors of the right shapes', () => {
  assertThrows(backward(undefined), 'type', /needs an object \{ out, lse, dOut, dLse\? \}.*undefined/);
  assertThrows(backward([out, lse, upstream.dOut]), 'type', /needs an object/);
  for (const name of ['out', 'lse', 'dOut']) {
    assertThrows(backward({ ...good, [name]: undefined }), 'type', new RegExp(`^${name} must be a tensor`));
  }
  assertThrows(backward({ ...good, dLse: null }), 'type', /^dLse must be a tensor/);
  assertThrows(backward({ ...good, dout: out }), 'unknown-option', /no 'dout'.*out, lse, dOut, dLse/);
  const wrong = { data: new Float32Array(8), shape: [1, 2, 4] };
  assertThrows(backward({ ...good, lse: wrong }), 'shape', /^lse has shape \[1, 2, 4\] but must have \[1, 2, 5\]/);
  assertThrows(backward({ ...good, dLse: wrong }), 'shape', /^dLse has shape/);
  const flat = { data: out.data, shape: [out.data.length] };
  assertThrows(backward({ ...good, out: flat }), 'shape', /^out has shape \[140\] but must have \[1, 2, 5, 14\]/);
  assertThrows(backward({ ...good, dOut: flat }), 'shape', /^dOut has shape/);
  assertThrows(backward({ ...good, dOut: { data: out.data.slice(1), shape: out.shape } }), 'shape', /139 elements/);
  const half = { data: new Uint16Array(140), shape: out.shape, dtype: 'float16' };
  assertThrows(backward({ ...good, dOut: half }), 'type', /^dOut must be float32, got float16/);
});

test('options are those of the forward call, checked as there; out and scores are none', () => {
  assertThrows(backward(good, { out: new Float32Array(140) }), 'option', /does not take the option 'out'/);
  assertThrows(backward(good, { scores: 'weights' }), 'option', /does not take the option 'scores'/);
  assertThrows(backward(good, { causal: true }), 'align-required', /causal/);
  assertThrows(backward(good, { casual: true }), 'unknown-option', /^attentionBackward has no option 'casual'/);
  assertThrows(backward(good, { heads: 2 }), 'unknown-option', /^(?!.*scores).* the options are .*causal/);
  assertThrows(backward(good, { softcap: -1 }), 'option', /softcap/);
  assertThrows(backward(good, { sinks: [1, 2, 3] }), 'shape', /sinks/);
  assertThrows(backward(good, 7), 'type', /options must be an object/);
  assertThrows(backward(good, new Map()), 'type', /options must be an object/);
  assertThrows(() => sdpa.attentionBackward(query, value, value, good), 'shape', /head size/);
});

test('gradientCheck refuses the same, and wrong numbers of samples and seeds', () => {
  const check = (/** @type {any} */ options) => () => sdpa.gradientCheck(query, key, value, options);
  assertThrows(check({ samples: 0 }), 'option', /samples must be a whole number, 1 or more/);
  assertThrows(check({ seed: 1.5 }), 'option', /seed must be a whole number/);
  assertThrows(check({ scores: 'biased' }), 'option', /gradientCheck does not take the option 'scores'/);
  assertThrows(check({ sample: 3 }), 'unknown-option', /sample/);
  assertThrows(check('all'), 'type', /options must be an object/);
});

test('each property is read once', () => {
  /** @type {Record<string, number>} */
  const reads = {};
  const watched = (/** @type {any} */ target, /** @type {string} */ path) =>
    new Proxy(target, {
      get(object, name) {
        if (typeof name === 'string') reads[`${path}.${name}`] = (reads[`${path}.${name}`] ?? 0) + 1;
        return Reflect.get(object, name);
      },
    });
  const tensors = Object.fromEntries(Object.entries(good).map(([name, x]) => [name, watched({ ...x }, name)]));
  const options = watched({ sinks: watched({ data: new Float32Array(2), shape: [2] }, 'sinks'), scale: 1 }, 'options');
  sdpa.attentionBackward(query, key, value, watched(tensors, 'given'), options);
  assert.deepEqual(
    Object.entries(reads).filter(([, count]) => count > 1),
    [],
  );
  assert.equal(reads['options.sinks'], 1);
  assert.equal(reads['given.out'], 1);
});

test('a getter that spoils another tensor while the arguments are read is noticed', () => {
  const tensor = sdpa.tensor(out.shape);
  tensor.data.set(out.data);
  const given = {
    out: tensor,
    lse,
    get dOut() {
      tensor.dispose();
      return upstream.dOut;
    },
  };
  assertThrows(backward(given), 'disposed', /disposed/);
});

test('without memory nothing is changed, and the instance goes on', async () => {
  const small = await load({ variant: VARIANT, maxMemory: 400_000 });
  const { held } = small.memory();
  const big = problemOf([], { B: 1, L: 2000, S: 2000 });
  const zeros = (/** @type {number[]} */ ...shape) => ({
    data: new Float32Array(shape.reduce((a, b) => a * b)),
    shape,
  });
  const given = { out: zeros(1, 2, 2000, 14), lse: zeros(1, 2, 2000), dOut: zeros(1, 2, 2000, 14) };
  const error = assertThrows(
    () => small.attentionBackward(big.query, big.key, big.value, given),
    'out-of-memory',
    /attentionBackward needs \d+ bytes/,
  );
  assert.ok(Number(error.needed) > Number(error.allowed));
  assert.equal(small.memory().held, held);
  small.attentionBackward(query, key, value, good);
  small.dispose();
  assertThrows(() => small.attentionBackward(query, key, value, good), 'disposed', /disposed/);
  assertThrows(() => small.gradientCheck(query, key, value), 'disposed', /disposed/);
});
