// The parts that sections are made of: maps, scales, palettes, plots, controls, permalinks.

import assert from 'node:assert/strict';
import { browserTest, sectionReady, withDemo, withModules } from './helpers/demo.mjs';
import { eventually } from './helpers/sections.mjs';

browserTest(
  'lightness changes evenly along the palette, in light and in dark, so that order needs no colour',
  async () => {
    const palettes = await withModules(['parts/palette'], ({ makePalette }) =>
      [false, true].map((dark) => Array.from(makePalette(dark))),
    );
    const linear = (/** @type {number} */ byte) =>
      byte <= 10.31475 ? byte / 3294.6 : ((byte / 255 + 0.055) / 1.055) ** 2.4;
    for (const [k, palette] of palettes.entries()) {
      // CIE 1976 lightness, which is another measure than the one that the palette is made by.
      const lightness = Array.from({ length: 256 }, (_, i) => {
        const [r, g, b] = palette.slice(4 * i, 4 * i + 3).map(linear);
        return 116 * Math.cbrt(0.2126 * r + 0.7152 * g + 0.0722 * b) - 16;
      });
      const steps = Array.from(
        { length: 16 },
        (_, i) => (lightness[16 * i + 15] - lightness[16 * i]) * (k === 0 ? -1 : 1),
      );
      const mean = steps.reduce((a, b) => a + b) / 16;
      for (const step of steps) assert.ok(step > 0.5 * mean && step < 1.6 * mean, steps.join());
      assert.ok(Math.abs(lightness[0] - lightness[255]) > 60);
    }
  },
);

