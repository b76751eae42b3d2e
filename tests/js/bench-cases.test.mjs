// The benches of both sides time the same cases, and the JavaScript one still runs.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Bandwidth, bandwidthModule, turnBytes } from '../../bench/js/bandwidth.mjs';
import { CASES, keyValueBytes } from '../../bench/js/cases.mjs';
import { ARITHMETIC } from '../../bench/js/ceiling.mjs';
import { leastMs } from '../../bench/js/measure.mjs';
import { report as markdownOf } from '../../bench/js/report.mjs';
import { VARIANT } from './helpers/sdpa.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** @param {string} program @param {string[]} args */
const run = async (program, ...args) => (await promisify(execFile)(program, args, { cwd: root })).stdout;

/** @param {string[]} args */
const bench = (...args) => run(process.execPath, 'bench/js/bench.mjs', ...args);

/** @type {string} */
let folder;
before(async () => void (folder = await mkdtemp(join(tmpdir(), 'sdpa-bench-'))));
after(() => rm(folder, { recursive: true, force: true }));

// What bench.mjs --list prints, from the C++ table.
const listCases = `
#include "case_table.hpp"
#include <cstdio>
int main() {
  for (const auto& c : sdpa::cases::kCases) std::printf("%s %.0f %.0f\\n", c.name().c_str(), c.flops(), c.bytes());
}
`;

test('the cases of the JavaScript bench are those of the native bench, in names, FLOPs and bytes', async () => {
  const source = join(folder, 'list.cpp');
  const program = join(folder, 'list');
  await writeFile(source, listCases);
  await run(process.env.CXX || 'c++', '-std=c++20', '-I', join(root, 'bench/native'), source, '-o', program);
  const native = await run(program);
  assert.ok(native.split('\n').length > 10, native);
  assert.equal(await bench('--list'), native);
});

test('the JavaScript bench times a case, verifies its result, and its report names what was measured', async () => {
  const file = join(folder, 'results.json');
  const name = 'attention/prefill/dense/B:64/H:3/Hkv:3/Sq:49/Skv:49/D:32';
  const printed = await bench('--variants', VARIANT, '--filter', `^${name}$|^size$`, '--turns', '2', '--json', file);
  assert.ok(printed.includes(name), printed);

  const results = JSON.parse(await readFile(file, 'utf8'));
  assert.deepEqual(
    results.cases.map((/** @type {any} */ { name: found }) => found),
    [name],
  );
  const [timing] = results.cases[0].timings;
  assert.equal(timing.variant, VARIANT);
  assert.ok(timing.error > 0 && timing.error <= 2e-6, `error ${timing.error}`);
  for (const number of [timing.ms, timing.gflops, timing.peak.registers, timing.peak.loop, timing.shareOfLoop]) {
    assert.ok(number > 0 && Number.isFinite(number), JSON.stringify(timing));
  }
  assert.ok(results.sizes.entryGzip > 10_000);
  assert.ok(!JSON.stringify(results).includes(folder), 'a results file names no folder of the machine');

  const report = await run(process.execPath, 'bench/js/report.mjs', file);
  for (const part of [
    name.replace('attention/', ''),
    VARIANT,
    timing.peak.arithmetic,
    results.environment.machine.cpu,
  ]) {
    assert.ok(report.includes(part), report);
  }
});

