import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inflateSync } from 'node:zlib';
import { randomSource } from '../helpers/reference.mjs';
import { loadVariant, VARIANT } from '../helpers/sdpa.mjs';
import { failsInOneLine, makeFolder, succeeds } from './program.mjs';

const { tensor, uniform } = randomSource(90);
const weights = ['weights', '--variant', VARIANT];
const sdpa = await loadVariant();

/** @param {number[]} shape */
const float32 = (...shape) => /** @type {any} */ ({ ...tensor(...shape), dtype: 'float32' });

const q = float32(2, 4, 9, 6);
const k = float32(2, 2, 14, 6);
const mask = {
  data: Uint8Array.from({ length: 9 * 14 }, () => Number(uniform() < 0.7)),
  shape: [9, 14],
  dtype: 'bool',
};

/** A folder with the files that the tests use. */
function makeProblem() {
  const folder = makeFolder();
  folder.npy('q.npy', q);
  folder.npy('k.npy', k);
  folder.npy('mask.npy', mask);
  folder.npy('qs.npy', { data: q.data.subarray(0, 54), shape: [9, 6] });
  folder.npy('ks.npy', { data: k.data.subarray(0, 84), shape: [14, 6] });
  folder.npz('qk.npz', { q, k });
  return folder;
}

const folder = makeProblem();
const files = ['q.npy', 'k.npy'];

describe('one array to a .npy file is that of the library, to the bit', () => {
  const rows = (/** @type {number[]} */ ...list) => ({ rows: list });
  for (const [flags, options, name] of /** @type {[string[], any, string][]} */ ([
    [['--rows', '0:4'], rows(0, 1, 2, 3), 'rows'],
    [['--rows', '3,0,-1'], rows(3, 0, 8), 'rows'],
    [['--rows', '5:,2'], rows(5, 6, 7, 8, 2), 'rows'],
    [['--rows', '::4'], rows(0, 4, 8), 'rows'],
    [['--rows', '-3:-1'], rows(6, 7), 'rows'],
    [['--rows', '7:100'], rows(7, 8), 'rows'],
    [['--columns', '13,0:2'], { columns: [13, 0, 1] }, 'columns'],
    [['--column-sums'], { columnSums: true }, 'columnSums'],
    [['--pool', '3'], { pool: { rows: 3, columns: 3 } }, 'pool'],
    [['--pool', '9x2', '--pool-kind', 'max'], { pool: { rows: 9, columns: 2, kind: 'max' } }, 'pool'],
    [['--rows', '1', '--heads', '3,0'], { rows: [1], heads: [3, 0] }, 'rows'],
    [['--rows', '1', '--mask', 'mask.npy'], { rows: [1], mask }, 'rows'],
    [['--rows', '1', '--scale', '2', '--softcap', '1.5'], { rows: [1], scale: 2, softcap: 1.5 }, 'rows'],
    [
      ['--rows', '1:3', '--causal', '--align', 'lower-right', '--window', '3,0'],
      { rows: [1, 2], causal: true, align: 'lower-right', window: [3, 0] },
      'rows',
    ],
    [
      ['--rows', '1', '--kv-lengths', '9,2', '--query-lengths', '9,1'],
      { rows: [1], kvLengths: Int32Array.of(9, 2), queryLengths: Int32Array.of(9, 1) },
      'rows',
    ],
  ])) {
    test(flags.join(' '), async () => {
      succeeds(await folder.run([...weights, ...files, ...flags, '--out', 'w.npy']));
      const want = /** @type {any} */ (sdpa.attentionWeights(q, k, options))[name];
      assert.deepEqual(folder.readNpy('w.npy'), want);
    });
  }
});

test('several results go to one file, each array under its name', async () => {
  for (const file of ['w.npz', 'w.safetensors']) {
    const flags = ['--rows', '1', '--columns', '2', '--column-sums', '--top-k', '3', '--stats', '--pool', '2x3'];
    succeeds(await folder.run([...weights, '--input', 'qk.npz', ...flags, '--out', file]));
    const arrays = /** @type {any} */ (folder.readMany(file));
    const want = sdpa.attentionWeights(q, k, {
      rows: [1],
      columns: [2],
      columnSums: true,
      topK: 3,
      stats: true,
      pool: { rows: 2, columns: 3 },
    });
    assert.deepEqual(
      { ...arrays },
      {
        rows: want.rows,
        columns: want.columns,
        column_sums: want.columnSums,
        topk_values: want.topK.values,
        topk_indices: want.topK.indices,
        entropy: want.stats.entropy,
        max_weight: want.stats.maxWeight,
        max_index: want.stats.maxIndex,
        pool: want.pool,
      },
    );
  }
});

