// The examples of web/examples, with the installed package: each runs as its README says, and what it writes or shows is looked at.

import assert from 'node:assert/strict';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { inflateSync } from 'node:zlib';
import { quietFlags } from '../../scripts/chromium.mjs';
import { serve } from '../../scripts/serve.mjs';
import { checkTypes, installPackage, root, run } from './install.mjs';

const source = join(root, 'web/examples');

/** @type {ReturnType<typeof installPackage>} */
let installed;
before(() => {
  installed = installPackage();
  cpSync(source, installed.folder, { recursive: true });
});
after(() => installed?.remove());

/** Examples that a test has run. @type {Set<string>} */
const ran = new Set();

/** @param {string} name @param {...string} args @returns {string[]} the lines that it prints */
function example(name, ...args) {
  ran.add(`${name}.mjs`);
  const printed = run(process.execPath, [`${name}.mjs`, ...args], installed.folder);
  return printed === '' ? [] : printed.trimEnd().split('\n');
}

const inFolder = (/** @type {string} */ name) => join(installed.folder, name);

test('one call in Node', () => {
  const [line, ...more] = example('attention');
  assert.match(line, /^(simd|relaxed|scalar): out 1×12×1024×64, lse 1×12×1024$/);
  assert.deepEqual(more, []);
});

test('decoding with a cache', () => {
  assert.deepEqual(example('decode-with-cache'), [
    'prompt: 1×8×100×64',
    'step 20: 1×8×1×64 over 120 tokens',
    'back to 100 tokens, 512 bytes for each',
  ]);
});

test('packed sequences', () => {
  assert.deepEqual(example('packed-sequences'), [
    '4 sequences, 400 tokens: 1×400×4×32',
    'as one call for each, within 1e-6: true',
  ]);
});

test('a map of weights as PNG and CSV', () => {
  assert.equal(example('weights-map', '.').length, 1);
  const rows = readFileSync(inFolder('map.csv'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => line.split(',').map(Number));
  assert.deepEqual([rows.length, ...new Set(rows.map((row) => row.length))], [128, 128]);
  rows.forEach((row, r) => {
    assert.ok(
      row.every((w, c) => (c > r ? w === 0 : w > 0 && w <= 1)),
      `row ${r}`,
    );
  });

  const file = readFileSync(inFolder('map.png'));
  assert.equal(file.subarray(1, 4).toString(), 'PNG');
  assert.deepEqual([file.readUInt32BE(16), file.readUInt32BE(20)], [128, 128]);
  const at = file.indexOf('IDAT');
  const pixels = inflateSync(file.subarray(at + 4, at + 4 + file.readUInt32BE(at - 4)));
  assert.equal(pixels.length, 129 * 128);
  const shade = (/** @type {number} */ r, /** @type {number} */ c) => pixels[r * 129 + 1 + c];
  for (let r = 0; r < 128; r++) {
    assert.equal(Math.min(...pixels.subarray(r * 129 + 1, r * 129 + 129)), 0, `row ${r} has a black cell`);
    if (r < 127) assert.equal(shade(r, 127), 255, `row ${r} sees no later keys`);
  }
});

test('a file of tensors in, a file out', () => {
  writeFileSync(
    inFolder('make.mjs'),
    `import { writeFileSync } from 'node:fs';
     import { writeSafetensors } from 'sdpa/io';
     const tensor = (phase) => ({ data: Float32Array.from({ length: 48 }, (_, i) => Math.sin(i + phase)), shape: [1, 1, 6, 8] });
     writeFileSync('in.safetensors', writeSafetensors({ query: tensor(0), key: tensor(1), value: tensor(2) }));`,
  );
  run(process.execPath, ['make.mjs'], installed.folder);
  assert.deepEqual(example('safetensors-to-output', 'in.safetensors', 'out.npy'), []);
  const file = readFileSync(inFolder('out.npy'));
  assert.match(file.toString('latin1'), /'shape': \(1, 1, 6, 8\)/);
  const out = Array.from({ length: 48 }, (_, i) => file.readFloatLE(file.length - 4 * (48 - i)));
  const x = (/** @type {number} */ phase, /** @type {number} */ row) =>
    Array.from({ length: 8 }, (_, d) => Math.fround(Math.sin(row * 8 + d + phase)));
  for (let i = 0; i < 6; i++) {
    const weights = Array.from({ length: 6 }, (_, j) =>
      Math.exp(x(0, i).reduce((sum, q, d) => sum + q * x(1, j)[d], 0) / Math.sqrt(8)),
    );
    const total = weights.reduce((a, b) => a + b);
    for (let d = 0; d < 8; d++) {
      const exact = weights.reduce((sum, w, j) => sum + w * x(2, j)[d], 0) / total;
      assert.ok(Math.abs(out[i * 8 + d] - exact) < 1e-6, `row ${i}, column ${d}`);
    }
  }
  // What the README promises.
  const code = readFileSync(join(source, 'safetensors-to-output.mjs'), 'utf8');
  assert.equal(code.split('\n').filter((line) => /^[^/]/.test(line) && !line.startsWith('import')).length, 5);
});

test('a layer learns', () => {
  const [line] = example('training-step');
  const [, first, last] = /^loss ([\d.]+) at first, ([\d.]+) in the end$/.exec(line) ?? [];
  assert.ok(Number(last) < 0.1 * Number(first), line);
});

test('a page without a bundler computes, says how far it is, and stops', { skip: noBrowser() }, async (t) => {
  // As its import map has it: the page beside node_modules.
  for (const name of ['index.html', 'page.js']) cpSync(join(source, 'page', name), inFolder(name));
  const served = await serve(installed.folder);
  t.after(() => served.close());
  const { chromium } = await import('playwright-core');
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: quietFlags,
  });
  t.after(() => browser.close());
  const page = await browser.newPage();
  /** @type {string[]} */
  const complaints = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  await page.goto(`${served.url}/index.html`);
  const says = (/** @type {string} */ text) => page.locator('#status', { hasText: text }).waitFor();
  await says('Ready');
  await page.click('#start');
  await says('Computing');
  await page.click('#stop');
  await says('Stopped');
  await page.click('#start');
  await says('Done: 1 × 2 × 16384 × 64');
  assert.equal(await page.locator('progress').evaluate((bar) => /** @type {any} */ (bar).value), 1);
  assert.deepEqual(complaints, []);
});

test('the examples fit the types', () => {
  writeFileSync(inFolder('page/package.json'), JSON.stringify({ type: 'module' }));
  checkTypes(installed.folder, { strict: true, files: [...examples(), 'page/page.js'] });
});

test('every example has been run, and the README lists it', () => {
  const readme = readFileSync(join(source, 'README.md'), 'utf8');
  for (const name of examples()) {
    assert.ok(ran.has(name), name);
    assert.ok(readme.includes(`(${name})`), `README.md does not list ${name}`);
  }
});

const examples = () => readdirSync(source).filter((name) => name.endsWith('.mjs'));

/** @returns {string | false} */
function noBrowser() {
  return process.env.CHROMIUM ? false : 'CHROMIUM is not set to a browser';
}
