// A head trained in the page: its gradients are right, it learns where to look, and Stop stops it.

import assert from 'node:assert/strict';
import { browserTest } from './helpers/demo.mjs';
import { atSection, hashOf, readCsv, saved } from './helpers/sections.mjs';

/** @param {import('playwright-core').Locator} section */
const figures = async (section) =>
  (
    await section
      .locator('.figures output')
      .evaluateAll((all) => all.map((node) => /** @type {any} */ (node).dataset.value))
  ).map(Number);

for (const task of ['previous', 'match']) {
  browserTest(`the gradients of the model are those of differences of its loss: ${task}`, async () => {
    await atSection('train', {}, async ({ page }) => {
      const pairs = await page.evaluate(async (name) => {
        const at = (/** @type {string} */ path) => import(new URL(path, document.baseURI).href);
        const [{ load }, { Model }, { sequences }] = await Promise.all([
          at('sdpa/index.js'),
          at('sections/train/model.js'),
          at('sections/train/tasks.js'),
        ]);
        const model = new Model(await load(), name, 3);
        const next = sequences(name, 5);
        const batch = model.inputs([next(), next()]);
        const { gradients } = model.lossAndGradients(batch);
        return Object.entries(model.weights).flatMap(([weight, data]) => {
          // The largest, of which the differences in float32 tell most.
          const order = Array.from(data, (_, i) => i).sort(
            (a, b) => Math.abs(gradients[weight][b]) - Math.abs(gradients[weight][a]),
          );
          return order.slice(0, 6).map((i) => {
            const kept = data[i];
            const step = 1e-2;
            const lossAt = (/** @type {number} */ number) => {
              data[i] = number;
              return model.lossAndGradients(batch).loss;
            };
            const difference = (lossAt(kept + step) - lossAt(kept - step)) / (2 * step);
            data[i] = kept;
            return { weight, gradient: gradients[weight][i], difference };
          });
        });
      }, task);
      assert.equal(pairs.length, 24);
      for (const { weight, gradient, difference } of pairs) {
        const bound = 2e-2 * Math.abs(gradient) + 1e-4;
        assert.ok(Math.abs(gradient - difference) < bound, `${weight}: ${gradient}, by differences ${difference}`);
      }
    });
  });

  browserTest(`the head learns where to look: ${task}`, async (t) => {
    await atSection('train', { task, rate: -2, seed: 2 }, async ({ page, section }) => {
      const [, , , before] = await figures(section);
      assert.ok(before < 0.5, `${before} of the weight is there already`);
      await page.evaluate(() => Object.assign(/** @type {any} */ (window).seen, { frames: 0, longTasks: [] }));
      const start = section.getByRole('button', { name: 'Start' });
      await start.click();
      await section.getByRole('button', { name: 'Stop' }).waitFor();
      // Pressed in the page, at once: by the time that another program has heard of the steps, the run may have ended.
      await page.waitForFunction(() => {
        const steps = /** @type {HTMLElement | null} */ (document.querySelector('#train [data-figure="Steps"]'));
        const isTime = Number(steps?.dataset.value) >= 300 && /** @type {any} */ (window).seen.frames > 10;
        if (isTime) /** @type {HTMLElement} */ (document.querySelector('#train button[data-running]')).click();
        return isTime;
      });
      await section.locator('.status', { hasText: 'Stopped after' }).waitFor();
      const [steps, loss, right, after] = await figures(section);
      assert.ok(steps >= 300 && steps < 2000, `${steps} steps`);
      assert.ok(loss < 0.2 && right > 0.95, `a loss of ${loss}, ${right} of the answers right`);
      assert.ok(after > 0.6 && after > 3 * before, `${after} of the weight where it belongs, ${before} before`);
      const { frames, longTasks } = await page.evaluate(() => /** @type {any} */ (window).seen);
      assert.ok(frames > 10);
      t.diagnostic(`${steps} steps, ${frames} frames; tasks above 50 ms: ${longTasks.join(', ') || 'none'}`);
      // It has stopped, and goes on from there by one step.
      await section.getByRole('button', { name: 'One step' }).click();
      await section.locator('.status', { hasText: /^Ended after/ }).waitFor();
      assert.equal((await figures(section))[0], steps + 1);
      // The map's rows are weights of a causal head.
      const { bytes } = await saved(page, section.getByRole('button', { name: /^Save the cells/ }));
      const { lines } = readCsv(bytes);
      for (let i = 0; i < 12; i++) {
        const row = lines.slice(12 * i, 12 * (i + 1)).map(([, , weight]) => weight);
        assert.ok(Math.abs(row.reduce((a, b) => a + b) - 1) < 1e-5);
        assert.ok(row.slice(i + 1).every((weight) => weight === 0));
      }
      await section.getByRole('button', { name: 'Reset' }).click();
      const [again, , , first] = await figures(section);
      assert.deepEqual([again, first], [0, before]);
    });
  });
}

browserTest('the same seed learns the same, and another task begins anew', async () => {
  await atSection('train', { task: 'match', seed: 4 }, async ({ page, section }) => {
    const one = section.getByRole('button', { name: 'One step' });
    const step = async () => {
      const [before] = await figures(section);
      await one.click();
      await page.locator(`#train [data-figure="Steps"][data-value="${before + 1}"]`).waitFor();
      await section.locator('.status', { hasText: `Ended after ${before + 1} steps` }).waitFor();
      return figures(section);
    };
    const first = [await step(), await step()];
    await section.getByRole('button', { name: 'Reset' }).click();
    assert.deepEqual([await step(), await step()], first);
    await section.getByLabel('Task').selectOption('previous');
    assert.equal((await figures(section))[0], 0);
    assert.match(await hashOf(page), /task=previous.*seed=4/);
  });
});
