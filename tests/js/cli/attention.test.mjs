import assert from 'node:assert/strict';
import { test } from 'node:test';
import { largestError, randomSource, random16, referenceAttention } from '../helpers/reference.mjs';
import { loadVariant, VARIANT } from '../helpers/sdpa.mjs';
import { attention, makeFolder, succeeds } from './program.mjs';

const tolerance = 2e-6;
const { tensor, uniform } = randomSource(71);

/** @param {number[]} shape */
const float32 = (...shape) => /** @type {any} */ ({ ...tensor(...shape), dtype: 'float32' });
/** @param {number[]} shape */
const bool = (...shape) => ({
  data: Uint8Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => Number(uniform() < 0.6)),
  shape,
  dtype: 'bool',
});

const folder = makeFolder();
const inputFlags = ['--query', 'q.npy', '--key', 'k.npy', '--value', 'v.npy'];

/**
 * @param {any} q
 * @param {any} k
 * @param {any} v
 */
function writeInputs(q, k, v) {
  folder.npy('q.npy', q);
  folder.npy('k.npy', k);
  folder.npy('v.npy', v);
}

/**
 * The result of the program, in slices of `rows` query rows, must be the library's own to the bit, near the float64 reference, and unlike
 * the result without the options.
 * @param {any[]} inputs
 * @param {string[]} flags
 * @param {any} options of the library that mean the same
 * @param {{ same?: boolean, rows?: number[] }} [expect] same: the options change nothing; rows: slices to try
 */
async function agrees([q, k, v], flags, options, { same = false, rows = [3] } = {}) {
  writeInputs(q, k, v);
  const sdpa = await loadVariant();
  const whole = sdpa.attention(q, k, v, { ...options, returnLse: true });
  const reference = referenceAttention(q, k, v, options);
  for (const count of rows) {
    const slices = ['--rows-per-slice', String(count)];
    succeeds(await folder.run([...attention, ...inputFlags, ...flags, ...slices, '--out', 'o.npy', '--lse', 'l.npy']));
    const out = folder.readNpy('o.npy');
    const lse = folder.readNpy('l.npy');
    assert.deepEqual(out, whole.out, 'the same bits as the library');
    assert.deepEqual(lse, whole.lse);
    assert.ok(largestError(/** @type {any} */ (out.data), reference.out) <= tolerance);
    assert.ok(largestError(/** @type {any} */ (lse.data), reference.lse) <= tolerance);
  }
  if (!same) {
    const plain = referenceAttention(q, k, v, options.layout ? { layout: options.layout } : {});
    assert.ok(largestError(reference.out, plain.out) > 1e-3, 'the options matter');
  }
  sdpa.dispose();
}

const square = [float32(2, 4, 7, 5), float32(2, 2, 7, 5), float32(2, 2, 7, 6)];
const wide = [float32(2, 4, 4, 5), float32(2, 2, 9, 5), float32(2, 2, 9, 6)];

test('grouped heads, batch, a value size of its own: out and lse equal the library and the reference', () =>
  agrees(square, [], {}, { same: true }));

for (const [flags, options] of /** @type {[string[], any][]} */ ([
  [['--scale', '0.3'], { scale: 0.3 }],
  [['--scale', '-1.5'], { scale: -1.5 }],
  [['--scale=0'], { scale: 0 }],
  [['--softcap', '0.7'], { softcap: 0.7 }],
  [['--causal'], { causal: true }],
  [['--window', '2,1'], { window: [2, 1] }],
  [['--window', 'inf,0'], { window: [Infinity, 0] }],
  [['--causal', '--query-offset', '-2'], { causal: true, queryOffset: -2 }],
  [['--causal', '--query-offset', '3,1'], { causal: true, queryOffset: Int32Array.of(3, 1) }],
  [['--query-lengths', '7,3'], { queryLengths: Int32Array.of(7, 3) }],
  [['--kv-lengths', '5,0'], { kvLengths: Int32Array.of(5, 0) }],
  [
    ['--causal', '--align', 'lower-right', '--kv-lengths', '5,7'],
    { causal: true, align: 'lower-right', kvLengths: Int32Array.of(5, 7) },
  ],
])) {
  test(`${flags.join(' ')} means what it means in the library`, () => agrees(square, flags, options));
}

