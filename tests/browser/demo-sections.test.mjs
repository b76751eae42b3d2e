// What holds for every section of the page, whichever they are.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { allSections, browserTest, demoFolder, pressRun, root, sectionReady, withDemo } from './helpers/demo.mjs';
import { eventually, picturesOf } from './helpers/sections.mjs';

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

/** Settings besides those at the start: each way in which the code is written. */
const otherSettings = {
  wall: ['tokens=256&causal=0&build=scalar&threads=1'],
  tiles: ['mask=lower-right&step=0', 'mask=upper-left&seed=20'],
  'sqrt-d': ['size=0&exponent=0.5', 'size=8&exponent=1'],
  'mask-lab': [
    'queries=4&keys=7&causal=upper-left&alibi=0.25&window=9',
    'queries=2&keys=2&causal=off&real=50&documents=3&drawn=1.1.1',
    ...['chunk', 'prefix', 'longformer', 'bigbird', 'swin'].map((pattern) => `pattern=${pattern}&queries=6&keys=6`),
  ],
  map: ['tokens=8&head=0&causal=0&kind=mean'],
  positions: ['none', 'linear', 'ntk', 'llama3'].map((stretch) => `stretch=${stretch}&pairing=interleaved&base=5.5`),
  sentence: ['source=cross', 'source=decode&tokens=9'],
  race: ['tokens=10'],
  train: ['task=previous&rate=-1'],
};

browserTest('the code of each section runs with other settings too', async () => {
  await withDemo({}, async ({ page, go, problems }) => {
    for (const [name, states] of Object.entries(otherSettings)) {
      for (const state of states) {
        await go(`#${name}?${state}`);
        await sectionReady(page, name);
        const code = (await page.locator(`#${name}-code`).textContent()) ?? '';
        const printed = execFileSync(process.execPath, ['--input-type=module', '--eval', code], {
          cwd: root,
          encoding: 'utf8',
        });
        assert.ok(printed.trim().length > 0 && !printed.includes('NaN'), `${name} ${state}: ${printed}`);
      }
    }
    assert.deepEqual(problems, []);
  });
});

/**
 * The longest tasks of the page's own thread while `use` runs, in ms of time on the processor: other programs do not count.
 * @param {import('playwright-core').Page} page
 * @param {() => Promise<unknown>} use
 * @returns {Promise<number[]>} the longest first
 */
async function longestTasks(page, use) {
  const browser = page.context().browser();
  assert.ok(browser);
  await browser.startTracing(page, { categories: ['toplevel', 'devtools.timeline'] });
  await use();
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  /** @type {{ traceEvents: any[] }} */
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
  const threads = traceEvents.filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain');
  const isOwn = (/** @type {any} */ { pid, tid }) => threads.some((each) => each.pid === pid && each.tid === tid);
  const tasks = traceEvents.filter((event) => /RunTask$/.test(event.name) && isOwn(event));
  assert.ok(tasks.length > 10, `${tasks.length} tasks were seen`);
  return tasks.map(({ tdur = 0 }) => Math.round(tdur / 1000)).sort((a, b) => b - a);
}

/**
 * What makes each section compute, until it has.
 * @type {Record<string, (page: import('playwright-core').Page, section: import('playwright-core').Locator) => Promise<unknown>>}
 */
const computing = {
  wall: pressRun,
  tiles: async (page, section) => {
    await section.getByRole('button', { name: 'Play' }).click();
    await section.locator('output[data-value="7"]').first().waitFor();
    await section.getByRole('button', { name: 'Pause' }).click();
  },
  'sqrt-d': async (page, section) => {
    await section.getByRole('button', { name: 'Divide by √d' }).click();
    await section.locator('.body[data-drawn$=" 0.5"]').waitFor();
  },
  'mask-lab': async (page, section) => {
    await section.getByRole('button', { name: 'BigBird' }).click();
    await section.locator('.status', { hasText: '512 queries, 512 keys' }).waitFor();
  },
  map: async (page, section) => {
    await section.getByLabel('Tokens').focus();
    await page.keyboard.press('ArrowRight');
    await section.locator('.doing .status', { hasText: /\d queries × [\d\s]+ keys, in / }).waitFor();
  },
  positions: (page, section) => section.getByRole('button', { name: 'Move both on by one' }).click(),
  sentence: async (page, section) => {
    await section.getByLabel('Words', { exact: true }).selectOption('cross');
    await section.locator('.body[data-drawn^="cross"]').waitFor();
  },
  race: async (page, section) => {
    await section.getByRole('button', { name: 'Race', exact: true }).click();
    await section.locator('.body[data-drawn]').waitFor();
  },
  train: async (page, section) => {
    await section.getByRole('button', { name: 'Start' }).click();
    await section.locator('.status', { hasText: /^Ended after/ }).waitFor();
  },
};

