// The parts of the bench against other libraries that need none of them: model bytes, statistics, checks, report.

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseProcessStat } from '../../bench/peers/load.mjs';
import { causalBias, inputsOf, largestErrorOf, repeatHeads, swapHeadsAndRows } from '../../bench/peers/inputs.mjs';
import { oneLine } from '../../bench/peers/one-line.mjs';
import { attentionModel, composedModel, groupQueryAttentionModel } from '../../bench/peers/onnx-models.mjs';
import { readOptions } from '../../bench/peers/options.mjs';
import { naiveAttention, tiledAttention } from '../../bench/peers/plain-attention.mjs';
import { floatField, integerField, message, rawInt64, stringField, varint } from '../../bench/peers/protobuf.mjs';
import { timeShape } from '../../bench/peers/rounds.mjs';
import { isWrong, summarise } from '../../bench/peers/summary.mjs';
import { replaceBlock } from '../../bench/report/markers.mjs';
import { describe, peersReport } from '../../bench/report/peers.mjs';
import { withResults } from '../../bench/report/write.mjs';

/** @typedef {import('../../bench/js/cases.mjs').Case} Case */

/** @param {Partial<Case>} [part] @returns {Case} */
const shape = (part) => ({
  nickname: 'small',
  option: 'dense',
  batch: 2,
  numHeads: 4,
  numKvHeads: 2,
  seqlenQ: 37,
  seqlenKv: 37,
  headDim: 8,
  ...part,
});

/**
 * The fields of a message, read by the wire format's rules.
 * @param {Uint8Array} bytes
 * @returns {{ number: number, value: any }[]}
 */
function fields(bytes) {
  let at = 0;
  const integer = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = BigInt(bytes[at++]);
      value |= (byte & 127n) << shift;
      if (byte < 128n) return value;
    }
  };
  const found = [];
  while (at < bytes.length) {
    const tag = Number(integer());
    const [number, wire] = [tag >> 3, tag & 7];
    if (wire === 0) found.push({ number, value: integer() });
    else if (wire === 5)
      found.push({ number, value: new DataView(bytes.buffer, bytes.byteOffset + (at += 4) - 4).getFloat32(0, true) });
    else if (wire === 2) {
      const length = Number(integer());
      found.push({ number, value: bytes.slice(at, (at += length)) });
    } else assert.fail(`wire type ${wire} of field ${number}`);
  }
  assert.equal(at, bytes.length, 'the last field ends with the message');
  return found;
}

/** @param {Uint8Array} bytes @param {number} number @returns {any[]} values of that field */
const all = (bytes, number) => fields(bytes).flatMap((field) => (field.number === number ? [field.value] : []));

/** @param {Uint8Array} bytes */
const text = (bytes) => new TextDecoder().decode(bytes);

