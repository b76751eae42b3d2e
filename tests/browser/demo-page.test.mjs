// The memory wall of the demo page as a visitor uses it.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { browserTest, numberAt, pressRun, root, sectionReady, withDemo } from './helpers/demo.mjs';
import { hashOf } from './helpers/sections.mjs';

const headDim = 64;

/**
 * The last row of the page's own problem from the textbook formula, in float64, with what the page draws its data by.
 * @param {import('playwright-core').Page} page
 * @param {number} tokens
 * @returns {Promise<number[]>} (headDim); the last row sees every key, causal or not
 */
function lastRow(page, tokens) {
  return page.evaluate(
    async ({ L, D }) => {
      const at = (/** @type {string} */ file) => import(new URL(file, document.baseURI).href);
      const [{ normal }, { seeds }] = await Promise.all([at('parts/data.js'), at('sections/wall/run.js')]);
      const [q, k, v] = [seeds.query, seeds.key, seeds.value].map((seed) =>
        Float32Array.from({ length: L * D }, normal(seed)),
      );
      const scores = Array.from({ length: L }, (_, j) =>
        q.slice(-D).reduce((sum, number, d) => sum + number * k[j * D + d], 0),
      );
      const weights = scores.map((score) => Math.exp(score / Math.sqrt(D)));
      const total = weights.reduce((a, b) => a + b);
      return Array.from({ length: D }, (_, d) => weights.reduce((sum, w, j) => sum + w * v[j * D + d], 0) / total);
    },
    { L: tokens, D: headDim },
  );
}

for (const { tokens, causal } of [
  { tokens: 1024, causal: true },
  { tokens: 4096, causal: true },
  { tokens: 4096, causal: false },
]) {
  browserTest(
    `${tokens} tokens${causal ? ', causal,' : ''} run to the end with an error within the bound`,
    async (t) => {
      await withDemo({}, async ({ page, go, problems }) => {
        await go(`#tokens=${tokens}&causal=${causal ? 1 : 0}&build=auto`);
        const { frames, longTasks } = await pressRun(page);
        assert.match((await page.locator('#status').textContent()) ?? '', /^Done: /);

        const error = await numberAt(page, 'error');
        assert.ok(error > 0 && error <= 2e-6, `the largest error is ${error}`);
        const expected = await lastRow(page, tokens);
        const shown = ((await page.locator('#last-row').textContent()) ?? '').split(', ').map(Number);
        assert.equal(shown.length, 4);
        // The error's bound, and half of the last digit shown.
        for (const [d, number] of shown.entries()) assert.ok(Math.abs(number - expected[d]) <= 2e-6 + 5e-8);

        const milliseconds = await numberAt(page, 'time');
        const flops = (4 * tokens ** 2 * headDim) / (causal ? 2 : 1);
        assert.ok(milliseconds > 0);
        assert.ok(Math.abs((await numberAt(page, 'speed')) / (flops / milliseconds / 1e6) - 1) < 1e-9);

        const slices = await numberAt(page, 'slices');
        assert.ok(frames > 0, `no frame was drawn in ${slices} slices`);
        t.diagnostic(
          `${milliseconds.toFixed(1)} ms in ${slices} slices, ${frames} frames; tasks above 50 ms: ${longTasks.join(', ') || 'none'}`,
        );
        assert.deepEqual(problems, []);
      });
    },
  );
}

browserTest('the memory shown is what was held, and the squares are true to its scale', async () => {
  await withDemo({ context: { reducedMotion: 'reduce' } }, async ({ page, go }) => {
    await go('#tokens=4096');
    await pressRun(page);
    const [ours, plain, peak, inputs, output, working, held, wasm] = await Promise.all(
      ['ours-amount', 'plain-amount', 'peak', 'inputs', 'output', 'working', 'held', 'wasm'].map((id) =>
        numberAt(page, id),
      ),
    );
    assert.equal(plain, 4096 * 4096 * 4);
    assert.equal(inputs, 3 * 4096 * headDim * 4);
    assert.equal(output, 4096 * headDim * 4);
    assert.equal(ours, peak + output);
    assert.equal(working, peak - inputs);
    assert.ok(working > 0 && working < output + 1e6, `${working} bytes of working memory`);
    assert.ok(held >= inputs && held <= peak && peak <= wasm);
    const [small, large] = await Promise.all(
      ['#ours-square', '#plain-square'].map((square) => page.locator(square).boundingBox()),
    );
    assert.ok(small && large);
    // To the pixel: sides are rounded when drawn.
    assert.ok(Math.abs(small.width - large.width * Math.sqrt(ours / plain)) < 1);
    assert.ok(Math.abs(small.height - small.width) < 1 && Math.abs(large.height - large.width) < 1);
    assert.equal(await page.locator('#chart circle').count(), 1);
    // Neither hides the other, whichever is the larger.
    const shownAt = async (/** @type {string} */ square) => {
      await page.locator(square).scrollIntoViewIfNeeded();
      const box = await page.locator(square).boundingBox();
      assert.ok(box && box.width > 0);
      return page.evaluate(([x, y]) => document.elementFromPoint(x, y)?.id, [box.x + 4, box.y + 4]);
    };
    for (const tokens of [4096, 128]) {
      await page.evaluate((count) => void (location.hash = `#tokens=${count}`), tokens);
      await page.locator(`#tokens-shown[data-value="${tokens}"]`).waitFor();
      assert.equal(await shownAt('#ours-square'), 'ours-square');
      assert.equal(await shownAt('#plain-square'), 'plain-square');
    }
  });
});

