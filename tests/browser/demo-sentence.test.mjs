// Words and their weights on the demo page.

import assert from 'node:assert/strict';
import { load } from 'sdpa';
import { writeNpz } from 'sdpa/io';
import { browserTest } from './helpers/demo.mjs';
import { atSection, drawn, eventually, hashOf, numberIn, numbers, readCsv, saved } from './helpers/sections.mjs';

/** The map's cells as they are saved, query by query. @param {import('playwright-core').Page} page @param {import('playwright-core').Locator} section */
async function matrix(page, section) {
  const { bytes } = await saved(page, section.getByRole('button', { name: /^Save the cells/ }));
  /** @type {number[][]} */
  const rows = [];
  for (const [i, j, weight] of readCsv(bytes).lines) (rows[i] ??= [])[j] = weight;
  return rows;
}

/** The weights that the keys of the lines view show. @param {import('playwright-core').Locator} section */
const keyTexts = (section) => section.locator('.keys li output').allTextContents();

browserTest('the head of the page looks from each question at its letter, in words, lines and matrix', async () => {
  await atSection('sentence', { source: 'self', query: 8 }, async ({ page, section }) => {
    await drawn(page, 'sentence', 'self 12 12 8');
    const words = await section.locator('.word').allInnerTexts();
    assert.equal(words.length, 12);
    const rows = await matrix(page, section);
    for (let i = 6; i < 12; i++) {
      const letter = words[i][0];
      const target = words.findIndex((word) => word.startsWith(`${letter}=`));
      assert.equal(rows[i].indexOf(Math.max(...rows[i])), target, `${words[i]} looks elsewhere`);
      assert.ok(rows[i][target] > 0.5);
    }
    const status = (await section.locator('.card > .status').textContent()) ?? '';
    assert.match(status, new RegExp(`^“${words[8][0]}\\?” looks at “${words[8][0]}=\\w+” 0\\.`));
    // The lines: a word and its number for each key, masked behind the question.
    const keys = await keyTexts(section);
    // Three digits, below a thousandth two.
    const digit = (/** @type {number} */ weight) => weight * (weight < 0.001 ? 5.1e-2 : 5.1e-3);
    keys.forEach((text, j) => {
      if (j > 8) assert.match(text, /masked/);
      else assert.ok(Math.abs(numberIn(text) - rows[8][j]) <= digit(rows[8][j]), text);
    });
    await section.locator('.word').nth(10).click();
    await drawn(page, 'sentence', 'self 12 12 10');
    assert.match(await hashOf(page), /query=10/);
    await section.getByLabel('Which query').focus();
    await page.keyboard.press('ArrowLeft');
    await drawn(page, 'sentence', 'self 12 12 9');
  });
});

browserTest('cross-attention has as many rows as questions and as many columns as pairs', async () => {
  await atSection('sentence', { source: 'cross' }, async ({ page, section }) => {
    await drawn(page, 'sentence', 'cross 4 6 3');
    const rows = await matrix(page, section);
    assert.deepEqual([rows.length, rows[0].length], [4, 6]);
    // What has no effect here is not offered.
    for (const name of ['Tokens so far', 'Causal']) assert.ok(await section.getByLabel(name).isHidden(), name);
    assert.ok(await section.getByLabel('Which query').isVisible());
    const [queries, keys] = [
      await section.locator('.word').allInnerTexts(),
      await section.locator('.keys b').allInnerTexts(),
    ];
    assert.deepEqual([queries.length, keys.length], [4, 6]);
    rows.forEach((row, i) => {
      assert.ok(Math.abs(row.reduce((a, b) => a + b) - 1) < 1e-5);
      assert.ok(keys[row.indexOf(Math.max(...row))].startsWith(queries[i][0]));
    });
  });
});