for (const [flags, options] of /** @type {[string[], any][]} */ ([
  [['--causal', '--align', 'lower-right'], { causal: true, align: 'lower-right' }],
  [['--causal', '--align', 'upper-left'], { causal: true, align: 'upper-left' }],
  [['--window', '3,2', '--align', 'lower-right'], { window: [3, 2], align: 'lower-right' }],
  [['--causal', '--window', '2,0', '--query-offset', '4'], { causal: true, window: [2, 0], queryOffset: 4 }],
])) {
  test(`${flags.join(' ')} with 4 queries and 9 keys means what it means in the library`, () =>
    agrees(wide, flags, options));
}

for (const shape of [
  [2, 4, 7, 7],
  [1, 4, 7, 7],
  [2, 1, 7, 1],
  [7, 7],
  [1, 7],
  [7, 1],
  [4, 1, 7],
  [2, 1, 1, 7],
]) {
  test(`a mask and a bias of shape ${shape.join(' x ')} are broadcast`, () => {
    const mask = bool(...shape);
    mask.data[0] = 0;
    const bias = float32(...shape);
    folder.npy('m.npy', mask);
    folder.npy('b.npy', bias);
    return agrees(square, ['--mask', 'm.npy', '--bias', 'b.npy'], { mask, bias });
  });
}

test('everything at once', () => {
  const mask = bool(1, 4, 4, 9);
  const bias = float32(2, 1, 4, 9);
  folder.npy('m.npy', mask);
  folder.npy('b.npy', bias);
  const lengths = { queryLengths: Int32Array.of(3, 4), kvLengths: Int32Array.of(9, 8) };
  return agrees(
    wide,
    [
      ...['--mask', 'm.npy', '--bias', 'b.npy', '--query-lengths', '3,4', '--kv-lengths', '9,8', '--softcap', '2'],
      ...['--causal', '--window', '5,0', '--align', 'lower-right', '--scale', '0.9'],
    ],
    { mask, bias, ...lengths, softcap: 2, causal: true, window: [5, 0], align: 'lower-right', scale: 0.9 },
    { rows: [1, 2, 3, 4, 1000] },
  );
});

test('ranks 2 and 3 and the layout blhd give results in the query’s rank and layout', async () => {
  await agrees([float32(7, 5), float32(6, 5), float32(6, 3)], [], {}, { same: true });
  await agrees([float32(4, 7, 5), float32(2, 6, 5), float32(2, 6, 3)], [], {}, { same: true });
  const blhd = ['--layout', 'blhd', '--causal'];
  await agrees([float32(7, 4, 5), float32(7, 2, 5), float32(7, 2, 3)], blhd, { layout: 'blhd', causal: true });
  await agrees([float32(2, 7, 4, 5), float32(2, 7, 2, 5), float32(2, 7, 2, 3)], blhd, { layout: 'blhd', causal: true });
});

test('no queries, no keys, no batch: empty results and rows of zeros', async () => {
  await agrees([float32(1, 2, 0, 4), float32(1, 2, 5, 4), float32(1, 2, 5, 4)], [], {}, { same: true });
  await agrees([float32(1, 2, 3, 4), float32(1, 2, 0, 4), float32(1, 2, 0, 4)], [], {}, { same: true });
  await agrees([float32(0, 2, 3, 4), float32(0, 2, 5, 4), float32(0, 2, 5, 4)], [], {}, { same: true });
});