test('decode is put beside a loop that only reads, arrays beside tensors, two workers beside one; older results lack them', async () => {
  const file = join(folder, 'limits.json');
  const decode = 'attention/decode/dense/B:1/H:12/Hkv:12/Sq:1/Skv:1024/D:64';
  const arrays = 'attention/arrays/dense/B:1/H:12/Hkv:12/Sq:128/Skv:128/D:64';
  const workers = 'attention/workers/dense/B:1/H:12/Hkv:12/Sq:512/Skv:512/D:64';
  const names = `^(${decode}|${arrays}|${workers})$`;
  const printed = await bench('--variants', VARIANT, '--filter', names, '--turns', '1', '--json', file);
  const results = JSON.parse(await readFile(file, 'utf8'));
  /** @param {any} found @param {string[]} keys */
  const positive = (found, ...keys) => {
    for (const key of keys)
      assert.ok(found[key] > 0 && Number.isFinite(found[key]), `${key} of ${JSON.stringify(found)}`);
  };
  positive(results.cases[0].timings[0], 'gbps', 'read', 'overLimit');
  assert.equal(results.arraysCall.name, arrays);
  positive(results.arraysCall.timings[0], 'resident', 'arrays', 'ratio');
  const written = markdownOf(results);
  assert.match(written, /[\d.]+ of [\d.]+ GB\/s, [\d.]+×/);
  assert.ok(written.includes('plain arrays against resident tensors'), written);
  if (VARIANT === 'scalar') assert.equal(results.workers, undefined);
  else if (results.workers.skipped === undefined) {
    assert.equal(results.workers.cases[0].name, workers);
    positive(results.workers.cases[0].timings[0], 'sync', 'one', 'two', 'ratio');
    assert.ok(written.includes(workers.replace('attention/', '')), written);
  } else {
    assert.ok(printed.includes(results.workers.skipped), printed);
    assert.ok(written.includes(results.workers.skipped), written);
  }

  const timing = results.cases[0].timings[0];
  delete timing.read;
  delete timing.overLimit;
  delete results.arraysCall;
  delete results.workers;
  const old = markdownOf({ ...results, smallestCall: [{ variant: VARIANT, resident: 1, arrays: 2 }] });
  assert.match(old, /[\d.]+ of – GB\/s, – \|/);
  assert.match(old, /\| plain arrays against resident tensors \| – \|/);
  assert.match(old, /\| two workers against one \| – \|/);
});

test('the least time of a decode call is that of reading or that of computing, whichever is longer', () => {
  const c = CASES.find(({ nickname }) => nickname === 'dec-llama');
  assert.ok(c);
  const load = { busy: 0, ours: 0, total: 1 };
  const megabytes = (2 * 8 * 2048 * 128 + 2 * 32 * 128) * 4e-6;
  const megaflops = 4 * 32 * 2048 * 128 * 1e-6;
  /** @param {number} read @param {number} loop */
  const least = (read, loop) => {
    const [start, end] = [0.5, 1.5].map((x) => ({ registers: 1, loop: x * loop, read: x * read }));
    return leastMs(c, { ms: [1], before: start, after: end, load });
  };
  assert.ok(Math.abs(least(10, 1e6) / (megabytes / 10) - 1) < 1e-9);
  assert.ok(Math.abs(least(1e6, 20) / (megaflops / 20) - 1) < 1e-9);
  assert.equal(keyValueBytes(c), 2 * 8 * 2048 * 128 * 4);
});

test('the loop that measures the bandwidth reads every number once, and nothing else', () => {
  const arithmetic = ARITHMETIC[VARIANT];
  const bytes = 3 * turnBytes(arithmetic);
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bandwidthModule(arithmetic, bytes)));
  const { memory, read } = /** @type {{ memory: WebAssembly.Memory, read: () => number }} */ (
    /** @type {unknown} */ (exports)
  );
  const numbers = new Float32Array(memory.buffer);
  for (let i = 0; i < bytes / 2; i++) {
    numbers.fill(0);
    numbers[i] = 1;
    assert.equal(read(), i < bytes / 4 ? 1 : 0, `number ${i}`);
  }
  const bandwidth = new Bandwidth(VARIANT, 100_000);
  assert.equal(bandwidth.bytes % turnBytes(arithmetic), 0);
  assert.ok(bandwidth.bytes <= 100_000 && bandwidth.bytes > 99_000, `${bandwidth.bytes} bytes`);
  const speed = bandwidth.measure();
  assert.ok(speed > 0 && Number.isFinite(speed), `${speed} GB/s`);
});

test('the JavaScript bench refuses what it does not know, and says what there is', async () => {
  const failing = [
    [['--variants', 'simd,avx'], /--variants takes simd, relaxed, scalar, got avx/],
    [['--turns', '0'], /--turns takes a whole number from 1 on, got 0/],
    [['--filter', '('], /--filter takes a regular expression, got \(/],
    [['--speed'], /--speed/],
  ];
  for (const [args, message] of failing) {
    await assert.rejects(bench(.../** @type {string[]} */ (args)), (/** @type {any} */ error) => {
      assert.equal(error.code, 1);
      assert.match(error.stderr, /** @type {RegExp} */ (message));
      return true;
    });
  }
});