browserTest(
  'decoding begins with a square, then each token adds a row one column longer, and earlier rows stay',
  async () => {
    await atSection('sentence', { source: 'decode', tokens: 4 }, async ({ page, section }) => {
      await drawn(page, 'sentence', 'decode 4 4 3');
      let before = await matrix(page, section);
      for (let tokens = 5; tokens <= 12; tokens++) {
        await section.getByRole('button', { name: 'Next token' }).click();
        await drawn(page, 'sentence', `decode ${tokens} ${tokens} ${tokens - 1}`);
        const rows = await matrix(page, section);
        before.forEach((row, i) => assert.deepEqual(rows[i].slice(0, i + 1), row.slice(0, i + 1)));
        assert.match(
          (await section.locator('.card > .status').textContent()) ?? '',
          /^“\w+” looks at [^.]*(\.\d+[^.]*)*\.$/,
        );
        const newest = rows[tokens - 1];
        assert.ok(newest.every((weight) => weight > 0) && newest.length === tokens);
        assert.ok(Math.abs(newest.reduce((a, b) => a + b) - 1) < 1e-5);
        // The head was trained to look at the token before.
        assert.equal(newest.indexOf(Math.max(...newest)), tokens - 2);
        before = rows;
      }
      assert.ok(await section.getByRole('button', { name: 'Next token' }).isDisabled());
    });
  },
);

browserTest('a file with words of its own; a wrong number of words is told with both counts', async () => {
  const sdpa = await load();
  const [query, key] = [
    { data: numbers(3 * 8, 1), shape: [3, 8] },
    { data: numbers(7 * 8, 2), shape: [7, 8] },
  ];
  const buffer = Buffer.from(writeNpz({ query, key }));
  await atSection('sentence', { source: 'file', query: 1, causal: 0 }, async ({ page, section }) => {
    await section.locator('input[type=file]').setInputFiles({ name: 'own.npz', mimeType: 'application/zip', buffer });
    await drawn(page, 'sentence', 'file 3 7 1');
    for (const isCausal of [false, true]) {
      if (isCausal) {
        await section.getByRole('switch', { name: 'Causal' }).click();
        await section.locator('.keys', { hasText: 'masked' }).waitFor();
      }
      const options = isCausal ? { causal: true, align: /** @type {const} */ ('lower-right') } : {};
      const { rows: expected } = sdpa.attentionWeights(query, key, { ...options, rows: [0, 1, 2] });
      (await matrix(page, section)).forEach((row, i) =>
        row.forEach((weight, j) => assert.ok(Math.abs(weight - expected.data[7 * i + j]) <= 1e-5 * weight)),
      );
    }
    await section.getByLabel('Words of the queries').fill('to be or not');
    await section.locator('.card > .status.bad', { hasText: 'There are 4 words for 3 queries' }).waitFor();
    await section.getByLabel('Words of the queries').fill('to be or');
    await section.getByLabel('Words of the keys').fill('que ça soit ou non');
    await section.locator('.card > .status.bad', { hasText: 'There are 5 words for 7 keys' }).waitFor();
    await section.getByLabel('Words of the keys').fill('a b c d e f g');
    await section.locator('.card > .status', { hasText: /^“be” looks at “[a-g]”/ }).waitFor();
    assert.deepEqual(await section.locator('.word').allInnerTexts(), ['to', 'be', 'or']);
  });
  sdpa.dispose();
});

browserTest('what was trained in its own section comes here', async () => {
  await atSection('sentence', { source: 'self' }, async ({ page, section }) => {
    await drawn(page, 'sentence', 'self 12 12');
    const before = await keyTexts(section);
    await page.evaluate(() => void (location.hash = '#train'));
    const train = page.locator('#train');
    await page.locator('#train[data-state="ready"]').waitFor();
    await train.getByRole('button', { name: 'One step' }).click();
    await train.locator('.status', { hasText: 'Ended after 1 steps' }).waitFor();
    await eventually(async () => assert.notDeepEqual(await keyTexts(section), before));
    const rows = await matrix(page, section);
    const trained = await matrix(page, train);
    assert.deepEqual(rows, trained);
  });
});