test('several slices of the default size: the same bits as one call', async () => {
  const [q, k, v] = [float32(16, 150, 64), float32(1, 8000, 64), float32(1, 8000, 64)];
  const mask = bool(150, 8000);
  folder.npy('m.npy', mask);
  await agreesInBits(
    [q, k, v],
    [
      '--mask',
      'm.npy',
      '--causal',
      '--align',
      'lower-right',
      '--window',
      '7000,0',
      '--kv-lengths',
      '7990',
      '--query-lengths',
      '149',
    ],
    {
      ...{ mask, causal: true, align: 'lower-right', window: [7000, 0] },
      ...{ kvLengths: Int32Array.of(7990), queryLengths: Int32Array.of(149) },
    },
  );
});

/**
 * @param {any[]} inputs
 * @param {string[]} flags
 * @param {any} options
 */
async function agreesInBits([q, k, v], flags, options) {
  writeInputs(q, k, v);
  const sdpa = await loadVariant();
  const whole = sdpa.attention(q, k, v, { ...options, returnLse: true });
  succeeds(await folder.run([...attention, ...inputFlags, ...flags, '--out', 'o.npy', '--lse', 'l.npy']));
  assert.deepEqual(folder.readNpy('o.npy'), whole.out);
  assert.deepEqual(folder.readNpy('l.npy'), whole.lse);
  sdpa.dispose();
}

for (const stage of /** @type {const} */ (['scaled', 'capped', 'biased', 'weights'])) {
  test(`--scores ${stage} writes that matrix beside the result`, async () => {
    const [q, k, v] = square;
    writeInputs(q, k, v);
    const bias = float32(4, 1, 7);
    folder.npy('b.npy', bias);
    const flags = ['--softcap', '1.5', '--bias', 'b.npy', '--causal', '--scores', stage, '--rows-per-slice', '2'];
    succeeds(await folder.run([...attention, ...inputFlags, ...flags, '--out', 'o.npy', '--scores-out', 's.npy']));
    succeeds(await folder.run([...attention, ...inputFlags, ...flags, '--out', 'o.npz']));
    const options = { softcap: 1.5, bias, causal: true };
    const sdpa = await loadVariant();
    const whole = sdpa.attention(q, k, v, { ...options, scores: stage });
    const { scores, out } = referenceAttention(q, k, v, options);
    const got = folder.readNpy('s.npy');
    assert.deepEqual(got, whole.scores);
    assert.deepEqual(folder.readMany('o.npz').scores, got);
    assert.deepEqual(folder.readMany('o.npz').out, folder.readNpy('o.npy'));
    assert.ok(largestError(/** @type {any} */ (got.data), scores[stage]) <= 4e-6);
    assert.ok(largestError(/** @type {any} */ (folder.readNpy('o.npy').data), out) <= tolerance);
    sdpa.dispose();
  });
}

for (const dtype of /** @type {const} */ (['float16', 'bfloat16'])) {
  test(`${dtype} tensors of a .safetensors file are taken as they are`, async () => {
    const half = (/** @type {number[]} */ ...shape) => ({
      data: random16(
        shape.reduce((a, b) => a * b, 1),
        dtype,
        uniform,
      ),
      shape,
      dtype,
    });
    const [q, k, v] = [half(2, 5, 6), half(2, 8, 6), half(2, 8, 6)];
    folder.safetensors('qkv.safetensors', { query: q, key: k, value: v });
    const { stderr } = succeeds(await folder.run([...attention, '--input', 'qkv.safetensors', '--out', 'o.npy']));
    assert.doesNotMatch(stderr, /note/);
    const out = folder.readNpy('o.npy');
    assert.equal(out.dtype, 'float32');
    assert.ok(largestError(/** @type {any} */ (out.data), referenceAttention(q, k, v).out) <= tolerance);
  });
}

