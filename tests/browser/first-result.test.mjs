// The bench of the first result in Chromium: what it times is what it says, and right. How long it takes is not asked here.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { load } from 'sdpa';
import { findChromium } from '../../scripts/chromium.mjs';

const bench = fileURLToPath(new URL('../../bench/js/first-result-chromium.mjs', import.meta.url));
const skip = findChromium() ? false : 'no Chromium: install it, or set CHROMIUM to its program';

test('the bench of the first result in Chromium times each build that is asked for', { skip }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sdpa-first-result-test-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'results.json');
  const args = ['--variants', 'auto,simd', '--rounds', '1', '--json', file];
  const printed = execFileSync(process.execPath, [bench, ...args], { encoding: 'utf8' });
  assert.match(printed, /in Chromium \d+\.[^]*\nauto \(takes (relaxed|simd|scalar)\): [\d.]+ ms[^]*\nsimd: [\d.]+ ms/);

  const { results } = JSON.parse(readFileSync(file, 'utf8'));
  const names = results.map((/** @type {any} */ { variant, rounds }) => `${variant} ${rounds}`);
  assert.deepEqual(names, ['auto 1', 'simd 1']);
  const shape = [1, 12, 128, 64];
  const query = { data: Float32Array.from({ length: 12 * 128 * 64 }, (_, i) => Math.sin(i)), shape };
  const sdpa = await load({ variant: 'simd' });
  const wanted = [...sdpa.attention(query, query, query).out.data.subarray(0, 8)];
  sdpa.dispose();
  for (const { importMs, loadMs, callMs, loadToResultMs, out } of results) {
    for (const ms of [importMs, loadMs, callMs]) assert.ok(ms > 0);
    assert.ok(Math.abs(loadToResultMs - loadMs - callMs) < 1e-6);
    out.forEach((/** @type {number} */ y, /** @type {number} */ i) => assert.ok(Math.abs(y - wanted[i]) < 1e-4));
  }
});

test('it refuses what it does not know', () => {
  for (const args of [
    ['--variants', 'fast'],
    ['--rounds', '0'],
    ['--size', '3'],
  ])
    assert.throws(
      () => execFileSync(process.execPath, [bench, ...args], { stdio: 'pipe' }),
      /--variants|--rounds|--size/,
    );
});