browserTest('Stop ends a run that would take minutes, and the next run is right', async () => {
  await withDemo({}, async ({ page, go, problems }) => {
    await go('#tokens=32768&causal=0&build=scalar');
    await page.locator('#run').click();
    await page.locator('#status', { hasText: 'Attending' }).waitFor();
    assert.equal(await page.locator('#run').textContent(), 'Stop');
    // Timers and frames come between the slices, and the progress moves on.
    const before = await page.locator('#progress').evaluate((node) => /** @type {any} */ (node).value);
    await page.evaluate(async () => {
      for (let i = 0; i < 10; i++) await new Promise((done) => setTimeout(done, 10));
      for (let i = 0; i < 10; i++) await new Promise(requestAnimationFrame);
    });
    assert.ok((await page.locator('#progress').evaluate((node) => /** @type {any} */ (node).value)) > before);
    assert.ok(await page.locator('#settings').evaluate((node) => /** @type {any} */ (node).disabled));
    await page.locator('#run').click();
    await page.locator('#status', { hasText: 'Stopped at' }).waitFor();
    assert.equal(await page.locator('#run').textContent(), 'Run');
    assert.ok(await page.locator('#results').isHidden());

    await page.locator('#tokens').focus();
    await page.keyboard.press('Home');
    await page.locator('#build').selectOption('auto');
    await pressRun(page);
    assert.match((await page.locator('#status').textContent()) ?? '', /^Done: 128 tokens, in /);
    assert.ok((await numberAt(page, 'error')) <= 2e-6);
    assert.deepEqual(problems, []);
  });
});

browserTest('the keyboard alone sets, runs and stops', async () => {
  await withDemo({}, async ({ page, go }) => {
    await go('#tokens=256&causal=1&build=scalar');
    await page.locator('#run:enabled').waitFor();
    await page.locator('#tokens').focus();
    await page.keyboard.press('End');
    assert.equal(await page.locator('#tokens').getAttribute('aria-valuetext'), '65\u202f536 tokens');
    for (let i = 0; i < 3; i++) await page.keyboard.press('Tab');
    await page.keyboard.press('Space');
    assert.equal(await page.locator('#causal').isChecked(), false);
    assert.equal(await hashOf(page), '#wall?tokens=65536&causal=0&build=scalar&threads=0');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.locator('#status', { hasText: 'Attending' }).waitFor();
    await page.keyboard.press('Escape');
    await page.locator('#status', { hasText: 'Stopped at' }).waitFor();
  });
});

browserTest('the address holds the settings, and nonsense in it is as nothing', async () => {
  await withDemo({}, async ({ page, go }) => {
    const setting = async () => ({
      tokens: await numberAt(page, 'tokens-shown'),
      causal: await page.locator('#causal').isChecked(),
      build: await page.locator('#build').inputValue(),
    });
    await go('#wall?tokens=6144&causal=0&build=simd');
    await sectionReady(page, 'wall');
    assert.deepEqual(await setting(), { tokens: 6144, causal: false, build: 'simd' });
    await go();
    await sectionReady(page, 'wall');
    const initial = await setting();
    await go('#wall?tokens=NaN&build=%3Cb%3E&other=1');
    await sectionReady(page, 'wall');
    assert.deepEqual(await setting(), initial);
    await page.evaluate(() => void (location.hash = '#tokens=1000&build=scalar'));
    await page.locator('#tokens-shown[data-value="1024"]').waitFor();
    assert.equal((await setting()).build, 'scalar');
    await page.locator('#tokens').focus();
    await page.keyboard.press('ArrowRight');
    assert.equal(await hashOf(page), '#wall?tokens=1536&causal=1&build=scalar&threads=0');
  });
});

