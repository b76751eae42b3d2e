// Bad values of the options that say which keys a query sees and what else counts in the softmax: each has its error, and leaves the
// instance as it was.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { masks } from 'sdpa';
import { assertRejects, assertThrows } from '../helpers/errors.mjs';
import { counting } from '../helpers/reads.mjs';
import { randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';

const sdpa = await loadVariant({ threads: 0 });
const random = randomSource(31);
const q = random.tensor(2, 4, 5, 8);
const k = random.tensor(2, 2, 7, 8);
const one = { q: random.tensor(1, 4, 5, 8), k: random.tensor(1, 2, 7, 8) };
const before = sdpa.attention(q, k, k);
const { held } = sdpa.memory();

afterEach(() => {
  assert.deepEqual(sdpa.attention(q, k, k), before, 'the instance computes as before');
  assert.equal(sdpa.memory().held, held, 'nothing is left allocated');
});

/**
 * Each case throws from attention() and rejects from attentionAsync(), and writes nothing into `out`.
 * @param {[any, string, RegExp][]} cases options, code, message
 * @param {any} [query]
 * @param {any} [key]
 */
async function refused(cases, query = q, key = k) {
  for (const [options, code, message] of cases) {
    const out = new Float32Array(query.data.length).fill(3);
    assertThrows(() => sdpa.attention(query, key, key, { ...options, out }), code, message);
    await assertRejects(sdpa.attentionAsync(query, key, key, { ...options, out }), code, message);
    assert.ok(out.every((x) => x === 3));
  }
}

const ints = (/** @type {number[]} */ ...numbers) => Int32Array.from(numbers);

test('chunk', () =>
  refused([
    [{ chunk: 0 }, 'option', /^chunk must be a whole number, 1 or more and below 2\^53, got 0$/],
    [{ chunk: -3 }, 'option', /chunk .* got -3/],
    [{ chunk: 1.5 }, 'option', /chunk .* got 1\.5/],
    [{ chunk: NaN }, 'option', /chunk .* got NaN/],
    [{ chunk: Infinity }, 'option', /chunk .* got Infinity/],
    [{ chunk: 2 ** 53 }, 'option', /chunk .* got 9007199254740992/],
    [{ chunk: '4' }, 'type', /chunk must be a number, got "4"/],
    [{ chunk: null }, 'type', /chunk must be a number, got null/],
  ]));

test('globalKeys', () =>
  refused([
    [{ globalKeys: -1 }, 'option', /^globalKeys must be a whole number, 0 or more and below 2\^53, got -1$/],
    [{ globalKeys: 0.5 }, 'option', /globalKeys .* got 0\.5/],
    [{ globalKeys: Infinity }, 'option', /globalKeys .* got Infinity/],
    [{ globalKeys: true }, 'type', /globalKeys must be a number, got true/],
  ]));

test('window', () =>
  refused([
    [{ window: [-1, 0] }, 'option', /window must be whole numbers, 0 or more, or Infinity, got \[-1, 0\]/],
    [{ window: [0, -1] }, 'option', /got \[0, -1\]/],
  ]));

test('align and queryOffset together', () =>
  refused([
    [{ chunk: 3, align: 'lower-right', queryOffset: 2 }, 'option', /align and queryOffset both/],
    [{ causal: true, align: 'upper-left', queryOffset: ints(0, 0) }, 'option', /align and queryOffset both/],
  ]));

for (const name of ['alibiSlopes', 'sinks']) {
  test(name, () =>
    refused(
      [
        [
          { [name]: [1, 2, 3] },
          'shape',
          new RegExp(`^${name} has shape \\[3\\] but must have \\[4\\] or \\[2, 4\\] \\(batch, query heads\\)$`),
        ],
        [{ [name]: new Float32Array(8) }, 'shape', /has shape \[8\]/],
        [{ [name]: [] }, 'shape', /has shape \[0\]/],
        [{ [name]: { data: new Float32Array(4), shape: [2, 2] } }, 'shape', /has shape \[2, 2\]/],
        [{ [name]: { data: new Float32Array(4), shape: [4, 1] } }, 'shape', /has shape \[4, 1\]/],
        [{ [name]: { data: new Float32Array(8), shape: [1, 2, 4] } }, 'shape', /has shape \[1, 2, 4\]/],
        [
          { [name]: { data: new Float32Array(7), shape: [2, 4] } },
          'shape',
          new RegExp(`${name} data has 7 elements but its shape \\[2, 4\\] needs 8`),
        ],
        [{ [name]: { data: new Float32Array(4) } }, 'type', new RegExp(`${name} needs a shape`)],
        [
          { [name]: { data: new Float64Array(4), shape: [4] } },
          'type',
          /must be a Float32Array or number\[\].* got a Float64Array/,
        ],
        [{ [name]: new Float64Array(4) }, 'type', /got a Float64Array/],
        [{ [name]: [1, 2, 3, '4'] }, 'type', new RegExp(`${name}\\[3\\] must be a number, got "4"`)],
        [
          { [name]: 0.5 },
          'type',
          new RegExp(`${name} must be a Float32Array or number\\[\\] with one number per query head`),
        ],
        [{ [name]: null }, 'type', /got null/],
        [{ [name]: [1, NaN, 0, 0] }, 'option', new RegExp(`${name}\\[1\\] must be .* got NaN`)],
        [{ [name]: [1, 2, Infinity, 0] }, 'option', new RegExp(`${name}\\[2\\] must be .* got Infinity`)],
      ].map(([options, code, message]) => [{ align: 'lower-right', .../** @type {any} */ (options) }, code, message]),
    ),
  );
}

test('slopes are finite, while a sink may be -Infinity', async () => {
  await refused([
    [
      { alibiSlopes: [1, 0, 0, -Infinity], align: 'upper-left' },
      'option',
      /alibiSlopes\[3\] must be finite, got -Infinity/,
    ],
  ]);
  assert.deepEqual(sdpa.attention(q, k, k, { sinks: Array(4).fill(-Infinity) }), before);
});

test('smoothSoftmax', () =>
  refused([
    [{ smoothSoftmax: 1 }, 'type', /smoothSoftmax must be true or false, got 1/],
    [{ smoothSoftmax: null }, 'type', /smoothSoftmax must be true or false, got null/],
  ]));

test('segmentIds', () =>
  refused([
    [{ segmentIds: { query: ints(1, 1, 1, 1, 1) } }, 'type', /^segmentIds needs query and key, and key is missing$/],
    [{ segmentIds: { key: new Int32Array(7) } }, 'type', /query is missing/],
    [
      { segmentIds: { query: ints(1, 1), key: new Int32Array(7) } },
      'shape',
      /^segmentIds.query has 2 ids but the query length is 5 and the batch 2$/,
    ],
    [
      { segmentIds: { query: new Int32Array(10), key: new Int32Array(5) } },
      'shape',
      /segmentIds.key has 5 ids but the key length is 7 and the batch 2/,
    ],
    [
      { segmentIds: { query: new Int32Array(5), key: { data: new Int32Array(14), shape: [7, 2] } } },
      'shape',
      /segmentIds.key has shape \[7, 2\] but the key length is 7/,
    ],
    [
      { segmentIds: { query: new Int32Array(5), key: { data: new Int32Array(13), shape: [2, 7] } } },
      'shape',
      /data has 13 elements/,
    ],
    [
      { segmentIds: { query: new Int32Array(5), key: new Float32Array(7) } },
      'type',
      /segmentIds.key must be an Int32Array with one id per token/,
    ],
    [
      { segmentIds: { query: [0, 0, 0, 0, 0], key: new Int32Array(7) } },
      'type',
      /segmentIds.query must be an Int32Array or a tensor/,
    ],
    [
      { segmentIds: { query: new Int32Array(5), key: new Int32Array(7), keys: 1 } },
      'unknown-option',
      /segmentIds has no field 'keys'; its fields are query and key/,
    ],
    [{ segmentIds: new Int32Array(5) }, 'type', /segmentIds must be an object \{ query, key \}, got a Int32Array/],
    [{ segmentIds: null }, 'type', /segmentIds must be an object/],
  ]));

test('cuSeqlens', () =>
  refused(
    [
      [
        { cuSeqlens: { query: ints(0, 3, 2), key: ints(0, 3, 7) } },
        'option',
        /^cuSeqlens.query must ascend, but \[2\] is 2 after 3$/,
      ],
      [
        { cuSeqlens: { query: ints(0, 3, 5), key: ints(0, 7, 3) } },
        'option',
        /cuSeqlens.key must ascend, but \[2\] is 3 after 7/,
      ],
      [{ cuSeqlens: { query: ints(1, 5), key: ints(0, 7) } }, 'option', /cuSeqlens.query\[0\] must be 0, got 1/],
      [{ cuSeqlens: { query: ints(0, 5), key: ints(-1, 7) } }, 'option', /cuSeqlens.key\[0\] must be 0, got -1/],
      [
        { cuSeqlens: { query: ints(0, 6), key: ints(0, 7) } },
        'option',
        /cuSeqlens.query ends at 6 but the query length is 5/,
      ],
      [
        { cuSeqlens: { query: ints(0, 5), key: ints(0, 8) } },
        'option',
        /cuSeqlens.key ends at 8 but the key length is 7/,
      ],
      [
        { cuSeqlens: { query: ints(0, 2, 5), key: ints(0, 7) } },
        'shape',
        /cuSeqlens.query has 3 numbers but cuSeqlens.key has 2/,
      ],
      [{ cuSeqlens: { query: ints(), key: ints() } }, 'shape', /cuSeqlens.query has no number; it begins with 0/],
      [{ cuSeqlens: { query: [0, 5], key: ints(0, 7) } }, 'type', /cuSeqlens.query must be an Int32Array/],
      [{ cuSeqlens: { query: ints(0, 5) } }, 'type', /cuSeqlens needs query and key, and key is missing/],
      [
        { cuSeqlens: { query: ints(0, 5), key: ints(0, 7), maxSeqlen: 5 } },
        'unknown-option',
        /cuSeqlens has no field 'maxSeqlen'/,
      ],
      [{ cuSeqlens: ints(0, 5) }, 'type', /cuSeqlens must be an object \{ query, key \}/],
    ],
    one.q,
    one.k,
  ));

test('cuSeqlens are for a batch of 1', () =>
  refused([
    [
      { cuSeqlens: { query: ints(0, 5), key: ints(0, 7) } },
      'shape',
      /packs the sequences into one batch row, but the batch is 2/,
    ],
  ]));

test('blockMask', () => {
  /** @param {number[]} shape */
  const dense = (...shape) => masks.fromDense({ data: new Uint8Array(shape.reduce((a, b) => a * b)).fill(1), shape });
  return refused([
    [
      { blockMask: dense(5, 5) },
      'shape',
      /^blockMask has 5 rows and 5 columns but the query length is 5 and the key length 7$/,
    ],
    [{ blockMask: dense(4, 7) }, 'shape', /blockMask has 4 rows and 7 columns/],
    [
      { blockMask: dense(3, 1, 5, 7) },
      'shape',
      /blockMask is for a batch of 3 and 1 heads but the call has a batch of 2 and 4 query heads/,
    ],
    [{ blockMask: dense(2, 5, 7) }, 'shape', /blockMask is for a batch of 1 and 2 heads/],
    [
      { blockMask: { rows: 5, columns: 7, batch: 1, heads: 1, tiles: new Uint32Array(1), bits: new Uint32Array(0) } },
      'type',
      /blockMask must be made by sdpa.masks, got a Object/,
    ],
    [{ blockMask: { data: new Uint8Array(35), shape: [5, 7] } }, 'type', /blockMask must be made by sdpa.masks/],
    [{ blockMask: null }, 'type', /got null/],
  ]);
});

test('dropout', () =>
  refused([
    [{ dropout: { p: -0.1, seed: 1 } }, 'option', /^dropout.p must be between 0 and 1, got -0.1$/],
    [{ dropout: { p: 1.1, seed: 1 } }, 'option', /got 1.1/],
    [{ dropout: { p: NaN, seed: 1 } }, 'option', /got NaN/],
    [{ dropout: { p: '0.1', seed: 1 } }, 'type', /dropout.p must be a number, got "0.1"/],
    [
      { dropout: { p: 0.1, seed: -1 } },
      'option',
      /dropout.seed must be a whole number, 0 or more and below 2\^53, got -1/,
    ],
    [{ dropout: { p: 0.1, seed: 1.5 } }, 'option', /dropout.seed .* got 1.5/],
    [{ dropout: { p: 0.1, seed: 2 ** 53 } }, 'option', /dropout.seed/],
    [{ dropout: { p: 0.1, seed: 1n } }, 'type', /dropout.seed must be a number, got 1n/],
    [{ dropout: { p: 0.1 } }, 'type', /dropout needs p and seed, and seed is missing/],
    [{ dropout: { seed: 1 } }, 'type', /p is missing/],
    [
      { dropout: { p: 0.1, seed: 1, rate: 0.1 } },
      'unknown-option',
      /dropout has no field 'rate'; its fields are p and seed/,
    ],
    [{ dropout: 0.1 }, 'type', /dropout must be an object \{ p, seed \}, got 0.1/],
  ]));

test('unknown names', () =>
  refused([
    [{ alibi: [1] }, 'unknown-option', /no option 'alibi'; the options are scale, .*alibiSlopes/],
    [{ cu_seqlens: 1 }, 'unknown-option', /did you mean 'cuSeqlens'/],
    [{ smooth_softmax: true }, 'unknown-option', /did you mean 'smoothSoftmax'/],
    [{ sink: 1 }, 'unknown-option', /no option 'sink'/],
  ]));

test('every property is read once, and what was checked is what counts', () => {
  const inner = {
    segmentIds: counting({ query: new Int32Array(5), key: new Int32Array(7) }),
    dropout: counting({ p: 0.5, seed: 7 }),
    alibiSlopes: counting({ data: [0.1, 0.2, 0.3, 0.4], shape: [4] }),
  };
  const outer = counting({
    ...Object.fromEntries(Object.entries(inner).map(([name, { object }]) => [name, object])),
    chunk: 3,
    globalKeys: 1,
    sinks: [0, 0, 0, 0],
    align: 'lower-right',
  });
  sdpa.attention(q, k, k, outer.object);
  for (const { reads } of [outer, ...Object.values(inner)]) {
    assert.deepEqual(
      Object.values(reads),
      Object.values(reads).map(() => 1),
    );
  }
});

test('numbers are copied when the call is made', async () => {
  const alibiSlopes = Float32Array.of(0.1, 0.2, 0.3, 0.4);
  const segmentIds = { query: ints(1, 1, 2, 2, 2), key: ints(1, 1, 1, 2, 2, 2, 2) };
  const options = { alibiSlopes, segmentIds, align: /** @type {const} */ ('lower-right') };
  const want = sdpa.attention(q, k, k, options);
  const pending = sdpa.attentionAsync(q, k, k, options);
  alibiSlopes.fill(9);
  segmentIds.query.fill(3);
  assert.deepEqual(await pending, want);
});