test('lse comes from a file, and is used', async () => {
  const lse = sdpa.attention(q, k, k, { returnLse: true }).lse;
  folder.npy('l.npy', /** @type {any} */ (lse));
  folder.npy('higher.npy', { data: lse.data.map((x) => x + 1), shape: lse.shape });
  const run = async (/** @type {string} */ file) => {
    succeeds(await folder.run([...weights, ...files, '--lse', file, '--rows', '0', '--out', 'w.npy']));
    return /** @type {any} */ (folder.readNpy('w.npy')).data;
  };
  const { data } = sdpa.attentionWeights(q, k, { rows: [0] }).rows;
  assert.deepEqual(await run('l.npy'), data);
  const less = await run('higher.npy');
  assert.ok(data.every((p, i) => Math.abs(less[i] - p / Math.E) < 1e-6));
});

test('the standard output gets the array alone', async () => {
  const { stdout, stderr } = succeeds(await folder.run([...weights, ...files, '--rows', '1', '--out', '-']));
  folder.write('piped.npy', stdout);
  assert.deepEqual(folder.readNpy('piped.npy'), sdpa.attentionWeights(q, k, { rows: [1] }).rows);
  assert.match(stderr, /^rows \[2, 4, 1, 14\] to the standard output \(/);
  const quiet = succeeds(await folder.run([...weights, ...files, '--rows', '1', '--out', 'w.npy', '--quiet']));
  assert.equal(quiet.stderr, '');
});

/**
 * @param {Uint8Array} file
 * @returns {{ width: number, height: number, at: (x: number, y: number) => number[] }}
 */
function readPng(file) {
  const bytes = Buffer.from(file);
  assert.deepEqual([...bytes.subarray(0, 8)], [137, 80, 78, 71, 13, 10, 26, 10]);
  /** @type {Record<string, Buffer>} */
  const chunks = {};
  for (let at = 8; at < bytes.length;) {
    const length = bytes.readUInt32BE(at);
    chunks[bytes.toString('latin1', at + 4, at + 8)] = bytes.subarray(at + 8, at + 8 + length);
    at += 12 + length;
  }
  assert.deepEqual(Object.keys(chunks), ['IHDR', 'IDAT', 'IEND']);
  const [width, height] = [chunks.IHDR.readUInt32BE(0), chunks.IHDR.readUInt32BE(4)];
  assert.deepEqual([...chunks.IHDR.subarray(8)], [8, 2, 0, 0, 0]);
  const lines = inflateSync(chunks.IDAT);
  assert.equal(lines.length, height * (1 + 3 * width));
  const pixels = new Uint8Array(width * height * 3);
  for (let y = 0; y < height; y++) {
    const filter = lines[y * (1 + 3 * width)];
    assert.equal(filter, 2);
    for (let i = 0; i < 3 * width; i++) {
      const above = y > 0 ? pixels[(y - 1) * 3 * width + i] : 0;
      pixels[y * 3 * width + i] = lines[y * (1 + 3 * width) + 1 + i] + above;
    }
  }
  return { width, height, at: (x, y) => [...pixels.subarray((y * width + x) * 3, (y * width + x) * 3 + 3)] };
}

/** How light a colour is in Oklab. @param {number[]} colour */
function oklab(colour) {
  const [r, g, b] = colour.map((x) => (x / 255 <= 0.04045 ? x / 255 / 12.92 : ((x / 255 + 0.055) / 1.055) ** 2.4));
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

/** Colours of the bar from the bottom to the top. @param {ReturnType<typeof readPng>} picture */
function barOf(picture) {
  // The bar is the one stretch at the right whose lines are of one colour each, 20 pixels wide.
  const y = Math.floor(picture.height / 2);
  const isBar = (/** @type {number} */ x) =>
    Array.from({ length: 20 }, (_, i) => String(picture.at(x + i, y))).every((c, _, all) => c === all[0]) &&
    String(picture.at(x, y)) !== '255,255,255' &&
    String(picture.at(x - 1, y)) === '255,255,255';
  let x = picture.width - 21;
  while (x > 0 && !isBar(x)) x--;
  assert.ok(x > 0, 'no colour bar');
  const column = Array.from({ length: picture.height }, (_, j) => picture.at(x, j)).filter((c) =>
    c.some((v) => v < 255),
  );
  // The title may begin above it.
  return column.filter((c) => c.some((v) => v > 0)).reverse();
}

test('the picture shows the map: the largest weight lightest, zeros darkest, and a bar of even steps', async () => {
  for (const [scale, flags] of /** @type {[string, string[]][]} */ ([
    ['linear', []],
    ['log', ['--png-scale', 'log']],
  ])) {
    const pool = ['--pool', '9x14', '--causal', '--query-offset', '3', ...flags];
    succeeds(await folder.run([...weights, 'qs.npy', 'ks.npy', ...pool, '--png', 'map.png', '--out', 'map.npy']));
    const picture = readPng(folder.read('map.png'));
    const bar = barOf(picture);
    const lab = bar.map(oklab);
    const steps = lab.slice(1).map((to, i) => Math.hypot(...to.map((x, d) => x - lab[i][d])));
    assert.ok(
      lab.every(([light], i) => i === 0 || light >= lab[i - 1][0] - 0.004),
      'lightness falls',
    );
    assert.ok(lab[lab.length - 1][0] - lab[0][0] > 0.7, 'the bar is flat');
    // Two lines or so are one of 256 colours, so that steps come and go; over a tenth of the bar they are even.
    const tenth = Math.floor(steps.length / 10);
    const sums = Array.from({ length: 10 }, (_, n) => steps.slice(n * tenth, (n + 1) * tenth).reduce((a, b) => a + b));
    assert.ok(Math.max(...sums) < 1.35 * Math.min(...sums), `steps of ${sums.map((x) => x.toFixed(3))}`);

    const { data } = /** @type {any} */ (folder.readNpy('map.npy'));
    const most = Math.max(...data);
    const share = (/** @type {number} */ p) =>
      scale === 'linear' ? p / most : p > 0 ? Math.max(0, 1 + Math.log10(p / most) / 4) : 0;
    // The map begins where the first line of pixels that is not white at the left of the bar does.
    const size = Math.ceil(512 / 14);
    const [left, top] = cornerOf(picture, 14 * size);
    data.forEach((/** @type {number} */ p, /** @type {number} */ n) => {
      const colour = picture.at(left + (n % 14) * size + 5, top + Math.floor(n / 14) * size + 5);
      const want = bar[Math.round(share(p) * (bar.length - 1))];
      const distance = Math.hypot(...oklab(colour).map((x, d) => x - oklab(want)[d]));
      assert.ok(distance < 0.02, `cell ${n}: ${colour}, not ${want}`);
    });
  }
});

/**
 * Where a rectangle of `width` pixels without white begins.
 * @param {ReturnType<typeof readPng>} picture
 * @param {number} width
 */
function cornerOf(picture, width) {
  const white = (/** @type {number} */ x, /** @type {number} */ y) => picture.at(x, y).every((v) => v === 255);
  for (let y = 0; y < picture.height; y++) {
    for (let x = 0; x + width < picture.width; x++) {
      if (white(x, y)) continue;
      let end = x;
      while (!white(end, y)) end++;
      if (end - x === width) return [x, y];
      x = end;
    }
  }
  throw new Error('no map');
}

test('the same picture for the same input, and nothing but it without --out', async () => {
  const before = folder.list();
  const args = [...weights, ...files, '--kv-lengths', '9,9', '--pool', '4'];
  failsInOneLine(await folder.run([...args, '--png', 'one.png']), 2, /--png draws one map, but there are 8/);
  folder.npy('q1.npy', { data: q.data.subarray(0, 4 * 54), shape: [1, 4, 9, 6] });
  folder.npy('k1.npy', { data: k.data.subarray(0, 2 * 84), shape: [1, 2, 14, 6] });
  const one = [...weights, 'q1.npy', 'k1.npy', '--heads', '2', '--pool', '4'];
  succeeds(await folder.run([...one, '--png', 'one.png']));
  succeeds(await folder.run([...one, '--png', 'two.png']));
  assert.deepEqual(folder.read('one.png'), folder.read('two.png'));
  assert.deepEqual(
    folder.list().filter((name) => !before.includes(name)),
    ['k1.npy', 'one.png', 'q1.npy', 'two.png'],
  );
});

describe('bad input is exit code 2, one line, and no file', { concurrency: 2 }, () => {
  const bad = makeProblem();
  const before = bad.list();
  const out = ['--out', 'w.npy'];
  for (const [args, message] of /** @type {[string[], RegExp][]} */ ([
    [
      [...files, ...out],
      /nothing is asked for: give one of --rows, --columns, --column-sums, --top-k, --stats, --pool/,
    ],
    [[...files, '--rows', '0'], /--out FILE is missing/],
    [['q.npy', '--rows', '0', ...out], /--key FILE is missing/],
    [[...files, 'v.npy', '--rows', '0', ...out], /unexpected argument 'v.npy'/],
    [[...files, '--query', 'q.npy', '--rows', '0', ...out], /--query is given twice/],
    [['--query', 'q.npy', ...files, '--rows', '0', ...out], /--query is given twice: 'q.npy' and 'q.npy'/],
    [[...files, '--rows', 'x', ...out], /--rows must be numbers and ranges like .*'x'/],
    [[...files, '--rows', '1:5:0', ...out], /--rows must be numbers and ranges/],
    [[...files, '--rows', '9', ...out], /rows\[0\] is 9 but .*query length 9/],
    [[...files, '--rows', '-10', ...out], /rows\[0\] is -10/],
    [[...files, '--columns', '2,14', ...out], /columns\[1\] is 14 but .*key length 14/],
    [[...files, '--rows', '0', '--heads', '4', ...out], /heads\[0\] is 4 but .*query heads 4/],
    [[...files, '--top-k', '0', '--out', 'w.npz'], /--top-k must be a whole number, 1 or more/],
    [[...files, '--top-k', '2', ...out], /--out w.npy holds one array, but there are 2: topk_values, topk_indices/],
    [[...files, '--pool', '0', ...out], /--pool must be a number of cells/],
    [[...files, '--pool', '3x', ...out], /--pool must be a number of cells/],
    [[...files, '--pool', '10', ...out], /pool has 10 rows and 10 columns but the query length is 9/],
    [[...files, '--rows', '0', '--png', 'map.png', ...out], /--png draws the map of --pool/],
    [[...files, '--pool', '2', '--png', 'map.jpg'], /--png map.jpg: the name must end in .png/],
    [[...files, '--pool', '2', '--png', 'no/map.png'], /--png no\/map.png: no such file or directory/],
    [[...files, '--rows', '0', '--pool-kind', 'max', ...out], /--pool-kind needs --pool/],
    [[...files, '--pool', '2', '--png-scale', 'log', ...out], /--png-scale needs --png/],
    [[...files, '--pool', '2', '--pool-kind', 'min', ...out], /--pool-kind must be one of mean, max/],
    [[...files, '--rows', '0', '--causal', ...out], /--causal must know where query 0 stands/],
    [[...files, '--rows', '0', '--lse', 'mask.npy', ...out], /lse/],
    [[...files, '--rows', '0', '--lse', 'q.npy', ...out], /lse shape is \[2, 4, 9, 6\]/],
    [['q.npy', 'q.npy', '--rows', '0', '--out', 'q.npy'], /--out q.npy is also an input/],
    [[...files, '--rowz', '0', ...out], /unknown option '--rowz'; did you mean '--rows'/],
    [[...files, '--value', 'v.npy', '--rows', '0', ...out], /unknown option '--value'/],
  ])) {
    test(args.join(' '), async () => failsInOneLine(await bad.run([...weights, ...args]), 2, message));
  }
  test('nothing was written', () => assert.deepEqual(bad.list(), before));
});

test('a negative list is a value, not a flag', async () => {
  succeeds(await folder.run([...weights, ...files, '--rows', '-1', '--out', 'w.npy']));
  assert.deepEqual(folder.readNpy('w.npy'), sdpa.attentionWeights(q, k, { rows: [8] }).rows);
});
