// attentionWeightsAsync() gives the bits of attentionWeights(), however many workers share the call.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertRejects } from '../helpers/errors.mjs';
import { randomSource } from '../helpers/reference.mjs';
import { loadVariant } from '../helpers/sdpa.mjs';
import { assertSameBits, untilWorkersRun, watchWorkers } from '../helpers/workers.mjs';
import { grid, L } from './grid.mjs';

const { tensor: x } = randomSource(70);

/**
 * Sizes of a call of the grid.
 * @param {any} query
 * @param {any} key
 * @param {any} options
 */
function sizesOf({ shape: q }, { shape: k }, { layout }) {
  const blhd = layout === 'blhd' && q.length > 2;
  const at = blhd ? q.length - 3 : q.length - 2;
  return { rows: q[at], keys: k[at], heads: q.length === 2 ? 1 : q[blhd ? q.length - 2 : q.length - 3] };
}

/**
 * Everything that can be wanted, the maps in cells that end within the pieces that sums are made of and beyond them.
 * @param {{ rows: number, keys: number, heads: number }} sizes
 */
const everything = ({ rows, keys, heads }) => [
  {
    rows: Array.from({ length: Math.min(rows, 70) }, (_, i) => (i * 7) % rows),
    columns: [keys - 1, 0, Math.floor(keys / 2)],
    columnSums: true,
    topK: 3,
    stats: true,
    pool: { rows: Math.min(rows, 2), columns: Math.min(keys, 37) },
  },
  {
    pool: { rows: Math.min(rows, 41), columns: Math.min(keys, 5), kind: 'max' },
    stats: true,
    heads: [heads - 1, 0],
  },
  { pool: { rows: Math.min(rows, 41), columns: Math.min(keys, 5), kind: 'mean' }, heads: [Math.floor(heads / 2)] },
];

/**
 * The tensors of a result.
 * @param {any} result
 */
const flat = (result) =>
  Object.fromEntries(
    Object.entries(result).flatMap(([name, part]) =>
      part.data ? [[name, part]] : Object.entries(part).map(([inner, tensor]) => [`${name}.${inner}`, tensor]),
    ),
  );

/**
 * @param {any} options
 * @param {string[]} names
 */
const without = (options, names) =>
  Object.fromEntries(Object.entries(options).filter(([name]) => !names.includes(name)));

/**
 * Calls of the grid as calls for weights, each for some of what can be wanted.
 * @param {number} shift changes for which
 * @param {number} [every] how many of the grid's calls there are to one of these
 * @returns {Generator<[string, any, any, any]>}
 */
function* calls(shift, every = 1) {
  for (const [i, [name, [query, key], all]] of grid.entries()) {
    if ((i + shift) % every !== 0) continue;
    const options = without(all, ['returnLse', 'scores', 'dropout']);
    const wants = everything(sizesOf(query, key, options));
    const n = (i + shift) % wants.length;
    yield [`${name}, ${n}`, query, key, { ...options, ...wants[n] }];
  }
}

/** @param {import('sdpa').Sdpa} sdpa @param {any} query @param {any} key @param {any} options */
function lseOf(sdpa, query, key, options) {
  const forward = without(options, ['rows', 'columns', 'columnSums', 'topK', 'stats', 'pool', 'heads']);
  return sdpa.attention(query, key, key, { ...forward, returnLse: true }).lse;
}

test('slices on this thread give the bits of one call', async () => {
  let cut = false;
  for (const [name, query, key, options] of calls(0)) {
    const sdpa = await loadVariant({ threads: 0 });
    const want = flat(sdpa.attentionWeights(query, key, options));
    const onProgress = (/** @type {any} */ { done }) => void (cut ||= query.shape.includes(L) && done % L > 0);
    assertSameBits(flat(await sdpa.attentionWeightsAsync(query, key, { ...options, onProgress })), want, name);
    const lse = lseOf(sdpa, query, key, options);
    assertSameBits(flat(await sdpa.attentionWeightsAsync(query, key, { ...options, lse })), want, `${name} with lse`);
    sdpa.dispose();
  }
  assert.ok(cut, 'no head was cut by rows');
});

for (const [shift, threads] of [1, 2, 3, 7].entries()) {
  test(`${threads} workers give the bits of one call`, async (t) => {
    const { workers, slices } = watchWorkers(t);
    const sdpa = await loadVariant({ threads });
    await untilWorkersRun(sdpa, threads);
    for (const [name, query, key, options] of calls(shift, 2)) {
      const want = flat(sdpa.attentionWeights(query, key, options));
      const before = slices().length;
      const lse = threads % 2 ? undefined : lseOf(sdpa, query, key, options);
      assertSameBits(flat(await sdpa.attentionWeightsAsync(query, key, { ...options, lse })), want, name);
      assert.ok(slices().length > before, `${name} was not computed by workers`);
    }
    assert.equal(workers.length, threads);
    sdpa.dispose();
  });
}

