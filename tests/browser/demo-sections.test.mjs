// What holds for every section of the page, whichever they are.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { allSections, browserTest, demoFolder, root, sectionReady, withDemo } from './helpers/demo.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

browserTest(
  'all start from a sub-path under the strict policy, ask no other host, and their code runs as it stands',
  async (t) => {
    await withDemo({ folder: dirname(demoFolder), path: '/demo/' }, async ({ page, go, problems }) => {
      await go();
      const names = await allSections(page);
      assert.ok(names.length >= 4);
      for (const name of names) {
        const code = (await page.locator(`#${name}-code`).textContent()) ?? '';
        const lines = code.split('\n').filter((line) => line.trim() !== '');
        assert.ok(lines.length >= 3 && lines.length <= 10, `${name}: ${lines.length} lines`);
        const printed = execFileSync(process.execPath, ['--input-type=module', '--eval', code], {
          cwd: root,
          encoding: 'utf8',
        });
        assert.ok(printed.trim().length > 0, `${name} prints nothing`);
      }
      const { frames, longTasks } = await page.evaluate(() => /** @type {any} */ (window).seen);
      assert.ok(frames > 0);
      t.diagnostic(
        `tasks above 50 ms while ${names.length} sections started: ${longTasks.map(Math.round).join(', ') || 'none'}`,
      );
      assert.deepEqual(problems, []);
    });
  },
);

browserTest('the longest tasks while sections start and are used are reported, in time on the processor', async (t) => {
  await withDemo({}, async ({ page, go, problems }) => {
    const browser = page.context().browser();
    assert.ok(browser);
    await browser.startTracing(page, { categories: ['toplevel', 'devtools.timeline'] });
    await go();
    for (const name of await allSections(page)) {
      // Each slider and each choice once, by key.
      for (const input of await page.locator(`#${name} :is(input[type="range"], select):visible`).all()) {
        await input.focus();
        await page.keyboard.press('ArrowDown');
      }
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    }
    const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
    const tasks = traceEvents.filter((/** @type {any} */ { name }) => /RunTask$/.test(name));
    // Time of the thread alone: other programs on the machine do not count.
    const longest = tasks
      .map((/** @type {any} */ { tdur = 0 }) => Math.round(tdur / 1000))
      .sort((/** @type {number} */ a, /** @type {number} */ b) => b - a);
    assert.ok(longest.length > 100, `${longest.length} tasks were seen`);
    t.diagnostic(`longest tasks, in ms: ${longest.slice(0, 8).join(', ')}`);
    assert.deepEqual(problems, []);
  });
});

browserTest('a section is fetched when it comes near, or is linked to, and not before', async () => {
  await withDemo({}, async ({ page, go, problems }) => {
    const fetched = () =>
      page.evaluate(() =>
        performance
          .getEntriesByType('resource')
          .flatMap(({ name }) => /sections\/([^/]+)\/section\.js$/.exec(name)?.[1] ?? []),
      );
    await go();
    await sectionReady(page, 'wall');
    const last = (await page.locator('main > section').last().getAttribute('id')) ?? '';
    assert.ok((await fetched()).includes('wall') && !(await fetched()).includes(last));
    const name = 'mask-lab';
    await page.locator(`nav a[href="#${name}"]`).click();
    await page.locator(`#${name}[data-state="ready"]`).waitFor();
    assert.ok((await fetched()).includes(name));
    await page.locator('nav a[aria-current]').waitFor();
    const top = () => page.locator(`#${name}`).evaluate((node) => node.getBoundingClientRect().top);
    await page.waitForFunction(
      (id) => Math.abs(document.getElementById(id)?.getBoundingClientRect().top ?? 1e9) < 200,
      name,
    );
    assert.ok((await top()) >= 40, 'the heading is behind the navigation');
    assert.deepEqual(problems, []);
  });
});

browserTest('a section whose script is missing says so, and the others go on', async () => {
  await withDemo({}, async ({ page, go }) => {
    await page.route('**/sections/tiles/section.js', (route) => route.abort());
    await go('#tiles');
    await page.locator('#tiles[data-state="failed"] [role="alert"]', { hasText: 'could not start' }).waitFor();
    await sectionReady(page, 'sqrt-d');
  });
});

