// Positions on the demo page: the numbers are those of the formulas.

import assert from 'node:assert/strict';
import { browserTest } from './helpers/demo.mjs';
import { atSection, numberIn, openTable, readCsv, saved } from './helpers/sections.mjs';

/** The numbers of the table below a plot, row by row. @param {import('playwright-core').Locator} plot */
async function tableOf(plot) {
  const rows = await (
    await openTable(plot)
  ).evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent ?? '')));
  assert.ok(rows.length > 10);
  return rows.map((row) => row.map(numberIn));
}

/** Three digits are shown. @param {number} shown @param {number} expected @param {string} what */
const near = (shown, expected, what) =>
  assert.ok(
    Math.abs(shown - expected) <= 5.1e-3 * Math.abs(expected) + 1e-6,
    `${what}: ${shown} instead of ${expected}`,
  );

for (const [stretch, factor] of /** @type {const} */ ([
  ['none', 8],
  ['linear', 4],
  ['yarn', 16],
])) {
  for (const pairing of ['half', 'interleaved']) {
    browserTest(`waves and products by distance are those of the formula: ${stretch}, ${pairing}`, async () => {
      await atSection('positions', { stretch, factor, pairing, base: 4, reach: 8 }, async ({ page, section }) => {
        const waves = await tableOf(section.locator('.plot', { hasText: 'Tokens for one turn' }));
        const dim = 64;
        /** YaRN's bounds (Peng et al. 2023): the pairs that turn 32 times and once within 4096 tokens. */
        const pairOf = (/** @type {number} */ turns) =>
          (dim * Math.log(4096 / (turns * 2 * Math.PI))) / (2 * Math.log(10_000));
        const [low, high] = [Math.floor(pairOf(32)), Math.ceil(pairOf(1))];
        const frequencies = waves.map(([pair]) => {
          const plain = 10_000 ** ((-2 * pair) / dim);
          if (stretch === 'none') return plain;
          if (stretch === 'linear') return plain / factor;
          const share = Math.min(1, Math.max(0, (pair - low) / (high - low)));
          return plain * (1 - share) + (plain / factor) * share;
        });
        waves.forEach(([pair, plain, stretched]) => {
          near(plain, 2 * Math.PI * 10_000 ** ((2 * pair) / dim), `pair ${pair}`);
          near(stretched, (2 * Math.PI) / frequencies[pair], `pair ${pair}, stretched`);
        });
        const products = await tableOf(section.locator('.plot', { hasText: 'by distance' }));
        const x = await page.evaluate(async () => {
          const { vector, curveDim } = await import(new URL('sections/positions/rotation.js', document.baseURI).href);
          return Array.from(vector(curveDim, 5));
        });
        const amplitude = stretch === 'yarn' ? 0.1 * Math.log(factor) + 1 : 1;
        const whole = x.reduce((sum, number) => sum + number * number, 0);
        for (const [distance, , stretched] of products) {
          const expected = frequencies.reduce((sum, frequency, pair) => {
            const [a, b] = pairing === 'half' ? [pair, pair + dim / 2] : [2 * pair, 2 * pair + 1];
            return sum + (x[a] ** 2 + x[b] ** 2) * Math.cos(distance * frequency);
          }, 0);
          const share = (amplitude ** 2 * expected) / whole;
          assert.ok(
            Math.abs(stretched - share) < 5.1e-3 * Math.abs(share) + 1e-5,
            `${distance}: ${stretched}, ${share}`,
          );
        }
      });
    });
  }
}

browserTest('query · key stays where both move on, and changes with the distance', async () => {
  await atSection('positions', { query: 40, key: 28 }, async ({ page, section }) => {
    const read = async () =>
      (await section.locator('.figures output').evaluateAll((all) => all.map((node) => node.dataset.value))).map(
        Number,
      );
    const [here, further] = await read();
    assert.ok(Math.abs(here - further) < 1e-4, `${here}, ${further}`);
    await section.getByLabel('Position of the query').focus();
    await page.keyboard.press('ArrowRight');
    await section.locator('.status', { hasText: 'distance of 13 tokens' }).waitFor();
    const [moved] = await read();
    assert.ok(Math.abs(moved - here) > 1e-2);
    await section.getByLabel('Position of the key').focus();
    await page.keyboard.press('ArrowRight');
    await section.locator('.status', { hasText: 'distance of 12 tokens' }).waitFor();
    assert.ok(Math.abs((await read())[0] - here) < 1e-5);
    await section.getByRole('button', { name: 'Move both on by one' }).click();
    await section.locator('output[data-value="42"]').waitFor();
    await section.locator('.status', { hasText: 'distance of 12 tokens' }).waitFor();
    assert.ok(Math.abs((await read())[0] - here) < 1e-4);
    // The angle between the hands of the first pair is one radian for each token.
    assert.match(
      (await section.locator('.dials').getAttribute('aria-label')) ?? '',
      /^Angle between query and key: pair 0 -?\d+ degrees, /,
    );
    assert.equal(await section.locator('.dials svg').count(), 4);
  });
});

browserTest('the picture of the sinusoid is sin and cos of pos / base^(2i/d)', async () => {
  for (const order of ['interleaved', 'sines-first']) {
    await atSection('positions', { order, base: 3 }, async ({ page, section }) => {
      const { bytes } = await saved(page, section.getByRole('button', { name: /^Save the cells/ }));
      const { lines } = readCsv(bytes);
      assert.equal(lines.length, 64 * 96);
      for (const [position, column, shown] of lines) {
        const isSine = order === 'interleaved' ? column % 2 === 0 : column < 48;
        const pair = order === 'interleaved' ? column >> 1 : column % 48;
        const angle = position / 1000 ** ((2 * pair) / 96);
        assert.ok(Math.abs(shown - (isSine ? Math.sin(angle) : Math.cos(angle))) < 1e-7);
      }
    });
  }
});
