// The lab of masks.

import assert from 'node:assert/strict';
import { browserTest, sectionReady, withModules } from './helpers/demo.mjs';
import { atSection, eventually, hashOf } from './helpers/sections.mjs';

const files = ['compute', 'rules', 'settings', 'strokes'].map((name) => `sections/mask-lab/${name}`);

/** What the settings say of each cell, from the definitions; the lengths are as in the page's sliders. */
const cases = /** @type {const} */ ([
  { name: 'nothing', settings: { causal: 'off' }, rows: 256, columns: 256, sees: 'true' },
  { name: 'causal', settings: {}, rows: 256, columns: 256, sees: 'j <= i' },
  { name: 'lower right', settings: { queries: 4, keys: 7 }, rows: 32, columns: 96, sees: 'j <= i + 64' },
  {
    name: 'upper left',
    settings: { queries: 4, keys: 7, causal: 'upper-left' },
    rows: 32,
    columns: 96,
    sees: 'j <= i',
  },
  { name: 'empty rows', settings: { queries: 10, keys: 8 }, rows: 256, columns: 128, sees: 'j <= i - 128' },
  {
    name: 'window, padding, documents',
    settings: { window: 20, real: 50, documents: 3 },
    rows: 256,
    columns: 256,
    sees: 'j < 128 && j <= i - 128 && j >= i - 148 && Math.floor(3 * i / 256) === Math.floor(3 * j / 256)',
  },
  {
    name: 'window to both sides, drawn',
    settings: { causal: 'off', window: 5, queries: 3, keys: 3 },
    strokes: '0.0.4-2.2.4_-m.0.2',
    rows: 24,
    columns: 24,
    sees: 'Math.abs(i - j) <= 5 && !(i < 4 && j < 4 && (i < 2 || j < 2)) && !((i === 22 || i === 23) && j < 2)',
  },
  {
    name: 'chunks, ALiBi',
    settings: { pattern: 'chunk', alibi: '0.0625', causal: 'off' },
    rows: 256,
    columns: 256,
    sees: 'i >> 6 === j >> 6',
  },
  { name: 'prefix', settings: { pattern: 'prefix', causal: 'off' }, rows: 256, columns: 256, sees: 'j <= i || j < 64' },
  {
    name: 'Swin, last window: four regions',
    settings: { pattern: 'swin', causal: 'off', image: 4, queries: 10 },
    rows: 256,
    columns: 256,
    sees: 'i >> 7 === j >> 7 && ((i >> 3) & 1) === ((j >> 3) & 1)',
  },
  {
    name: 'Swin, first window: whole',
    settings: { pattern: 'swin', causal: 'off', image: 1, queries: 5 },
    rows: 36,
    columns: 36,
    sees: 'true',
  },
]);

for (const { name, settings, rows, columns, sees, ...more } of cases) {
  browserTest(
    `${name}: mask, tiles and empty rows are those of the definition, and the kernels keep to it`,
    async () => {
      const found = await withModules(
        files,
        async ({ load, makeRules, compute, specs, readStrokes, inputs, valueDim }, given) => {
          const sdpa = await load();
          const initial = Object.fromEntries(
            Object.entries(specs).map(([key, spec]) => [key, /** @type {any} */ (spec).initial]),
          );
          const rules = makeRules({ ...initial, ...given.settings }, readStrokes(given.strokes));
          const outcome = await compute(sdpa, rules);
          // The same by the block mask alone, which is another way through the kernels.
          const { query, key, value } = inputs(rules.rows, rules.columns);
          const { alibiSlopes, align } = rules.options;
          const alone = sdpa.attention(query, key, value, {
            blockMask: rules.mask,
            ...(alibiSlopes && { alibiSlopes }),
            ...(alibiSlopes && align && { align }),
          });
          let apart = 0;
          outcome.out.forEach(
            (/** @type {number} */ number, /** @type {number} */ at) =>
              (apart = Math.max(apart, Math.abs(number - alone.out.data[at]))),
          );
          const sums = Array.from({ length: rules.rows }, (_, i) =>
            outcome.weights
              .subarray(i * rules.columns, (i + 1) * rules.columns)
              .reduce((/** @type {number} */ a, /** @type {number} */ b) => a + b, 0),
          );
          return {
            rows: rules.rows,
            columns: rules.columns,
            masked: Array.from(outcome.masked),
            wrong: outcome.wrong,
            emptyRows: outcome.emptyRows,
            emptyOut: outcome.emptyRows.map((/** @type {number} */ i) =>
              Math.max(...outcome.out.subarray(i * valueDim, (i + 1) * valueDim).map(Math.abs)),
            ),
            stats: outcome.stats,
            shares: Array.from(outcome.tiles.shares),
            sums,
            apart,
          };
        },
        { settings, strokes: 'strokes' in more ? more.strokes : '' },
      );
      assert.deepEqual([found.rows, found.columns], [rows, columns]);
      const see = /** @type {(i: number, j: number) => boolean} */ (eval(`(i, j) => ${sees}`)); // eslint-disable-line no-eval
      const empty = [];
      const tiles = { full: 0, partial: 0, skipped: 0 };
      for (let i = 0; i < rows; i++) {
        let any = false;
        for (let j = 0; j < columns; j++) {
          any ||= see(i, j);
          if (found.masked[i * columns + j] === Number(see(i, j))) assert.fail(`query ${i}, key ${j}`);
        }
        if (!any) empty.push(i);
      }
      for (let y = 0; y < rows; y += 64) {
        for (let x = 0; x < columns; x += 64) {
          let [all, allowed] = [0, 0];
          for (let i = y; i < Math.min(rows, y + 64); i++)
            for (let j = x; j < Math.min(columns, x + 64); j++, all++) allowed += Number(see(i, j));
          tiles[allowed === 0 ? 'skipped' : allowed === all ? 'full' : 'partial']++;
          const share = found.shares[(y / 64) * Math.ceil(columns / 64) + x / 64];
          assert.ok(Math.abs(share - allowed / all) < 1e-6);
        }
      }
      assert.deepEqual(found.emptyRows, empty);
      assert.ok(found.emptyOut.every((/** @type {number} */ most) => most === 0));
      const { full, partial, skipped } = found.stats;
      assert.deepEqual({ full, partial, skipped }, tiles);
      assert.equal(found.wrong, 0);
      for (const [i, sum] of found.sums.entries())
        assert.ok(Math.abs(sum - Number(!empty.includes(i))) < 1e-5, `row ${i}: ${sum}`);
      assert.ok(found.apart < 2e-6, `${found.apart}`);
    },
  );
}