browserTest('a number in a cell can be read on every colour of the palette', async () => {
  const pairs = await withModules(['parts/palette'], ({ makePalette, colourAt, textOn }) =>
    [false, true].flatMap((dark) =>
      Array.from({ length: 256 }, (_, k) => {
        const colour = colourAt(makePalette(dark), k / 255);
        return { colour: Array.from(colour).slice(0, 3), text: textOn(colour) };
      }),
    ),
  );
  const luminance = (/** @type {number[]} */ colour) => {
    const [r, g, b] = colour.map((byte) =>
      byte / 255 <= 0.04045 ? byte / 255 / 12.92 : ((byte / 255 + 0.055) / 1.055) ** 2.4,
    );
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  for (const { colour, text } of pairs) {
    const [light, dark] = text === '#fff' ? [1, luminance(colour)] : [luminance(colour), 0];
    assert.ok((light + 0.05) / (dark + 0.05) > 4.5, `${text} on ${colour}`);
  }
});

browserTest('scales put numbers where they belong, whatever one large number does', async () => {
  const found = await withModules(['parts/colour-scale'], ({ makeScale }) => {
    const map = { rows: 2, columns: 3, values: [0.98, 1e-4, 1e-5, 0.5, 0.25, 0], masked: [0, 0, 0, 0, 0, 1] };
    const at = (/** @type {any} */ scale) => map.values.map((value, k) => scale.place(Math.floor(k / 3), value));
    return {
      linear: at(makeScale(map, 'linear')),
      log: at(makeScale(map, 'log')),
      row: at(makeScale(map, 'row')),
      given: at(makeScale({ ...map, range: [0, 2] }, 'linear')),
      same: makeScale({ rows: 1, columns: 2, values: [3, 3] }, 'linear').place(0, 3),
      none: makeScale({ rows: 1, columns: 1, values: [NaN] }, 'log').least,
    };
  });
  const near = (/** @type {number[]} */ actual, /** @type {number[]} */ expected) =>
    expected.forEach((number, k) => assert.ok(Math.abs(actual[k] - number) < 1e-9, `${actual} ≠ ${expected}`));
  near(found.linear.slice(0, 3), [1, (1e-4 - 1e-5) / (0.98 - 1e-5), 0]);
  near(found.log.slice(0, 3), [1, Math.log(10) / Math.log(0.98e5), 0]);
  // The masked zero is no part of its row.
  near(found.row, [1, (1e-4 - 1e-5) / (0.98 - 1e-5), 0, 1, 0, 0]);
  near(found.given.slice(0, 1), [0.49]);
  assert.deepEqual([found.same, found.none], [1, 1e-7]);
});

browserTest('zooming keeps the cell in place and never leaves the map; ticks are 1, 2, 5, 10', async () => {
  const found = await withModules(['parts/heat-map-view'], ({ zoom, reveal, tickStep, cellSize }) => {
    const map = { rows: 100, columns: 300 };
    const all = { row: 0, column: 0, ...map };
    const close = zoom(all, map, 4, { row: 99, column: 150 });
    const deepest = [1, 2, 3, 4, 5, 6].reduce((view) => zoom(view, map, 4, { row: 99, column: 150 }), all);
    return {
      close,
      deepest,
      back: zoom(close, map, 1 / 8, { row: 0, column: 0 }),
      shown: reveal(close, map, { row: 3, column: 299 }),
      ticks: [0.2, 1, 1.1, 3, 6, 11, 21, 51].map(tickStep),
      square: cellSize(all, 900, 400),
      slender: cellSize({ rows: 1000, columns: 2 }, 900, 400),
    };
  });
  assert.deepEqual(found.close, { row: 75, column: 113, rows: 25, columns: 75 });
  assert.deepEqual([found.deepest.rows, found.deepest.columns], [4, 4]);
  assert.ok(found.deepest.row === 96 && found.deepest.column <= 150 && found.deepest.column + 4 > 150);
  assert.deepEqual(found.back, { row: 0, column: 0, rows: 100, columns: 300 });
  assert.deepEqual(found.shown, { row: 3, column: 225, rows: 25, columns: 75 });
  assert.deepEqual(found.ticks, [1, 1, 2, 5, 10, 20, 50, 100]);
  assert.deepEqual(found.square, { cellWidth: 3, cellHeight: 3 });
  assert.deepEqual(found.slender, { cellWidth: 44, cellHeight: 0.4 });
});

browserTest('a map of 3 × 7 is used by keys, says its cells, and gives them as table and CSV', async () => {
  await withDemo({}, async ({ page, go, problems }) => {
    await go();
    await sectionReady(page, 'wall');
    await page.evaluate(async () => {
      const { HeatMap } = await import(new URL('parts/heat-map.js', document.baseURI).href);
      const values = Float32Array.from({ length: 21 }, (_, k) => k / 20);
      const masked = Uint8Array.from({ length: 21 }, (_, k) => Number(k === 20));
      const map = new HeatMap({ label: 'A map', file: 'a-map' });
      document.querySelector('#wall .body')?.append(map.element);
      map.show({ rows: 3, columns: 7, values, masked });
      Object.assign(window, { map });
    });
    const map = page.getByRole('application', { name: 'A map' });
    const element = page.locator('#wall .map');
    const said = element.locator('[aria-live="polite"]');
    await map.focus();
    const press = async (/** @type {string[]} */ ...keys) => {
      for (const key of keys) await page.keyboard.press(key);
      return said.textContent();
    };
    assert.equal(await press('ArrowRight'), 'query 0, key 1: 0.05');
    assert.equal(await press('ArrowDown', 'ArrowLeft', 'ArrowLeft'), 'query 1, key 0: 0.35');
    assert.equal(await press('End'), 'query 1, key 6: 0.65');
    assert.equal(await press('ArrowDown', 'ArrowDown'), 'query 2, key 6: masked');
    assert.equal(await press('Control+Home', 'ArrowUp'), 'query 0, key 0: 0');
    // The legend is written with the picture.
    await element.locator('.map-range', { hasText: /^0 to 0\.95, linear$/ }).waitFor();
    await element.getByRole('combobox').selectOption('row');
    await element.locator('.map-range', { hasText: 'each row by itself' }).waitFor();

    await element.getByRole('button', { name: 'Show as table: A map' }).click();
    assert.equal(await element.locator('tbody tr').count(), 3);
    assert.equal(await element.locator('thead th').count(), 8);
    assert.equal(await element.locator('tbody tr:last-child td:last-child').textContent(), 'masked');
    // Closer: four columns are left, and the table shows these.
    await map.focus();
    await press('End', '+');
    const heads = () => element.locator('thead th').allTextContents();
    await eventually(async () => assert.deepEqual(await heads(), ['query', 'key 3', 'key 4', 'key 5', 'key 6']));
    await press('0');
    await eventually(async () => assert.equal((await heads()).length, 8));

    const csv = await page.evaluate(() => /** @type {any} */ (window).map.csv());
    const lines = csv.trim().split('\n');
    assert.deepEqual([lines.length, lines[0], lines[3]], [22, 'query,key,value', '0,2,0.100000001']);
    for (const [name, kind] of /** @type {const} */ ([
      ['Save as PNG', 'png'],
      ['Save the cells in view as CSV', 'csv'],
    ])) {
      const [file] = await Promise.all([
        page.waitForEvent('download'),
        element.getByRole('button', { name: new RegExp(name) }).click(),
      ]);
      assert.equal(file.suggestedFilename(), `a-map.${kind}`);
    }
    assert.deepEqual(problems, []);
  });
});

browserTest('an address names a section and its settings; nonsense is as nothing', async () => {
  const found = await withModules(['scaffold/permalink', 'parts/controls'], ({ parseHash, toHash, readValues }) => {
    const names = ['first', 'second'];
    const specs = {
      n: { kind: 'range', label: '', min: 0, max: 1, step: 0.1, initial: 0.5 },
      on: { kind: 'switch', label: '', initial: true },
      way: {
        kind: 'choice',
        label: '',
        initial: 'a',
        options: [
          ['a', 'A'],
          ['b', 'B'],
        ],
      },
    };
    return {
      hashes: ['', '#', '#second', '#second?a=1&b=x%20y', '#a=1', '#third?a=1', '#sections', '#first?'].map((hash) =>
        parseHash(hash, names),
      ),
      written: [toHash('second', {}), toHash('second', { a: '1', b: 'x y' })],
      values: [
        {},
        { n: '0.31', on: '0', way: 'b' },
        { n: '7', on: 'x', way: 'c' },
        { n: '', way: '' },
        { n: 'NaN' },
      ].map((texts) => readValues(specs, texts)),
    };
  });
  assert.deepEqual(found.hashes, [
    null,
    null,
    { name: 'second', values: null },
    { name: 'second', values: { a: '1', b: 'x y' } },
    { name: 'first', values: { a: '1' } },
    null,
    null,
    { name: 'first', values: {} },
  ]);
  assert.deepEqual(found.written, ['#second', '#second?a=1&b=x+y']);
  assert.deepEqual(found.values, [
    { n: 0.5, on: true, way: 'a' },
    { n: 0.3, on: false, way: 'b' },
    { n: 1, on: true, way: 'a' },
    { n: 0.5, on: true, way: 'a' },
    { n: 0.5, on: true, way: 'a' },
  ]);
});

browserTest('a hash of bits tells −0 from 0 and one bit from another, however it is sliced', async () => {
  const found = await withModules(['sections/wall/hash', 'parts/pace'], async ({ hashBits, Pace }) => {
    const numbers = Float32Array.from({ length: 200_000 }, (_, k) => Math.sin(k));
    const hash = (/** @type {Float32Array} */ array) => hashBits(array, new Pace());
    const changed = (/** @type {number} */ at, /** @type {number} */ number) => {
      const copy = numbers.slice();
      copy[at] = number;
      return hash(copy);
    };
    const spent = { left: 0, rest: async () => {} };
    return Promise.all([
      hash(numbers),
      hashBits(numbers, spent),
      changed(0, -0),
      changed(199_999, 0.5),
      changed(77, numbers[77] * (1 + 2 ** -23)),
    ]);
  });
  assert.equal(found[0], found[1]);
  assert.equal(new Set(found.slice(1)).size, 4);
  for (const hash of found) assert.match(hash, /^[0-9a-f]{16}$/);
});
