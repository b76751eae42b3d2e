// The bench of alternatives: its task, and that it still runs.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { childFlags, VARIANT } from './helpers/sdpa.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);
/** @param {string[]} args */
const node = async (...args) => (await run(process.execPath, [...childFlags, ...args], { cwd: root })).stdout;
/** @type {string} */
let folder;

before(async () => void (folder = await mkdtemp(join(tmpdir(), 'sdpa-bench-'))));
after(() => rm(folder, { recursive: true }));

test('it measures each method at each length, and its report names them', async () => {
  const file = join(folder, 'alternatives.json');
  const args = ['--lengths', '512,1024', '--turns', '1', '--variant', VARIANT, '--json', file];
  const printed = await node('bench/alternatives/bench.mjs', ...args);
  const results = JSON.parse(await readFile(file, 'utf8'));
  assert.equal(results.variant, VARIANT);
  assert.deepEqual(results.lengths, [512, 1024]);
  assert.ok(results.environment.machine.cpu);
  const report = await node('bench/alternatives/report.mjs', file);
  for (const { name, what, skipped, rows } of results.methods) {
    for (const text of [printed, report]) assert.ok(text.includes(name) && text.includes(what), `${name} is missing`);
    if (skipped) {
      assert.deepEqual(rows, []);
      assert.match(skipped, /has no \w+\(\)/);
      continue;
    }
    assert.deepEqual(
      rows.map((/** @type {any} */ { length }) => length),
      [512, 1024],
    );
    for (const { ms, extraBytes, recall } of rows) assert.ok(ms > 0 && extraBytes >= 0 && recall >= 0 && recall <= 1);
  }
  const of = (/** @type {string} */ name) => results.methods.find((/** @type {any} */ method) => method.name === name);
  assert.deepEqual(
    of('exact').rows.map((/** @type {any} */ { recall }) => recall),
    [1, 1],
    'exact attention returns every value',
  );
  // The last 256 tokens see at most 255 of those before them.
  assert.ok(of('window').rows[1].recall < 0.5);
});

test('the task is the same for the same seed, and asks for tokens that come before', async () => {
  const source = `
    import { CLASSES, HEAD_DIM, recall } from './bench/alternatives/needle.mjs';
    import { makeTask } from './bench/alternatives/task.mjs';
    const task = makeTask(2048, 7);
    const again = makeTask(2048, 7);
    const same = ['query', 'key', 'value'].every((name) => Buffer.from(task[name].buffer).equals(Buffer.from(again[name].buffer)));
    const other = makeTask(2048, 8).key[0] !== task.key[0];
    const before = task.needles.every(({ row, token }) => token < row && row < 2048);
    const out = new Float32Array(2048 * HEAD_DIM);
    for (const { row, token } of task.needles) {
      out.set(task.value.subarray(token * HEAD_DIM, (token + 1) * HEAD_DIM).map((x) => 0.1 * x), row * HEAD_DIM);
    }
    const perfect = recall(task, out);
    const { row, answer } = task.needles[0];
    const wrong = (answer + 1) % CLASSES;
    out.set(task.codebook.subarray(wrong * HEAD_DIM, (wrong + 1) * HEAD_DIM), row * HEAD_DIM);
    console.log(JSON.stringify({ same, other, before, perfect, less: recall(task, out), needles: task.needles.length }));`;
  assert.deepEqual(JSON.parse(await node('--input-type=module', '--eval', source)), {
    same: true,
    other: true,
    before: true,
    perfect: 1,
    less: 255 / 256,
    needles: 256,
  });
});

test('it refuses what it does not know', async () => {
  for (const [args, message] of /** @type {[string[], RegExp][]} */ ([
    [['--methods', 'exact,sparse'], /--methods takes exact, window, block-sparse, linear, ssd, got sparse/],
    [['--lengths', '4'], /--lengths takes whole numbers from 16 on, got 4/],
    [['--variant', 'avx'], /--variant takes auto, simd, relaxed, scalar, got avx/],
    [['--turns', '0'], /--turns takes whole numbers from 1 on/],
    [['--nothing'], /nothing/],
  ])) {
    await assert.rejects(node('bench/alternatives/bench.mjs', ...args), (/** @type {any} */ error) => {
      assert.match(error.stderr, message);
      return true;
    });
  }
});
