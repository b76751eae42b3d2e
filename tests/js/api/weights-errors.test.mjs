// Bad arguments of attentionWeights(): an error that names them before anything is changed, and the instance goes on.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { assertThrows } from '../helpers/errors.mjs';
import { randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';

const sdpa = await loadVariant();
const { tensor: x } = randomSource(3);
const q = x(2, 4, 9, 8);
const k = x(2, 2, 30, 8);
const held = sdpa.memory().held;

afterEach(() => {
  assert.equal(sdpa.memory().held, held, 'memory was lost');
  assert.equal(sdpa.attentionWeights(q, k, { rows: [0] }).rows.shape.length, 4);
});

/** @type {[string, any, string, RegExp][]} */
const cases = [
  ['nothing wanted', {}, 'type', /one of rows, columns, columnSums, topK, stats, pool/],
  ['nothing wanted but false', { columnSums: false, stats: false }, 'type', /one of rows/],
  ['no options', undefined, 'type', /needs options/],
  ['options of another type', [1], 'type', /needs options/],
  [
    'an unknown option',
    { rows: [0], rowz: [1] },
    'unknown-option',
    /attentionWeights has no option 'rowz'; the options are /,
  ],
  ['an option in other letters', { topk: 3 }, 'unknown-option', /did you mean 'topK'/],
  ['out', { rows: [0], out: new Float32Array(3) }, 'unknown-option', /no option 'out'/],
  ['returnLse', { rows: [0], returnLse: true }, 'unknown-option', /no option 'returnLse'/],
  ['scores', { rows: [0], scores: 'weights' }, 'unknown-option', /no option 'scores'/],
  ['dropout', { rows: [0], dropout: { p: 0.25, seed: 1 } }, 'option', /dropout\.p is 0\.25/],
  ['a bad option of attention()', { rows: [0], scale: NaN }, 'option', /scale must be finite/],
  ['a place that nobody said', { rows: [0], causal: true }, 'align-required', /causal needs to know/],
  ['rows of another type', { rows: 3 }, 'type', /rows must be an array of whole numbers, got 3/],
  ['rows of floats', { rows: new Float32Array(2) }, 'type', /rows must be an array/],
  ['a row that is no number', { rows: [1, '2'] }, 'type', /rows\[1\] must be a number/],
  ['a row too far', { rows: [0, 9] }, 'option', /rows\[1\] is 9 but .* below the query length 9/],
  ['a row below 0', { rows: [-1] }, 'option', /rows\[0\] is -1/],
  ['half a row', { rows: [1.5] }, 'option', /rows\[0\] is 1\.5/],
  ['a column too far', { columns: [30] }, 'option', /columns\[0\] is 30 but .* below the key length 30/],
  ['a head too far', { rows: [0], heads: [4] }, 'option', /heads\[0\] is 4 but .* query heads 4/],
  ['heads of another type', { rows: [0], heads: '0' }, 'type', /heads must be an array/],
  ['columnSums of another type', { columnSums: 1 }, 'type', /columnSums must be true or false/],
  ['stats of another type', { stats: 'yes' }, 'type', /stats must be true or false/],
  ['topK of 0', { topK: 0 }, 'option', /topK must be a whole number, 1 or more/],
  ['topK of a half', { topK: 2.5 }, 'option', /topK must be/],
  ['topK of another type', { topK: '3' }, 'type', /topK must be a number/],
  ['pool of another type', { pool: 512 }, 'type', /pool must be an object/],
  ['pool without columns', { pool: { rows: 3 } }, 'type', /pool\.columns must be a number/],
  ['pool of no rows', { pool: { rows: 0, columns: 1 } }, 'option', /pool\.rows must be a whole number, 1 or more/],
  [
    'a field that pool has not',
    { pool: { rows: 1, columns: 1, size: 3 } },
    'unknown-option',
    /pool has no field 'size'/,
  ],
  [
    'pool of another kind',
    { pool: { rows: 1, columns: 1, kind: 'sum' } },
    'option',
    /pool\.kind must be 'mean' or 'max'/,
  ],
  [
    'more cells than rows',
    { pool: { rows: 10, columns: 30 } },
    'option',
    /pool has 10 rows and 30 columns but the query length is 9 and the key length 30/,
  ],
  ['more cells than keys', { pool: { rows: 9, columns: 31 } }, 'option', /31 columns/],
  ['lse of another type', { rows: [0], lse: new Float32Array(72) }, 'type', /lse must be a tensor/],
  [
    'lse in 16 bits',
    { rows: [0], lse: { ...x(1), data: new Uint16Array(72), shape: [2, 4, 9], dtype: 'float16' } },
    'type',
    /lse must be float32/,
  ],
  [
    'lse of other rows',
    { rows: [0], lse: x(2, 4, 8) },
    'shape',
    /lse shape is \[2, 4, 8\] but the call's is \[2, 4, 9\]/,
  ],
  ['lse of another rank', { rows: [0], lse: x(8, 9) }, 'shape', /lse shape/],
  ['a result beyond 2^53', { topK: 2 ** 50 }, 'shape', /more than 2\^53/],
];

for (const [name, options, code, message] of cases) {
  test(`${name}: ${code}`, () => {
    assertThrows(() => sdpa.attentionWeights(q, k, options), code, message);
  });
}

test('tensors that do not fit', () => {
  assertThrows(() => sdpa.attentionWeights(q, x(2, 2, 30, 7), { rows: [0] }), 'shape', /key head size is 7/);
  assertThrows(() => sdpa.attentionWeights(q, x(2, 3, 30, 8), { rows: [0] }), 'shape', /4 heads, .* 3 heads/);
  assertThrows(
    () => sdpa.attentionWeights(q, /** @type {any} */ (null), { rows: [0] }),
    'type',
    /key must be a tensor/,
  );
  assertThrows(() => sdpa.attentionWeights(q, /** @type {any} */ ([1]), { rows: [0] }), 'type', /key must be a tensor/);
  assertThrows(() => sdpa.attentionWeights(/** @type {any} */ (3), k, { rows: [0] }), 'type', /query must be a tensor/);
});

test('a result that memory does not hold is an error, and the instance goes on', () => {
  assertThrows(() => sdpa.attentionWeights(q, k, { topK: 2 ** 31 }), 'out-of-memory', /'topK'/);
});

test('each property of the key and of the options is read once', () => {
  /** @type {Record<string, number>} */
  const reads = {};
  const counted = (/** @type {any} */ object, /** @type {string} */ name) =>
    new Proxy(object, {
      get(target, property, receiver) {
        const key = `${name}.${String(property)}`;
        if (typeof property === 'string') reads[key] = (reads[key] ?? 0) + 1;
        return Reflect.get(target, property, receiver);
      },
    });
  const options = counted(
    { rows: counted([0, 5], 'rows'), heads: [1], pool: counted({ rows: 2, columns: 3 }, 'pool') },
    'options',
  );
  sdpa.attentionWeights(q, counted({ data: k.data, shape: counted([...k.shape], 'shape') }, 'key'), options);
  assert.deepEqual(
    Object.entries(reads).filter(([name, count]) => count > 1 && !name.includes('constructor')),
    [],
  );
});

test('a disposed instance says so', async () => {
  const other = await loadVariant();
  other.dispose();
  assertThrows(() => other.attentionWeights(q, k, { rows: [0] }), 'disposed', /disposed/);
});