browserTest('the opening picture has the numbers and the scale of the wall, and its link leads there', async () => {
  await withDemo({ context: { reducedMotion: 'reduce' } }, async ({ page, go, problems }) => {
    await go();
    await sectionReady(page, 'wall');
    // The visitor asked for less movement.
    assert.equal(await page.evaluate(() => document.getAnimations().length), 0);
    await page.getByRole('link', { name: 'Try it with 65\u202f536 tokens' }).click();
    await page.locator('#tokens-shown[data-value="65536"]').waitFor();
    const said = (await page.locator('.scale figcaption').innerText()).replace(/\s+/g, ' ');
    const [ours, plain] = await Promise.all(
      ['ours', 'plain'].map((kind) => page.locator(`.pair .${kind} .amount`).innerText()),
    );
    for (const amount of [ours, plain]) assert.ok(said.includes(amount.replace(/\s+/g, ' ')), `${amount}: ${said}`);
    const side = (/** @type {string} */ square) =>
      page.locator(`.scale ${square}`).evaluate((node) => node.clientWidth);
    const areas = ((await side('.matrix')) / (await side('.kept'))) ** 2;
    const ratio = (await numberAt(page, 'plain-amount')) / (await numberAt(page, 'ours-amount'));
    // To the pixel.
    assert.ok(Math.abs(Math.sqrt(areas / ratio) - 1) < 1 / (await side('.kept')), `${areas} to 1, not ${ratio}`);
    assert.deepEqual(problems, []);
  });
});

browserTest('the code on the page can be copied and runs as it stands', async () => {
  await withDemo({ context: { permissions: ['clipboard-read', 'clipboard-write'] } }, async ({ page, go }) => {
    await go('#wall?tokens=1024');
    await sectionReady(page, 'wall');
    const code = (await page.locator('#wall-code').textContent()) ?? '';
    assert.ok(code.trim().split('\n').length <= 10);
    await page.getByRole('button', { name: 'Copy the code of The memory wall' }).click();
    await page.locator('#wall .code button', { hasText: 'Copied' }).waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), code);
    // So can what a visitor selects of it by hand.
    const selected = await page.evaluate(() => {
      getSelection()?.selectAllChildren(/** @type {Node} */ (document.querySelector('#wall-code')));
      return String(getSelection());
    });
    assert.equal(selected.trimEnd(), code);
    const printed = execFileSync(process.execPath, ['--input-type=module', '--eval', code], {
      cwd: root,
      encoding: 'utf8',
    });
    assert.match(printed, /\[ 1, 1, 1024, 64 \][\s\S]*MB with the (relaxed|simd|scalar) build/);
  });
});

browserTest('the output has the same bits for every number of workers, and other data have others', async (t) => {
  await withDemo({}, async ({ page, go, problems }) => {
    await go('#wall?tokens=2048&causal=1');
    await page.locator('#run-each:enabled').click();
    await page.locator('#run[data-running]').waitFor();
    await page.locator('#run:not([data-running])').waitFor();
    assert.match((await page.locator('#status').textContent()) ?? '', /^Done: /);
    const counts = await page
      .locator('#threads option')
      .evaluateAll((nodes) => nodes.map((node) => /** @type {any} */ (node).value));
    assert.ok(counts.length >= 2 && counts[0] === '0', counts.join());
    const rows = await page.locator('#ledger tr').evaluateAll((nodes) =>
      nodes.map((node) => ({
        text: /** @type {any} */ (node).innerText.split('\t'),
        hash: node.querySelector('.bits')?.getAttribute('data-hash'),
      })),
    );
    assert.deepEqual(rows.map(({ text }) => text[3]).reverse(), counts);
    assert.equal(new Set(rows.map(({ hash }) => hash)).size, 1);
    for (const { text } of rows.slice(0, -1)) assert.match(text[6], /= run 1$/);
    // The last run had workers, and they ran.
    assert.ok((await numberAt(page, 'used-threads')) >= 1);
    assert.ok((await numberAt(page, 'error')) <= 2e-6);
    t.diagnostic(
      rows
        .map(({ text }) => text.slice(3, 6).join(' '))
        .reverse()
        .join('; '),
    );

    await page.locator('#causal').uncheck();
    await pressRun(page);
    assert.notEqual(await page.locator('#ledger tr:first-child .bits').getAttribute('data-hash'), rows[0].hash);
    assert.deepEqual(problems, []);
  });
});

browserTest('a run by workers stops, and its code calls attentionAsync', async () => {
  await withDemo({}, async ({ page, go, problems }) => {
    await go('#wall?tokens=65536&causal=0&build=scalar&threads=1');
    await sectionReady(page, 'wall');
    assert.equal(await page.locator('#threads').inputValue(), '1');
    assert.match((await page.locator('#wall-code').textContent()) ?? '', /threads: 1[\s\S]*await sdpa\.attentionAsync/);
    await page.locator('#run').click();
    await page.locator('#status', { hasText: 'Attending' }).waitFor();
    await page.locator('#run').click();
    await page.locator('#status', { hasText: 'Stopped at' }).waitFor();
    assert.deepEqual(problems, []);
  });
});