test('a long call is cut by rows on workers, sums too', async (t) => {
  const { slices } = watchWorkers(t);
  const sdpa = await loadVariant({ threads: 2 });
  await untilWorkersRun(sdpa, 2);
  const one = x(1, 2500, 32);
  for (const want of [
    { columnSums: true },
    { pool: { rows: 1, columns: 9 } },
    { pool: { rows: 700, columns: 9 } },
    { topK: 2 },
  ]) {
    const before = slices().length;
    const options = { causal: true, ...want };
    assertSameBits(
      flat(await sdpa.attentionWeightsAsync(one, one, options)),
      flat(sdpa.attentionWeights(one, one, options)),
      JSON.stringify(want),
    );
    const rows = slices()
      .slice(before)
      .map(({ work }) => work.rows);
    assert.ok(rows.length > 2 && rows.every((n) => n < 2500), JSON.stringify({ want, rows }));
  }
  sdpa.dispose();
});

test('inputs are copied before it returns', async () => {
  for (const threads of [0, 1]) {
    const sdpa = await loadVariant({ threads });
    const [query, key] = [x(2, 300, 16), x(2, 300, 16)];
    const { lse } = sdpa.attention(query, key, key, { returnLse: true });
    const options = { rows: [3, 200], stats: true, lse, heads: [1] };
    const want = flat(sdpa.attentionWeights(query, key, options));
    const promise = sdpa.attentionWeightsAsync(query, key, options);
    for (const { data } of [query, key, lse]) data.fill(NaN);
    options.rows.length = 0;
    assertSameBits(flat(await promise), want);
    sdpa.dispose();
  }
});

test('progress counts the rows of each result, and ends with all', async () => {
  const sdpa = await loadVariant({ threads: 0 });
  const one = x(2, 3, 400, 16);
  /** @type {any[]} */
  const seen = [];
  await sdpa.attentionWeightsAsync(one, one, {
    stats: true,
    rows: [5, 6],
    heads: [0, 2],
    onProgress: (progress) => void seen.push(progress),
  });
  assert.ok(seen.length > 1);
  assert.ok(seen.every(({ done, total }, i) => total === 1608 && done > (seen[i - 1]?.done ?? 0)));
  assert.equal(seen[seen.length - 1].done, 1608);
  sdpa.dispose();
});

for (const threads of [0, 2]) {
  test(`${threads} workers: abort, failing progress and disposal end the call, and the next one works`, async () => {
    const sdpa = await loadVariant({ threads });
    const one = x(2, 900, 32);
    const options = { topK: 2, columnSums: true };
    const controller = new AbortController();
    const aborted = sdpa.attentionWeightsAsync(one, one, {
      ...options,
      signal: controller.signal,
      onProgress: () => controller.abort('enough'),
    });
    await assert.rejects(aborted, (error) => error === 'enough');
    await assert.rejects(
      sdpa.attentionWeightsAsync(one, one, { ...options, signal: AbortSignal.abort('before') }),
      (error) => error === 'before',
    );
    const failing = sdpa.attentionWeightsAsync(one, one, {
      ...options,
      onProgress: () => {
        throw new Error('no more');
      },
    });
    await assert.rejects(failing, /no more/);
    assertSameBits(
      flat(await sdpa.attentionWeightsAsync(one, one, options)),
      flat(sdpa.attentionWeights(one, one, options)),
    );
    const last = sdpa.attentionWeightsAsync(one, one, options);
    sdpa.dispose();
    await assertRejects(last, 'disposed', /disposed/);
  });
}

test('bad arguments reject', async () => {
  const sdpa = await loadVariant({ threads: 0 });
  const one = x(9, 8);
  await assertRejects(sdpa.attentionWeightsAsync(one, one, /** @type {any} */ ({})), 'type', /one of rows/);
  await assertRejects(sdpa.attentionWeightsAsync(one, one, { rows: [9] }), 'option', /below the query length 9/);
  await assertRejects(
    sdpa.attentionWeightsAsync(one, one, /** @type {any} */ ({ rows: [0], signal: 3 })),
    'type',
    /signal must be an AbortSignal/,
  );
  sdpa.dispose();
});

test('calls without a pair of a query and a key', async () => {
  const sdpa = await loadVariant({ threads: 0 });
  /** @type {any[]} */
  const seen = [];
  const onProgress = (/** @type {any} */ progress) => void seen.push(progress);
  const got = await sdpa.attentionWeightsAsync(x(2, 3, 4), x(2, 0, 4), { stats: true, rows: [], onProgress });
  assert.deepEqual([...got.stats.maxIndex.data], Array(6).fill(-1));
  assert.deepEqual(seen, [{ done: 6, total: 6 }]);
  const some = await sdpa.attentionWeightsAsync(x(2, 3, 4), x(2, 5, 4), { rows: [], topK: 1 });
  assert.deepEqual(
    [some.rows.shape, some.topK.values.shape],
    [
      [2, 0, 5],
      [2, 3, 1],
    ],
  );
  sdpa.dispose();
});
