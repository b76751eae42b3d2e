// The map explorer of the demo page.

import assert from 'node:assert/strict';
import { load } from 'sdpa';
import { writeNpy, writeNpz, writeSafetensors } from 'sdpa/io';
import { browserTest } from './helpers/demo.mjs';
import {
  atSection,
  drawn,
  hashOf,
  numberIn,
  numbers,
  openTable,
  plainRow,
  readCsv,
  saved,
} from './helpers/sections.mjs';

/** @param {string} name @param {Uint8Array} bytes */
const file = (name, bytes) => ({ name, mimeType: 'application/octet-stream', buffer: Buffer.from(bytes) });

/** @param {number[]} shape @param {number} seed */
const tensor = (shape, seed) => ({
  data: numbers(
    shape.reduce((a, b) => a * b),
    seed,
  ),
  shape,
});

/**
 * The example's query and key, as the page makes them.
 * @param {import('playwright-core').Page} page
 * @param {number} head
 * @param {number} tokens
 */
const example = (page, head, tokens) =>
  page.evaluate(
    async ([number, length]) => {
      const at = (/** @type {string} */ path) => import(new URL(path, document.baseURI).href);
      const [{ makeHead, headDim }, { Pace }] = await Promise.all([at('sections/map/example.js'), at('parts/pace.js')]);
      const { query, key } = await makeHead(number, length, new Pace());
      return { query: Array.from(query.data), key: Array.from(key.data), size: headDim };
    },
    [head, tokens],
  );

for (const kind of /** @type {const} */ (['max', 'mean'])) {
  browserTest(
    `the pooled map has the ${kind} of the plain weights in each cell, and the strip their sums`,
    async () => {
      const tokens = 256;
      await atSection('map', { tokens: 8, head: 1, kind }, async ({ page, section }) => {
        const { query, key, size } = await example(page, 1, tokens);
        const rows = Array.from({ length: tokens }, (_, row) =>
          plainRow({ query, key, size, keys: tokens, row, seen: (j) => j <= row }),
        );
        const { bytes } = await saved(page, section.getByRole('button', { name: /^Save the cells/ }));
        const { lines } = readCsv(bytes);
        assert.equal(lines.length, 128 * 128);
        for (const [i0, i1, j0, j1, weight] of lines) {
          const cells = rows.slice(i0, i1 + 1).flatMap((row) => row.slice(j0, j1 + 1));
          const expected = kind === 'max' ? Math.max(...cells) : cells.reduce((a, b) => a + b) / cells.length;
          assert.ok(Math.abs(weight - expected) < 2e-6, `${i0} ${j0}: ${weight} instead of ${expected}`);
        }
        const sums = await (await openTable(section.locator('.plot'))).locator('td').allInnerTexts();
        assert.equal(sums.length, 128);
        for (const [j, text] of sums.entries()) {
          const expected = rows.reduce((sum, row) => sum + (row[2 * j] + row[2 * j + 1]) / 2, 0);
          assert.ok(Math.abs(numberIn(text) / expected - 1) < 6e-3, `${text} instead of ${expected}`);
        }
      });
    },
  );
}

