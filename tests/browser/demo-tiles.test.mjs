// The section that steps through online softmax.

import assert from 'node:assert/strict';
import { browserTest, withModules } from './helpers/demo.mjs';
import { atSection, hashOf } from './helpers/sections.mjs';

const files = ['sections/tiles/example', 'sections/tiles/steps', 'sections/tiles/words'];

browserTest(
  'the steps end at what attention(), its log-sum-exp and attentionWeights() say, for each mask',
  async () => {
    const found = await withModules(files, async ({ load, makeExample, makeSteps, sizes }) => {
      const sdpa = await load();
      const { keys, valueDim } = sizes;
      return ['none', 'lower-right', 'upper-left'].flatMap((mask) =>
        [1, 2, 7, 20].map((seed) => {
          const example = makeExample(sdpa, seed, mask);
          const steps = makeSteps(example);
          const { rows } = steps.at(-1);
          const worst = { out: 0, lse: 0, weights: 0 };
          const grow = (/** @type {keyof typeof worst} */ name, /** @type {number} */ by) =>
            (worst[name] = Math.max(worst[name], Math.abs(by)));
          rows.forEach((/** @type {any} */ { max, sum, out }, /** @type {number} */ i) => {
            out.forEach((/** @type {number} */ number, /** @type {number} */ d) =>
              grow('out', number - example.out[i * valueDim + d]),
            );
            grow('lse', max + Math.log(sum) - example.lse[i]);
            for (let j = 0; j < keys; j++) {
              const at = i * keys + j;
              const weight = example.allowed[at] ? Math.exp(example.scores[at] - max) / sum : 0;
              grow('weights', weight - example.weights[at]);
            }
          });
          const kinds = steps.map((/** @type {any} */ { kind }) => kind).join(' ');
          return { mask, worst, kinds };
        }),
      );
    });
    const tile = ' scores max sum';
    const expected = {
      none: `start${tile.repeat(6)} end`,
      'lower-right': `start${tile.repeat(6)} end`,
      // Queries 0 to 2 see keys 0 to 2, queries 3 to 5 keys 0 to 5.
      'upper-left': `start${tile} skip skip${tile.repeat(2)} skip end`,
    };
    for (const { mask, worst, kinds } of found) {
      assert.equal(kinds, expected[/** @type {keyof typeof expected} */ (mask)]);
      for (const [name, difference] of Object.entries(worst))
        assert.ok(difference < 1e-6, `${mask} ${name} ${difference}`);
    }
  },
);

browserTest('after each tile sum and output are those of the keys so far, and one tile of scores exists', async () => {
  const { worst, most, rescaled } = await withModules(files, async ({ load, makeExample, makeSteps, sizes }) => {
    const example = makeExample(await load(), 7, 'none');
    const { keys, keyTile, valueDim } = sizes;
    const found = { worst: 0, most: 0, rescaled: 0 };
    for (const { kind, tile, rows, cells } of makeSteps(example)) {
      found.most = Math.max(found.most, cells.filter((/** @type {number} */ cell) => !Number.isNaN(cell)).length);
      if (kind === 'max') found.rescaled += rows.filter((/** @type {any} */ { factor }) => factor < 1).length;
      if (kind !== 'sum') continue;
      const firstRow = tile < 3 ? 0 : 3;
      const seen = ((tile % 3) + 1) * keyTile;
      for (let i = firstRow; i < firstRow + 3; i++) {
        const powers = Array.from(example.scores.slice(i * keys, i * keys + seen), (score) => Math.exp(score));
        const sum = powers.reduce((a, b) => a + b);
        const scale = Math.exp(rows[i].max);
        found.worst = Math.max(found.worst, Math.abs(rows[i].sum * scale - sum) / sum);
        for (let d = 0; d < valueDim; d++) {
          const out = powers.reduce((total, power, j) => total + power * example.value[j * valueDim + d], 0);
          found.worst = Math.max(found.worst, Math.abs(rows[i].out[d] * scale - out));
        }
      }
    }
    return found;
  });
  assert.ok(worst < 1e-12, `${worst}`);
  assert.equal(most, 12);
  assert.ok(rescaled > 0, 'no maximum rises in the example');
});

browserTest('a link restores the step; buttons, slider and Play move it; the words follow', async () => {
  await atSection('tiles', { step: 4, seed: 3, mask: 'upper-left' }, async ({ page, section }) => {
    const step = section.locator('input[data-name="step"]');
    const words = section.locator('.status');
    assert.equal(await step.inputValue(), '4');
    assert.equal(await section.locator('select').first().inputValue(), 'upper-left');
    assert.match((await words.textContent()) ?? '', /^Tile 2 of 6, queries 0 to 2, keys 4 to 7: none of these keys/);
    const shown = () => section.locator('.board td').filter({ hasText: /\d/ }).count();
    assert.equal(await shown(), 0);
    await section.getByRole('button', { name: 'Previous' }).click();
    // The powers of tile 1: of the cells at or below the diagonal.
    assert.equal(await shown(), 6);
    await step.focus();
    await page.keyboard.press('End');
    assert.match((await words.textContent()) ?? '', /^All tiles are done/);
    assert.ok(await section.getByRole('button', { name: 'Next' }).isDisabled());
    assert.equal(await hashOf(page), '#tiles?step=13&seed=3&mask=upper-left');

    await page.keyboard.press('Home');
    await section.getByRole('button', { name: 'Play' }).click();
    await section.locator('output[data-value="3"]').first().waitFor();
    await section.getByRole('button', { name: 'Pause' }).click();
    assert.equal(await section.getByRole('button', { name: 'Play' }).count(), 1);
    const difference = Number(await section.locator('.difference').getAttribute('data-value'));
    assert.ok(difference > 0 && difference < 1e-6);
  });
});
