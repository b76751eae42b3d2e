// Every case distilled from a public bug report, through `sdpa.attention` and, where it has gradients, `sdpa.attentionBackward`.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { AttentionError } from 'sdpa';
import { loadVariant } from '../helpers/sdpa.mjs';
import { listCaseFiles, numbers, readCaseFile } from './case-files.mjs';
import { assertClose } from './compare.mjs';

const COUNT = 51;
const FIELDS = [
  ...[
    'name',
    'source',
    'note',
    'q',
    'k',
    'v',
    'mask',
    'options',
    'setup',
    'expected',
    'expectedWeights',
    'expectedLse',
  ],
  ...['backward', 'tolerance'],
];
const OPTIONS = ['causal', 'causalAlign', 'scale', 'softcap', 'window', 'numKvHeads'];

/** @type {Awaited<ReturnType<typeof loadVariant>>} */
let sdpa;
before(async () => {
  sdpa = await loadVariant();
});
after(() => sdpa.dispose());

describe('cases/bugs', () => {
  const ran = new Set();
  for (const file of listCaseFiles('bugs')) {
    const read = readCaseFile('bugs', file);
    assertKnown(file, Object.keys(read), FIELDS);
    assertKnown(file, Object.keys(read.options), OPTIONS);

    if (read.expected.error) {
      test(`${read.name}: throws and leaves the instance usable`, () => {
        ran.add(file);
        checkError(read);
      });
      continue;
    }
    test(`${read.name}: ${read.note ?? 'as expected'}`, () => {
      ran.add(file);
      checkForward(read);
    });
    if (read.backward) {
      test(`${read.name}: gradients`, () => checkGradients(read));
    }
  }

  test(`all ${COUNT} files of cases/bugs were run`, () => {
    assert.equal(ran.size, COUNT);
  });
});

function checkForward(read) {
  const bound = (want) => read.tolerance * (1 + Math.abs(want));
  const { query, key, value, options } = toCall(read);
  const { out } = sdpa.attention(query, key, value, options);
  assert.deepEqual(out.shape, read.expected.shape);
  assertClose('out', out.data, numbers(read.expected), bound);

  const full = sdpa.attention(query, key, value, { ...options, returnLse: true, scores: 'weights' });
  assert.deepEqual(full.out.data, out.data, 'asking for lse and weights changes no bit of the output');
  if (read.expectedWeights) {
    assert.deepEqual(full.scores.shape, read.expectedWeights.shape);
    assertClose('weights', full.scores.data, numbers(read.expectedWeights), bound);
  }
  if (read.expectedLse) {
    assert.deepEqual(full.lse.shape, read.expectedLse.shape);
    assertClose('lse', full.lse.data, numbers(read.expectedLse), bound);
  }
}

function checkGradients(read) {
  const bound = (want) => read.tolerance * (1 + Math.abs(want));
  const { dOut, ...wanted } = read.backward;
  assertKnown(read.name, Object.keys(wanted), ['dQ', 'dK', 'dV']);
  const { query, key, value, options } = toCall(read);
  const forward = sdpa.attention(query, key, value, { ...options, returnLse: true });
  const given = { ...forward, dOut: toTensor(dOut) };
  const { dQuery, dKey, dValue } = sdpa.attentionBackward(query, key, value, given, options);
  for (const [name, tensor] of Object.entries({ dQ: dQuery, dK: dKey, dV: dValue })) {
    assert.deepEqual(tensor.shape, wanted[name].shape);
    assertClose(name, tensor.data, numbers(wanted[name]), bound);
  }
}

function checkError(read) {
  const { query, key, value, options } = toCall(read);
  assert.throws(
    () => sdpa.attention(query, key, value, options),
    (error) => {
      assert.ok(error instanceof TypeError || error instanceof RangeError, `${error}`);
      assert.ok(AttentionError.is(error));
      return true;
    },
  );
  const one = { data: Float32Array.of(3), shape: [1, 1, 1, 1] };
  assert.deepEqual([...sdpa.attention(one, one, one).out.data], [3]);
}

/** The case as arguments of `sdpa.attention`. */
function toCall(read) {
  const { causal, causalAlign, scale, softcap, window, numKvHeads } = read.options;
  const [query, key, value] = ['q', 'k', 'v'].map((name) => toTensor(read[name], read.setup?.views?.[name]));
  if (numKvHeads !== undefined) assert.equal(key.shape[1], numKvHeads);

  const options = {};
  if (scale !== undefined) options.scale = scale;
  if (softcap !== undefined) options.softcap = softcap;
  if (causal !== undefined) options.causal = causal;
  if (window !== undefined) options.window = [window.left ?? Infinity, window.right ?? Infinity];
  if (causal || window) options.align = causalAlign === 'top-left' ? 'upper-left' : 'lower-right';
  if (read.mask?.kind === 'bool')
    options.mask = { data: Uint8Array.from(read.mask.data, Number), shape: read.mask.shape };
  if (read.mask?.kind === 'additive') options.bias = toTensor(read.mask);
  return { query, key, value, options };
}

/** A float32 tensor; with `view`, one that lies inside a larger buffer of NaN. */
function toTensor(tensor, view) {
  const values = numbers(tensor);
  const { before: start, after: end } = view ?? { before: 0, after: 0 };
  const data = new Float32Array(start + values.length + end).fill(NaN).subarray(start, start + values.length);
  data.set(values);
  return { data, shape: tensor.shape };
}

/** A field that the runner does not know would be a part of the case left out. */
function assertKnown(file, names, known) {
  for (const name of names) assert.ok(known.includes(name), `${file}: unknown field ${name}`);
}