browserTest('strokes survive the address; nonsense in it is left out', async () => {
  const found = await withModules(files, ({ strokesText, readStrokes, addStroke, paint }) => {
    /** @type {any[]} */
    const strokes = [];
    addStroke(strokes, { row: 511, column: 0, side: 21, hides: true });
    addStroke(strokes, { row: 511, column: 0, side: 21, hides: true });
    addStroke(strokes, { row: 3, column: 36, side: 1, hides: false });
    return {
      text: strokesText(strokes),
      back: readStrokes(strokesText(strokes)),
      nonsense: readStrokes('<b>-1.2-1.2.3.4-zzzz.0.1-1.1.1'),
      cells: Array.from(paint([{ row: 1, column: 1, side: 9, hides: true }], 3, 2)),
    };
  });
  assert.equal(found.text, 'e7.0.l-3.10.1_');
  assert.deepEqual(found.back, [
    { row: 511, column: 0, side: 21, hides: true },
    { row: 3, column: 36, side: 1, hides: false },
  ]);
  assert.deepEqual(found.nonsense, [{ row: 1, column: 1, side: 1, hides: true }]);
  assert.deepEqual(found.cells, [1, 1, 1, 0, 1, 0]);
});

browserTest(
  'cells are hidden by Space and by dragging, the address keeps them, and Erase shows them again',
  async () => {
    await atSection('mask-lab', { queries: 2, keys: 2, causal: 'off' }, async ({ page, go, section }) => {
      const map = section.getByRole('application', { name: 'Weights' });
      const readout = section.locator('.map-readout').first();
      await map.locator('canvas[width]').waitFor();
      await section.getByRole('button', { name: 'Hide cells' }).click();
      await map.focus();
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('ArrowRight');
      assert.match((await readout.textContent()) ?? '', /^query 1, key 1: 0\.\d+/);
      await page.keyboard.press('Space');
      await readout.filter({ hasText: 'query 1, key 1: masked' }).waitFor();
      assert.match(await hashOf(page), /drawn=1\.1\.1$/);

      const box = await map.locator('canvas').boundingBox();
      assert.ok(box);
      // Along the row in the middle.
      await page.mouse.move(box.x + 60, box.y + box.height / 2);
      await page.mouse.down();
      await page.mouse.move(box.x + 200, box.y + box.height / 2, { steps: 12 });
      await page.mouse.up();
      await page.waitForFunction(() => (location.hash.match(/-/g) ?? []).length >= 3);
      const hash = await hashOf(page);

      await go(hash);
      await sectionReady(page, 'mask-lab');
      await map.focus();
      await page.keyboard.press('Control+Home');
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('ArrowRight');
      assert.equal(await readout.textContent(), 'query 1, key 1: masked');
      await section.getByRole('button', { name: 'Erase all' }).click();
      await readout.filter({ hasText: /query 1, key 1: 0\.\d/ }).waitFor();
      assert.doesNotMatch(await hashOf(page), /drawn/);
    });
  },
);

browserTest(
  'a preset sets the controls, empty rows are said and named, and the work that is saved is shown',
  async () => {
    await atSection('mask-lab', {}, async ({ page, section }) => {
      await section.getByRole('button', { name: 'Empty rows' }).click();
      await section.locator('.status', { hasText: '128 queries, 0 to 127, see nothing' }).waitFor();
      assert.equal(await section.locator('[data-figure="Tiles skipped"]').textContent(), '5');
      assert.equal(await section.locator('[data-figure="Work saved"]').getAttribute('data-value'), '0.625');
      await section.getByRole('application', { name: 'Output' }).focus();
      await eventually(async () =>
        assert.match(
          (await section.locator('.map-readout').last().textContent()) ?? '',
          /^query 0, which sees nothing, number 0: 0$/,
        ),
      );
      // Blocks of BigBird that are tiles: none is partial.
      await section.getByRole('button', { name: 'BigBird' }).click();
      await section.locator('[data-figure="Tiles partial"][data-value="0"]').waitFor();
      assert.ok(Number(await section.locator('[data-figure="Work saved"]').getAttribute('data-value')) > 0.2);
      await section.getByRole('button', { name: 'Empty rows' }).click();
      await section.locator('.status', { hasText: '128 queries, 0 to 127, see nothing' }).waitFor();
      const tiles = section.getByRole('application', { name: 'Tiles of 64 × 64' });
      await tiles.focus();
      await page.keyboard.press('Control+End');
      assert.equal(
        await section.locator('.map-readout').nth(1).textContent(),
        'queries 192 to 255, keys 64 to 127: partial, 50.8\u00a0%',
      );
    });
  },
);
