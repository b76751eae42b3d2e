// The race of alternatives on the demo page.

import assert from 'node:assert/strict';
import { browserTest } from './helpers/demo.mjs';
import { atSection, drawn, hashOf, openTable, plainRow } from './helpers/sections.mjs';

/** @param {import('playwright-core').Locator} section */
const outcomes = async (section) =>
  Object.fromEntries(
    await section
      .locator('tr[data-method]')
      .evaluateAll((rows) =>
        rows.map((row) => [
          row.getAttribute('data-method'),
          Object.fromEntries(
            [...row.querySelectorAll('output')].map((cell) => [cell.dataset.kind, Number(cell.dataset.value)]),
          ),
        ]),
      ),
  );

browserTest('a race ends with time, memory and recall of every method that the library has', async () => {
  await atSection('race', { tokens: 11 }, async ({ page, section }) => {
    await section.getByRole('button', { name: 'Race', exact: true }).click();
    await drawn(page, 'race', '2048');
    const found = await outcomes(section);
    assert.deepEqual(Object.keys(found), ['exact', 'window', 'bigbird', 'linear', 'ssd']);
    for (const [name, { time, bytes, recall }] of Object.entries(found)) {
      assert.ok(time > 0 && bytes > 0 && recall >= 0 && recall <= 1, name);
    }
    assert.ok(found.exact.recall > 0.97);
    // Of 2048 tokens the window has an eighth, and the questions stand at the end.
    assert.ok(found.window.recall < 0.2 && found.linear.recall < 0.2 && found.ssd.recall < 0.5);
    assert.ok(found.bigbird.recall > found.window.recall && found.bigbird.recall < 0.8);
    assert.match(
      (await section.locator('.status').textContent()) ?? '',
      /^2\s048 tokens: .* exact attention takes .* finds \d+ %\.$/,
    );
    assert.equal(await (await openTable(section.locator('.plot'))).count(), 1);
    assert.equal(await hashOf(page), '#race?tokens=11');
  });
});

browserTest('each method gives what its formula gives, piece by piece', async () => {
  const length = 2304;
  await atSection('race', {}, async ({ page }) => {
    const { task, outs } = await page.evaluate(async (tokens) => {
      const at = (/** @type {string} */ path) => import(new URL(path, document.baseURI).href);
      const [{ load }, { methodsOf }, { makeTask, headDim }, { Pace }] = await Promise.all(
        ['sdpa/index.js', 'sections/race/methods.js', 'sections/race/task.js', 'parts/pace.js'].map(at),
      );
      const sdpa = await load();
      const pace = new Pace();
      const drawnTask = await makeTask(tokens, 3, pace);
      const matrix = (/** @type {Float32Array} */ data) => ({ data, shape: [tokens, headDim] });
      const inputs = {
        query: matrix(drawnTask.query),
        key: matrix(drawnTask.key),
        value: matrix(drawnTask.value),
        length: tokens,
      };
      /** @type {Record<string, number[]>} */
      const rows = {};
      for (const method of methodsOf(sdpa)) {
        const out = await method.run(sdpa, inputs, { pace });
        rows[method.name] = Array.from(out.subarray((tokens - 1) * headDim));
      }
      const { query, key, value } = drawnTask;
      return { task: { query: Array.from(query), key: Array.from(key), value: Array.from(value) }, outs: rows };
    }, length);
    const { query, key, value } = task;
    const [size, row] = [64, length - 1];
    const mixed = (/** @type {number[]} */ weights) =>
      Array.from({ length: size }, (_, d) => weights.reduce((sum, weight, j) => sum + weight * value[j * size + d], 0));
    const softmax = (/** @type {(key: number) => boolean} */ seen) =>
      mixed(plainRow({ query, key, size, keys: length, row, seen }));
    const dots = (/** @type {(number: number) => number} */ phi) =>
      Array.from({ length }, (_, j) =>
        query.slice(row * size).reduce((sum, number, d) => sum + phi(number) * phi(key[j * size + d]), 0),
      );
    const elu = dots((number) => (number > 0 ? number + 1 : Math.exp(number)));
    const total = elu.reduce((a, b) => a + b);
    const step = Math.LN2 / length;
    /** @type {Record<string, number[]>} */
    const expected = {
      exact: softmax(() => true),
      window: softmax((j) => j >= row - 255),
      // The last block sees everything.
      bigbird: softmax(() => true),
      linear: mixed(elu.map((weight) => weight / total)),
      ssd: mixed(dots((number) => number).map((weight, j) => weight * step * Math.exp(-step * (row - j)))),
    };
    assert.deepEqual(Object.keys(outs), Object.keys(expected));
    for (const [name, numbers] of Object.entries(expected)) {
      const largest = Math.max(...numbers.map(Math.abs));
      numbers.forEach((number, d) =>
        assert.ok(Math.abs(outs[name][d] - number) < 2e-5 * largest, `${name} ${d}: ${outs[name][d]}, ${number}`),
      );
    }
  });
});

browserTest('Stop ends a long race, and the next one is right', async () => {
  await atSection('race', { tokens: 15 }, async ({ page, section }) => {
    await section.getByRole('button', { name: 'Race', exact: true }).click();
    await section.locator('.status', { hasText: 'Exact …' }).waitFor();
    await page.evaluate(async () => {
      for (let i = 0; i < 5; i++) await new Promise(requestAnimationFrame);
    });
    await section.getByRole('button', { name: 'Stop' }).click();
    await section.locator('.status', { hasText: 'Stopped.' }).waitFor();
    await section.getByRole('slider', { name: 'Tokens', exact: true }).focus();
    await page.keyboard.press('Home');
    await section.getByRole('button', { name: 'Race', exact: true }).click();
    await drawn(page, 'race', '1024');
    assert.ok((await outcomes(section)).exact.recall > 0.97);
  });
});
