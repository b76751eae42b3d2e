// What the JavaScript bench times beside plain calls in the same turns.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { VARIANT } from './helpers/sdpa.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** @param {string[]} args */
const run = async (...args) => (await promisify(execFile)(process.execPath, args, { cwd: root })).stdout;

/** @type {string} */
let folder;
before(async () => void (folder = await mkdtemp(join(tmpdir(), 'sdpa-bench-'))));
after(() => rm(folder, { recursive: true, force: true }));

const sizes = { causal4k: 'B:1/H:1/Hkv:1/Sq:4096/Skv:4096/D:64', decode: 'B:1/H:12/Hkv:12/Sq:1/Skv:32768/D:64' };
const names = {
  option: 'attention/options/causal+window/B:1/H:12/Hkv:12/Sq:1024/Skv:1024/D:64',
  blocks: `attention/blocks/causal/${sizes.causal4k}`,
  cache: `attention/caches/int8/${sizes.decode}`,
  backward: 'attention/backward/causal/B:1/H:12/Hkv:12/Sq:1024/Skv:1024/D:64',
  memory: 'memory/attention/backward/dense/B:1/H:1/Hkv:1/Sq:8192/Skv:8192/D:64',
};

test('options, block masks, caches and gradients are timed beside plain calls, each by its name', async () => {
  const file = join(folder, 'results.json');
  const filter = `^(${Object.values(names).join('|').replaceAll('+', '\\+')})$`;
  const args = ['--variants', VARIANT, '--filter', filter, '--turns', '1', '--json', file];
  const printed = await run('bench/js/bench.mjs', ...args);
  const { comparisons, backwardMemory, cases } = JSON.parse(await readFile(file, 'utf8'));
  assert.deepEqual(cases, []);
  if (VARIANT === 'scalar') {
    assert.equal(comparisons, undefined);
    assert.equal(backwardMemory, undefined);
    return;
  }
  const written = await run('bench/js/report.mjs', file);
  const found = ['options', 'blocks', 'caches', 'backward'].map((group) => {
    assert.equal(comparisons[group].length, 1, group);
    return comparisons[group][0];
  });
  const [option, blocks, cache, backward] = found;
  assert.deepEqual(
    found.map(({ name }) => name),
    [names.option, names.blocks, names.cache, names.backward],
  );
  for (const { name, timings } of found) {
    assert.ok(printed.includes(name), printed);
    assert.ok(written.includes(name.replace('attention/', '')), written);
    assert.equal(timings.length, 1);
    assert.equal(timings[0].variant, VARIANT);
    for (const key of ['ms', 'plain', 'ratio', 'error']) {
      assert.ok(timings[0][key] > 0 && Number.isFinite(timings[0][key]), `${key} of ${JSON.stringify(timings[0])}`);
    }
  }
  // 256 keys a row, fewer in the first rows, of half a square.
  assert.ok(Math.abs(option.share - (1024 * 256 - (256 * 255) / 2) / (1024 ** 2 / 2)) < 1e-4, `${option.share}`);
  assert.ok(Math.abs(option.timings[0].overIdeal * option.share - option.timings[0].ratio) < 1e-3);
  // Tiles of 64: one of 64 rows of tiles on the diagonal, as many before as behind it.
  const { full, partial, skipped } = blocks.tiles;
  assert.deepEqual({ full, partial, skipped }, { full: (64 * 63) / 2, partial: 64, skipped: (64 * 63) / 2 });
  // One byte a number and one float32 for the 64 of a row.
  assert.equal(cache.held, 2 * 12 * 32768 * (64 + 4));
  assert.ok(cache.heldRatio <= 0.29 && cache.timings[0].gbps > 0, JSON.stringify(cache));
  assert.ok(backward.timings[0].gflops > 0 && backward.timings[0].speed > 0, JSON.stringify(backward));
  assert.ok(printed.includes(names.memory), printed);
  // q, k, v, out, dOut, dQ, dK, dV and lse.
  assert.equal(backwardMemory[0].arrays, 8 * 8192 * 64 * 4 + 8192 * 4);
  assert.ok(backwardMemory[0].allocated < 24e6 && backwardMemory[0].resident > 0, JSON.stringify(backwardMemory));
});