test('integers, floats and texts are written as the protocol buffers format has them', () => {
  assert.deepEqual([...varint(0)], [0]);
  assert.deepEqual([...varint(300)], [0xac, 0x02]);
  assert.deepEqual([...varint(-1)], [255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
  assert.deepEqual([...integerField(1, 150)], [0x08, 0x96, 0x01]);
  assert.deepEqual([...integerField(20, 7)], [0xa0, 0x01, 7]);
  assert.deepEqual([...stringField(2, 'testing')], [0x12, 7, ...new TextEncoder().encode('testing')]);
  assert.deepEqual([...floatField(2, 1)], [0x15, 0, 0, 0x80, 0x3f]);
  assert.deepEqual([...rawInt64(-2)], [254, 255, 255, 255, 255, 255, 255, 255]);
  assert.deepEqual([...message(integerField(1, 1), message(), integerField(1, 2))], [8, 1, 8, 2]);
});

test('an Attention model names its operator, attributes, inputs with their sizes, and operator sets', () => {
  const model = attentionModel(shape({ option: 'causal' }), 23);
  const [graph] = all(model, 7);
  const [node] = all(graph, 1);
  assert.deepEqual(all(node, 1).map(text), ['query', 'key', 'value']);
  assert.deepEqual(all(node, 4).map(text), ['Attention']);
  const attributes = all(node, 5).map((one) => ({
    name: text(all(one, 1)[0]),
    float: all(one, 2)[0],
    int: all(one, 3)[0],
  }));
  assert.deepEqual(attributes, [
    { name: 'is_causal', float: undefined, int: 1n },
    { name: 'scale', float: Math.fround(1 / Math.sqrt(8)), int: undefined },
  ]);
  const sizes = all(graph, 11).map((info) =>
    all(all(all(all(info, 2)[0], 1)[0], 2)[0], 1).map((dim) => Number(all(dim, 1)[0])),
  );
  assert.deepEqual(sizes, [
    [2, 4, 37, 8],
    [2, 2, 37, 8],
    [2, 2, 37, 8],
  ]);
  const sets = all(model, 8).map((set) => [text(all(set, 1)[0]), Number(all(set, 2)[0])]);
  assert.deepEqual(sets, [
    ['', 23],
    ['com.microsoft', 1],
  ]);
});

test('a decode step gives GroupQueryAttention a past, and whole sequences none', () => {
  const inputs = (/** @type {Case} */ c) =>
    all(all(groupQueryAttentionModel(c), 7)[0], 11).map((info) => text(all(info, 1)[0]));
  assert.deepEqual(inputs(shape({ seqlenQ: 1 })).slice(3, 5), ['past_key', 'past_value']);
  assert.deepEqual(inputs(shape()), ['query', 'key', 'value', 'seqlens_k', 'total_sequence_length']);
});

test('a composed model adds a mask exactly when causal', () => {
  const operators = (/** @type {Case} */ c) => all(all(composedModel(c), 7)[0], 1).map((node) => text(all(node, 4)[0]));
  const plain = ['Transpose', 'MatMul', 'Mul', 'Softmax', 'MatMul'];
  assert.deepEqual(operators(shape({ numKvHeads: 4 })), plain);
  assert.deepEqual(operators(shape({ numKvHeads: 4, option: 'causal' })), plain.toSpliced(3, 0, 'Add'));
});

for (const [name, attention] of /** @type {const} */ ([
  ['naive', naiveAttention],
  ['tiled', tiledAttention],
])) {
  for (const part of [
    {},
    { option: /** @type {const} */ ('causal'), seqlenQ: 70, seqlenKv: 70 },
    { seqlenQ: 1, seqlenKv: 131 },
  ]) {
    test(`${name} plain attention agrees with float64: ${JSON.stringify(part)}`, () => {
      const c = shape(part);
      const inputs = inputsOf(c);
      assert.ok(largestErrorOf(c, inputs, attention(c, inputs)) < 1e-6);
    });
  }
}

test('a result that ignores the causal mask, mixes up heads, or has NaN anywhere is wrong', () => {
  const c = shape({ option: 'causal' });
  const inputs = inputsOf(c);
  const right = naiveAttention(c, inputs);
  assert.ok(!isWrong(largestErrorOf(c, inputs, right)));
  assert.ok(isWrong(largestErrorOf(c, inputs, naiveAttention(shape(), inputs))));
  const rotated = Float32Array.from(right, (_, n) => right[(n + 37 * 8) % right.length]);
  assert.ok(isWrong(largestErrorOf(c, inputs, rotated)));
  // Row 1 is not among those that are compared.
  assert.ok(isWrong(largestErrorOf(c, inputs, right.with(8, NaN))));
  assert.throws(() => largestErrorOf(c, inputs, right.subarray(8)), /numbers/);
});

test('layouts for other libraries: swapping twice gives the original, heads are repeated in groups', () => {
  const data = Float32Array.from({ length: 2 * 3 * 5 * 4 }, (_, n) => n);
  const swapped = swapHeadsAndRows(data, 2, 3, 5, 4);
  assert.equal(swapped[4], 5 * 4, 'the second head’s first row comes second');
  assert.deepEqual(swapHeadsAndRows(swapped, 2, 5, 3, 4), data);
  const c = shape({ batch: 2, numHeads: 4, numKvHeads: 2, seqlenKv: 1, headDim: 1 });
  assert.deepEqual([...repeatHeads(c, Float32Array.of(1, 2, 3, 4))], [1, 1, 2, 2, 3, 3, 4, 4]);
  assert.deepEqual([...causalBias(shape({ seqlenQ: 2, seqlenKv: 3 }), -9)], [0, 0, -9, 0, 0, 0]);
});

test('turns that others disturbed are thrown away where three quiet ones remain, and marked where not', () => {
  /** @param {number} ms @param {number} [otherLoad] */
  const turn = (ms, otherLoad = 0) => ({ ms: [ms - 1, ms, ms + 1], otherLoad });
  assert.deepEqual(summarise([turn(10), turn(30), turn(20), turn(90, 0.5)]), {
    ms: 20,
    msMin: 9,
    turns: 3,
    calls: 9,
    discarded: 1,
    noisy: false,
  });
  const { ms, turns, noisy, discarded } = summarise([turn(10), turn(20), turn(90, 0.5)]);
  assert.deepEqual({ ms, turns, noisy, discarded }, { ms: 20, turns: 3, noisy: true, discarded: 0 });
  assert.equal(summarise([turn(10)]).noisy, false);
  assert.equal(summarise([{ ms: [1], otherLoad: undefined }]).noisy, false, 'where it cannot be told');
});

test('an error above the tolerance or not a number is wrong', () => {
  assert.deepEqual([1e-7, 1e-4, NaN, Infinity, undefined].map(isWrong), [false, true, true, true, false]);
});

test('processor time of a process is read behind a name with brackets and spaces', () => {
  const stat = '42 (a) b (c) S 7 1 1 0 -1 4194304 1 2 3 4 50 6 10 20 20 0 1 0 99';
  assert.deepEqual(parseProcessStat(stat, false), { parent: 7, ms: 560 });
  assert.deepEqual(parseProcessStat(stat, true), { parent: 7, ms: 860 });
});

test('a failure is told in one line and without folders', () => {
  const said = oneLine('\nnode failed: /build/x/core/math.cc:12 too large\nat somewhere');
  assert.equal(said, 'node failed: math.cc:12 too large');
  assert.equal(oneLine('cannot load file:///home/x/a.mjs now'), 'cannot load a.mjs now');
  assert.equal(oneLine('1/2 and/or'), '1/2 and/or');
  assert.ok(oneLine('x'.repeat(999)).length <= 160);
});

/**
 * An engine whose contestants do what `script` says.
 * @param {Record<string, { error?: number, fails?: string, firstMs?: number }>} script
 */
function actors(script) {
  /** @type {string[]} */
  const log = [];
  /** @type {any} */
  const engine = {
    async player(/** @type {string} */ id) {
      return {
        pid: undefined,
        async prepare() {
          log.push(`prepare ${id}`);
          const { fails, error = 0, firstMs = 1 } = script[id];
          if (fails) throw new Error(fails);
          return { error, firstMs };
        },
        async turn() {
          log.push(`turn ${id}`);
          return [2];
        },
        close: async () => void log.push(`close ${id}`),
      };
    },
  };
  const contestants = Object.keys(script).map((id) => ({
    id,
    library: /** @type {any} */ (id),
    way: '',
    prepare: /** @type {any} */ (null),
  }));
  return { engine, contestants, log };
}

const pace = { rounds: 3, retries: 0, patienceMs: 0, turnMs: 0 };

test('turns go round the contestants; who fails or is wrong is not timed; all are closed', async () => {
  const { engine, contestants, log } = actors({
    a: {},
    b: { fails: 'no memory' },
    c: { error: 0.5 },
    d: {},
    e: { error: NaN },
  });
  const { entries } = await timeShape(engine, contestants, shape(), pace);
  assert.deepEqual(
    log.filter((line) => line.startsWith('turn')),
    ['turn a', 'turn d', 'turn d', 'turn a', 'turn d', 'turn a'],
  );
  assert.equal(log.filter((line) => line.startsWith('close')).length, 5);
  const byId = Object.fromEntries(entries.map((entry) => [entry.contestant, entry]));
  assert.equal(byId.a.ms, 2);
  assert.equal(byId.a.turns, 3);
  assert.equal(byId.b.failed, 'no memory');
  assert.equal(byId.c.wrong, 0.5);
  assert.equal(byId.c.ms, undefined);
  assert.equal(byId.e.wrong, null);
});

test('at huge shapes one contestant is open at a time, and slow ones have one turn', async () => {
  const { engine, contestants, log } = actors({ a: {}, slow: { firstMs: 1e4 } });
  await timeShape(engine, contestants, shape({ seqlenQ: 20000, seqlenKv: 20000 }), pace);
  const once = (/** @type {string} */ id) => [`prepare ${id}`, `turn ${id}`, `close ${id}`];
  assert.deepEqual(log, [...once('a'), ...once('slow'), ...once('a'), ...once('a')]);
});

test('options that are not understood name themselves and the values', () => {
  assert.throws(() => readOptions(['--shapes', 'bert128,bert9'], 'r'), /--shapes takes bert128, .*got bert9/);
  assert.throws(() => readOptions(['--rounds', '0'], 'r'), /--rounds takes a whole number from 1 on, got 0/);
  assert.throws(() => readOptions(['--peers', '('], 'r'), /--peers takes a regular expression/);
  assert.throws(() => readOptions(['--speed'], 'r'), /--speed/);
});

test('a part of the comparison is not kept among the complete runs, and the command is told without its folder', () => {
  assert.equal(readOptions([], 'results').out, 'results');
  assert.equal(readOptions(['--shapes', 'swin'], 'results').out, undefined);
  const { out, command } = readOptions(['--peers', 'sdpa|mha', '--out', '/some/where'], 'results');
  assert.equal(out, '/some/where');
  assert.equal(command, "npm run bench:peers -- --peers 'sdpa|mha'");
});

test('what stands between the markers is replaced, the rest stays, and a marker that is missing or doubled is an error', () => {
  const readme = 'a\n<!-- x -->\nold\n<!-- /x -->\nb $& $1\n';
  const once = replaceBlock(readme, 'x', 'new $& $1\n');
  assert.equal(once, 'a\n<!-- x -->\n\nnew $& $1\n\n<!-- /x -->\nb $& $1\n');
  assert.equal(replaceBlock(once, 'x', 'new $& $1\n'), once);
  assert.throws(() => replaceBlock('<!-- x -->', 'x', ''), /\/x --> must stand there once, and stands there 0 times/);
  assert.throws(() => replaceBlock(`${readme}<!-- x -->`, 'x', ''), /2 times/);
  assert.throws(() => replaceBlock('<!-- /x --> <!-- x -->', 'x', ''), /before/);
});

/** @param {any[]} entries @returns {any} */
const results = (entries) => ({
  kind: 'peers',
  engine: 'Node 24.1.0',
  environment: {
    date: '2024-05-06T07:08:09.000Z',
    commit: '0123456789abcdef-dirty',
    command: 'npm run bench:peers',
    machine: { cpu: 'Some CPU', cores: 2, memory: 1, system: 'linux x64' },
    versions: { sdpa: '0.1.0', node: '24.1.0', '@jax-js/jax': '0.1.25' },
  },
  pace,
  shapes: [
    {
      name: 'attention/prefill/causal/B:1/H:32/Hkv:8/Sq:512/Skv:512/D:128',
      nickname: 'llama512',
      flops: 1,
      entries,
    },
  ],
});

/** @param {string} library @param {string} way @param {number} ms */
const timed = (library, way, ms) => ({ contestant: `${library} ${way}`, library, way, ms, gflops: 10, noisy: false });

test('the report shows each library’s fastest way, the winner in bold also where it is another, and the ratios', () => {
  const markdown = peersReport([
    results([
      timed('sdpa', 'simd', 4),
      timed('sdpa', 'relaxed', 2),
      timed('onnxruntime-web', 'mha', 3),
      timed('onnxruntime-web', 'gqa', 1),
      { ...timed('plain JavaScript', 'naive', 50), noisy: true },
    ]),
  ]);
  assert.match(markdown, /^\*\*Node 24\.1\.0\*\*/);
  assert.ok(
    markdown.includes(
      '| `llama512`: 32/8 heads, 512², D 128, causal | 4.00 (10.0) | 2.00 (10.0) | **1.00** (10.0) gqa | ~50.0 (10.0) | 0.25 | 0.50 |',
    ),
    markdown,
  );
  assert.match(markdown, /~ Other processes ran meanwhile/);
  assert.match(
    markdown,
    /Some CPU, 2 cores, linux x64; sdpa 0\.1\.0 at 0123456789 with changes, node 24\.1\.0, jax-js 0\.1\.25; .*2024-05-06; `npm run bench:peers`/,
  );
});

test('the report shows failing and wrong libraries with what they said', () => {
  const markdown = peersReport([
    results([
      timed('sdpa', 'simd', 4),
      { contestant: 'jax-js', library: '@jax-js/jax', way: 'x', failed: 'out of `memory`' },
      { contestant: 'tfjs', library: '@tensorflow/tfjs-backend-wasm', way: 'x', wrong: 0.25 },
    ]),
  ]);
  assert.match(markdown, /\| \*\*4\.00\*\* \(10\.0\) \| fails \| wrong \| – \|/);
  assert.ok(markdown.includes("- jax-js everywhere fails: `out of 'memory'`"), markdown);
  assert.ok(markdown.includes('- tfjs everywhere wrong: error 2.5e-1'), markdown);
});

test('a shape is described in words from its name', () => {
  const name = (/** @type {string} */ rest) => /** @type {any} */ ({ name: `attention/prefill/${rest}` });
  assert.equal(describe(name('dense/B:64/H:3/Hkv:3/Sq:49/Skv:49/D:32')), 'batch 64, 3 heads, 49², D 32');
  assert.equal(describe(name('causal/B:1/H:1/Hkv:1/Sq:1/Skv:2048/D:64')), '1 head, 1×2048, D 64, causal');
});

test('writing the results of all engines twice changes nothing, and a block without results stays', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'sdpa-report-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const one = results([timed('sdpa', 'simd', 4), timed('onnxruntime-web', 'mha', 3)]);
  await writeFile(join(folder, 'peers-node24.json'), JSON.stringify(one));
  await writeFile(join(folder, 'peers-chromium.json'), JSON.stringify({ ...one, engine: 'Chromium 140' }));
  const readme =
    '# Title\n\n<!-- bench:js -->\nas it is\n<!-- /bench:js -->\n\n<!-- bench:peers -->\n<!-- /bench:peers -->\n';
  const first = await withResults(readme, folder, {});
  assert.deepEqual(first.shown, ['peers-chromium.json', 'peers-node24.json']);
  assert.ok(first.text.includes('\nas it is\n'));
  assert.ok(first.text.indexOf('**Node 24.1.0**') < first.text.indexOf('**Chromium 140**'), first.text);
  const second = await withResults(first.text, folder, {});
  assert.equal(second.text, first.text);
  await assert.rejects(withResults('# Title\n', folder, {}), /bench:peers/);
});