browserTest('the longest tasks while each section computes are reported, in time on the processor', async (t) => {
  await withDemo({}, async ({ page, go, problems }) => {
    await go();
    const names = await allSections(page);
    assert.deepEqual(Object.keys(computing), names);
    for (const name of names) {
      await go(`#${name}`);
      const section = await sectionReady(page, name);
      await picturesOf(section);
      const longest = await longestTasks(page, async () => {
        await computing[name](page, section);
        // Each slider once, by key.
        for (const input of await page.locator(`#${name} input[type="range"]:visible`).elementHandles()) {
          await input.focus();
          await page.keyboard.press('ArrowLeft');
        }
      });
      t.diagnostic(`${name}, longest tasks in ms: ${longest.slice(0, 4).join(', ')}`);
    }
    assert.deepEqual(problems, []);
  });
});

browserTest('the longest tasks while sections start are reported, in time on the processor', async (t) => {
  await withDemo({}, async ({ page, go, problems }) => {
    const longest = await longestTasks(page, async () => {
      await go();
      await allSections(page);
    });
    t.diagnostic(`longest tasks in ms: ${longest.slice(0, 8).join(', ')}`);
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
    await eventually(async () => assert.ok((await fetched()).includes('wall')));
    assert.ok(!(await fetched()).includes(last));
    const name = 'mask-lab';
    await page.locator(`nav a[href="#${name}"]`).click();
    await page.locator(`#${name}[data-state="ready"]`).waitFor();
    await eventually(async () => assert.ok((await fetched()).includes(name)));
    await page.locator('nav a[aria-current]').waitFor();
    const top = () => page.locator(`#${name}`).evaluate((node) => node.getBoundingClientRect().top);
    // Sections above grow when they have started, and push this one down until it is scrolled to again.
    await eventually(async () => {
      const now = await top();
      assert.ok(now >= 40 && now < 200, `the heading is at ${now}: behind the navigation, or away`);
    });
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
      assert.equal(await page.evaluate(() => location.href), link);
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
      // Tables of plots are filled by an event that comes later.
      await eventually(async () =>
        assert.equal(await page.locator('.plot > details:visible:not(:has(tbody tr))').count(), 0),
      );
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

/**
 * Elements that reach out of the window, and lists with a choice that is cut.
 * @param {import('playwright-core').Page} page
 * @param {string} selector
 */
const cutOff = (page, selector) =>
  page.locator(selector).evaluate((node) => {
    const outside = [...node.querySelectorAll('*')].filter((child) => {
      const { right, width } = child.getBoundingClientRect();
      return width > 0 && right > innerWidth + 1 && !child.closest('.data-table, .visually-hidden, nav ol');
    });
    const pen = /** @type {CanvasRenderingContext2D} */ (document.createElement('canvas').getContext('2d'));
    const cut = [...node.querySelectorAll('select')].filter((list) => {
      if (!list.checkVisibility()) return false;
      const { font, paddingLeft, paddingRight } = getComputedStyle(list);
      pen.font = font;
      const wanted = Math.max(...[...list.options].map(({ text }) => pen.measureText(text).width));
      return wanted > list.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
    });
    return [...outside, ...cut].slice(0, 3).map((child) => child.outerHTML.slice(0, 120));
  });

// A window of 1280 pixels, magnified twice and four times.
for (const width of [640, 320]) {
  browserTest(`magnified until ${width} pixels are left across, nothing is cut or scrolled sideways`, async () => {
    const context = { viewport: { width, height: 450 }, reducedMotion: /** @type {const} */ ('reduce') };
    await withDemo({ context }, async ({ page, go, problems }) => {
      await go();
      assert.deepEqual(await cutOff(page, 'body > header'), []);
      for (const name of await allSections(page)) {
        await picturesOf(page.locator(`#${name}`));
        assert.deepEqual(await cutOff(page, `#${name}`), [], name);
      }
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
      assert.deepEqual(problems, []);
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
          await picturesOf(page.locator(`#${name}`));
          assert.deepEqual(await cutOff(page, `#${name}`), [], name);
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