test('float64 becomes float32, and one line says so unless --quiet', async () => {
  const [q, k, v] = [float32(5, 4), float32(6, 4), float32(6, 4)];
  const double = (/** @type {any} */ t) => ({ data: Float64Array.from(t.data), shape: t.shape });
  folder.npz('d.npz', { q: double(q), k: double(k), v });
  const { stderr } = succeeds(await folder.run([...attention, '--input', 'd.npz', '--out', 'o.npy']));
  assert.match(stderr, /^note: query, key are float64 and computed as float32\n/);
  const expected = referenceAttention(q, k, v).out;
  assert.ok(largestError(/** @type {any} */ (folder.readNpy('o.npy').data), expected) <= tolerance);
  const quiet = succeeds(await folder.run([...attention, '--input', 'd.npz', '--out', 'o.npy', '--quiet']));
  assert.equal(quiet.stderr, '');
});

test('tensors are found by role, by short name, by --name, and alone in their file', async () => {
  const [q, k, v] = [float32(5, 4), float32(6, 4), float32(6, 4)];
  const mask = bool(5, 6);
  const expected = referenceAttention(q, k, v).out;
  const masked = referenceAttention(q, k, v, { mask }).out;
  folder.npz('short.npz', { q, k, v });
  folder.npz('masked.npz', { query: q, key: k, value: v, mask });
  folder.safetensors('other.safetensors', { 'attn.q': q, 'attn.k': k, 'attn.v': v, keep: mask });
  folder.safetensors('one.safetensors', { anything: q });
  const names = ['--name', 'query=attn.q', '--name', 'key=attn.k', '--name', 'value=attn.v'];
  for (const [flags, want] of /** @type {[string[], Float64Array][]} */ ([
    [['--input', 'short.npz'], expected],
    [['--input', 'masked.npz'], masked],
    [['--input', 'other.safetensors', ...names], expected],
    [['--input', 'other.safetensors', ...names, '--name', 'mask=keep'], masked],
    [['--query', 'one.safetensors', '--key', 'short.npz', '--value', 'masked.npz'], expected],
  ])) {
    succeeds(await folder.run([...attention, ...flags, '--out', 'o.npy']));
    assert.ok(largestError(/** @type {any} */ (folder.readNpy('o.npy').data), want) <= tolerance, flags.join(' '));
  }
});

test('lengths may come from a file of integers', async () => {
  const [q, k, v] = [float32(2, 1, 3, 4), float32(2, 1, 5, 4), float32(2, 1, 5, 4)];
  writeInputs(q, k, v);
  folder.npy('n.npy', { data: BigInt64Array.of(2n, 5n), shape: [2] });
  succeeds(await folder.run([...attention, ...inputFlags, '--kv-lengths', 'n.npy', '--out', 'o.npy']));
  const { out } = referenceAttention(q, k, v, { kvLengths: Int32Array.of(2, 5) });
  assert.ok(largestError(/** @type {any} */ (folder.readNpy('o.npy').data), out) <= tolerance);
});

test('the standard output takes a .npy, and stderr says what was written with which build', async () => {
  const [q, k, v] = [float32(5, 4), float32(6, 4), float32(6, 4)];
  writeInputs(q, k, v);
  const { stdout, stderr } = succeeds(await folder.run([...attention, ...inputFlags, '--out', '-']));
  folder.write('stdout.npy', stdout);
  succeeds(await folder.run([...attention, ...inputFlags, '--out', 'o.npy']));
  assert.deepEqual(folder.read('stdout.npy'), folder.read('o.npy'));
  assert.match(stderr, new RegExp(`^out \\[5, 4\\] to the standard output \\(${VARIANT} build, .*\\)\\n$`));
});

test('--lse and --scores may share the container of --out, in .npz and in .safetensors', async () => {
  const [q, k, v] = [float32(5, 4), float32(6, 4), float32(6, 4)];
  writeInputs(q, k, v);
  for (const name of ['r.npz', 'r.safetensors']) {
    succeeds(await folder.run([...attention, ...inputFlags, '--out', name, '--lse', name, '--scores', 'weights']));
    const results = folder.readMany(name);
    assert.deepEqual(Object.keys(results).sort(), ['lse', 'out', 'scores']);
    assert.deepEqual(results.scores.shape, [5, 6]);
  }
});
