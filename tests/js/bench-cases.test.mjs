// The benches of both sides time the same cases, and the JavaScript one still runs.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
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

test('decode is put beside a loop that only reads, arrays beside tensors, two workers beside one', async () => {
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
  const written = await run(process.execPath, 'bench/js/report.mjs', file);
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