browserTest(
  'zooming leads to single weights, which are those of a whole row; the address leads back to them',
  async () => {
    const tokens = 1024;
    await atSection('map', { tokens: 10, head: 3 }, async ({ page, go, section }) => {
      await section.locator('.cells', { hasText: 'the largest of 8 × 8 weights' }).waitFor();
      const stage = section.getByRole('application');
      await stage.focus();
      await page.keyboard.press('End');
      await page.keyboard.press('Control+End');
      for (let zoomed = 512; zoomed >= 64; zoomed /= 2) {
        await page.keyboard.press('+');
        await page.locator(`#map .body[data-drawn*='"rows":${zoomed},']`).waitFor();
      }
      assert.equal(await section.locator('.cells').textContent(), 'Each cell is one weight.');
      const { query, key, size } = await example(page, 3, tokens);
      const { bytes } = await saved(page, section.getByRole('button', { name: /^Save the cells/ }));
      const { header, lines } = readCsv(bytes);
      assert.deepEqual(header, ['first_query', 'last_query', 'first_key', 'last_key', 'weight']);
      assert.equal(lines.length, 64 * 64);
      assert.equal(lines[lines.length - 1][0], tokens - 1);
      const known = new Map();
      for (const [i, last, j, , weight] of lines) {
        assert.equal(i, last);
        if (!known.has(i)) {
          known.set(i, plainRow({ query, key, size, keys: tokens, row: i, seen: (k) => k <= i }));
        }
        assert.ok(Math.abs(weight - known.get(i)[j]) < 2e-6, `${i}, ${j}: ${weight} instead of ${known.get(i)[j]}`);
      }

      const hash = await hashOf(page);
      const text = await section.locator('.map-readout').textContent();
      assert.match(text ?? '', /^query 1\s023, key 1\s023: /);
      await go(hash);
      await page.locator(`#map .body[data-drawn*='"rows":64,']`).waitFor();
      assert.match((await page.locator('#map .map-readout').textContent()) ?? '', /^query 960, key 960: /);
      // Beyond the upper side is what comes before.
      await page.locator('#map').getByRole('application').focus();
      await page.keyboard.press('ArrowUp');
      await page.locator(`#map .body[data-drawn*='"row":928,']`).waitFor();
      assert.match((await page.locator('#map .map-readout').textContent()) ?? '', /^query 959, /);
      await page.keyboard.press('0');
      await page.locator(`#map .body[data-drawn*='"rows":1024,']`).waitFor();
    });
  },
);

browserTest(
  'a file of a batch with shared heads and more keys than queries is shown as the library has it',
  async () => {
    const sdpa = await load();
    const [query, key] = [tensor([2, 4, 9, 16], 1), tensor([2, 2, 30, 16], 2)];
    const bytes = writeSafetensors({ 'layer.q': query, 'layer.k': key, ids: { data: new Int32Array(3), shape: [3] } });
    await atSection('map', {}, async ({ page, section }) => {
      await section.locator('input[type=file]').setInputFiles(file('model.safetensors', bytes));
      await section.locator('.tensors .status', { hasText: '2 tensors' }).waitFor();
      assert.match((await section.locator('.tensors .status').textContent()) ?? '', /ids has 1 dimensions/);
      await section.getByLabel('Batch entry').selectOption('1');
      await section.getByLabel('Query head').selectOption('3');
      for (const align of /** @type {const} */ (['lower-right', 'upper-left'])) {
        await section.getByLabel('Causal, aligned').selectOption(align);
        await section.locator('.doing .status', { hasText: /head 3, batch entry 1: 9 queries × 30 keys/ }).waitFor();
        const { rows } = sdpa.attentionWeights(query, key, { causal: true, align, rows: [0, 1, 2, 3, 4, 5, 6, 7, 8] });
        const { bytes: csv } = await saved(page, section.getByRole('button', { name: /^Save the cells/ }));
        const { lines } = readCsv(csv);
        assert.equal(lines.length, 9 * 30);
        for (const [i, , j, , weight] of lines) {
          const expected = rows.data[((4 + 3) * 9 + i) * 30 + j];
          // The builds differ in the last digits of scores up to 16.
          assert.ok(Math.abs(weight - expected) <= 1e-5 * expected, `${align} ${i} ${j}: ${weight}, ${expected}`);
        }
      }
      const json = JSON.parse(
        (await saved(page, section.getByRole('button', { name: 'Save the map as JSON' }))).bytes.toString(),
      );
      assert.deepEqual(
        [json.weights.length, json.weights[0].length, json.queries[8], json.keys[29]],
        [9, 30, [8, 8], [29, 29]],
      );
      const svg = (await saved(page, section.getByRole('button', { name: 'Save the map as SVG' }))).bytes.toString();
      assert.match(svg, /^<svg xmlns="http:\/\/www.w3.org\/2000\/svg" viewBox="0 0 30 9".*<\/svg>$/s);
      const png = await saved(page, section.getByRole('button', { name: /^Save as PNG/ }));
      assert.equal(png.bytes.subarray(1, 4).toString(), 'PNG');
      // Logarithmic and row by row, and the legend says so.
      for (const [scale, words] of /** @type {const} */ ([
        ['log', 'logarithmic'],
        ['row', 'each row by itself'],
      ])) {
        await section.locator('.map-tools select').selectOption(scale);
        await section.locator('.map-range', { hasText: words }).waitFor();
      }
    });
    sdpa.dispose();
  },
);