browserTest('the button Link puts what is set into the address and the clipboard', async () => {
  await withDemo(
    { context: { permissions: ['clipboard-read', 'clipboard-write'] } },
    async ({ page, url, go, problems }) => {
      await go('#tiles?step=3&seed=5&mask=none');
      const section = await sectionReady(page, 'tiles');
      await page.evaluate(() => history.replaceState(null, '', '#sqrt-d'));
      await section.getByRole('button', { name: 'Link to How the tiles work as it is set' }).click();
      await section.locator('button', { hasText: 'Copied' }).waitFor();
      const link = `${url}#tiles?step=3&seed=5&mask=none`;
      assert.equal(await page.evaluate(() => navigator.clipboard.readText()), link);
      assert.equal(page.url(), link);
      assert.deepEqual(problems, []);
    },
  );
});

browserTest('the Tab key reaches every control of every section', async () => {
  await withDemo({}, async ({ page, go, problems }) => {
    await go();
    await allSections(page);
    const wanted = await page.evaluate(() => {
      const all = document.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"]');
      const visible = [...all].filter(
        (node) => /** @type {HTMLElement} */ (node).checkVisibility() && !(/** @type {any} */ (node).disabled),
      );
      visible.forEach((node, k) => node.setAttribute('data-stop', String(k)));
      window.scrollTo(0, 0);
      /** @type {HTMLElement} */ (document.activeElement)?.blur();
      return visible.length;
    });
    /** @type {Set<string>} */
    const reached = new Set();
    for (let i = 0; i < wanted + 40 && reached.size < wanted; i++) {
      await page.keyboard.press('Tab');
      const stop = await page.evaluate(() => document.activeElement?.getAttribute('data-stop') ?? '');
      if (stop) reached.add(stop);
    }
    const missed = await page.evaluate(
      (stops) =>
        [...document.querySelectorAll('[data-stop]')]
          .filter((node) => !stops.includes(node.getAttribute('data-stop') ?? ''))
          .map((node) => node.outerHTML.slice(0, 100)),
      [...reached],
    );
    assert.deepEqual(missed, []);
    assert.deepEqual(problems, []);
  });
});

for (const scheme of /** @type {const} */ (['light', 'dark'])) {
  browserTest(`an automated checker has no serious finding, ${scheme}`, async (t) => {
    const context = { colorScheme: scheme, reducedMotion: /** @type {const} */ ('reduce') };
    await withDemo({ context }, async ({ page, go }) => {
      await go();
      await allSections(page);
      for (const button of await page.getByRole('button', { name: /^Show as table/ }).all()) await button.click();
      await page
        .locator('details')
        .evaluateAll((nodes) => nodes.forEach((node) => /** @type {any} */ (node.open = true)));
      await page.evaluate(axe);
      const { violations, passes } = await page.evaluate(() => /** @type {any} */ (window).axe.run(document));
      assert.ok(passes.length > 20);
      const text = (/** @type {any} */ { id, impact, nodes }) =>
        `${impact}: ${id}: ${nodes
          .slice(0, 3)
          .map((/** @type {any} */ node) => node.html.slice(0, 120))
          .join(' | ')}`;
      const isSerious = (/** @type {any} */ { impact }) => impact === 'serious' || impact === 'critical';
      t.diagnostic(
        `other findings: ${
          violations
            .filter((/** @type {any} */ one) => !isSerious(one))
            .map(text)
            .join('; ') || 'none'
        }`,
      );
      assert.deepEqual(violations.filter(isSerious).map(text), []);
    });
  });
}

for (const width of [360, 1280]) {
  for (const scheme of /** @type {const} */ (['light', 'dark'])) {
    browserTest(`every section fits a width of ${width}, ${scheme}, and its picture is kept`, async () => {
      const context = {
        viewport: { width, height: 800 },
        colorScheme: scheme,
        reducedMotion: /** @type {const} */ ('reduce'),
      };
      await withDemo({ context }, async ({ page, go, problems }) => {
        await go();
        const folder = join(root, 'build/screenshots');
        mkdirSync(folder, { recursive: true });
        for (const name of await allSections(page)) {
          const overflow = await page.locator(`#${name}`).evaluate((node) => {
            const wide = [...node.querySelectorAll('*')].filter((child) => {
              const { right, width: own } = child.getBoundingClientRect();
              return own > 0 && right > innerWidth + 1 && !child.closest('pre, .data-table, .visually-hidden, nav ol');
            });
            return wide.slice(0, 3).map((child) => child.outerHTML.slice(0, 120));
          });
          assert.deepEqual(overflow, [], name);
          // Or it lies across the picture.
          await page.locator('nav').evaluate((node) => (node.style.position = 'static'));
          await page.locator(`#${name}`).screenshot({ path: join(folder, `demo-${name}-${width}-${scheme}.png`) });
        }
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
        assert.deepEqual(problems, []);
      });
    });
  }
}