browserTest('.npy, .npz and half precision are read; what does not fit is told with both counts', async () => {
  const query = tensor([6, 8], 3);
  const half = { data: Uint16Array.from({ length: 40 }, (_, i) => 0x3800 + 16 * i), shape: [5, 8], dtype: 'float16' };
  await atSection('map', {}, async ({ section }) => {
    const input = section.locator('input[type=file]');
    const told = section.locator('.tensors .status');
    await input.setInputFiles([
      file('q.npy', writeNpy(query)),
      file('k.npz', writeNpz({ key: half, wide: tensor([5, 4], 4) })),
    ]);
    await section
      .locator('.doing .status', { hasText: 'q and key, head 0, batch entry 0: 6 queries × 5 keys' })
      .waitFor();
    await section.getByLabel('Key', { exact: true }).selectOption('wide');
    await told.filter({ hasText: 'q has head size 8, but wide has 4' }).waitFor();
    await input.setInputFiles(file('more.npz', writeNpz({ qb: tensor([2, 3, 6, 8], 5), kb: tensor([3, 3, 6, 8], 6) })));
    await section.getByLabel('Query', { exact: true }).selectOption('qb');
    await section.getByLabel('Key', { exact: true }).selectOption('kb');
    await told.filter({ hasText: 'qb has batch size 2, but kb has 3' }).waitFor();
    await input.setInputFiles(file('broken.safetensors', new Uint8Array([1, 2, 3])));
    await told.filter({ hasText: 'broken.safetensors: ' }).waitFor();
    await input.setInputFiles(file('picture.jpg', new Uint8Array(3)));
    await told.filter({ hasText: 'picture.jpg is none of the files that are read' }).waitFor();
  });
});

browserTest('a file can be dropped', async () => {
  await atSection('map', {}, async ({ page, section }) => {
    const text = Buffer.from(writeNpy(tensor([4, 8], 7))).toString('base64');
    const transfer = await page.evaluateHandle((base64) => {
      const given = new DataTransfer();
      const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
      given.items.add(new File([bytes], 'both.npy'));
      return given;
    }, text);
    await section.locator('.drop').dispatchEvent('drop', { dataTransfer: transfer });
    await section
      .locator('.doing .status', { hasText: 'both and both, head 0, batch entry 0: 4 queries × 4 keys' })
      .waitFor();
  });
});

browserTest('32 768 tokens are computed while frames are drawn, and Stop ends it', async (t) => {
  await atSection('map', { tokens: 8 }, async ({ page, section }) => {
    await page.evaluate(() => Object.assign(/** @type {any} */ (window).seen, { frames: 0, longTasks: [] }));
    await section.getByLabel('Tokens').focus();
    await page.keyboard.press('End');
    await section.locator('.doing .status', { hasText: 'none of them stored' }).waitFor();
    // Timers and frames come in between.
    await page.evaluate(async () => {
      for (let i = 0; i < 10; i++) await new Promise((done) => setTimeout(done, 10));
      for (let i = 0; i < 5; i++) await new Promise(requestAnimationFrame);
    });
    const { frames, longTasks } = await page.evaluate(() => /** @type {any} */ (window).seen);
    assert.ok(frames >= 5);
    t.diagnostic(`${frames} frames; tasks above 50 ms: ${longTasks.join(', ') || 'none'}`);
    await section.getByRole('button', { name: 'Stop' }).click();
    await section.locator('.doing .status', { hasText: 'Stopped.' }).waitFor();
    await section.getByLabel('Tokens').focus();
    await page.keyboard.press('Home');
    await drawn(page, 'map', '["example",256');
    await section.locator('.doing .status', { hasText: '256 queries × 256 keys' }).waitFor();
  });
});
