// The demo page where the engine, the server or the window is not the best.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { contentSecurityPolicy } from '../../scripts/serve.mjs';
import { browserTest, demoFolder, numberAt, pressRun, root, sectionReady, withDemo } from './helpers/demo.mjs';

/** @param {import('playwright-core').Page} page */
const status = async (page) => (await page.locator('#status').textContent()) ?? '';

/** The script-src that serve() sends for the page. */
function scriptSource() {
  const policy = contentSecurityPolicy(readFileSync(join(demoFolder, 'index.html'), 'utf8'));
  const found = policy.split('; ').find((directive) => directive.startsWith('script-src'));
  assert.ok(found);
  return found;
}

browserTest('it runs from a sub-path under a policy of its own files and wasm-unsafe-eval', async () => {
  const headers = { 'content-security-policy': `default-src 'self'; ${scriptSource()}` };
  await withDemo({ folder: dirname(demoFolder), path: '/demo/', headers }, async ({ page, go, problems }) => {
    await go('#tokens=256');
    await pressRun(page);
    assert.match(await status(page), /^Done: /);
    assert.deepEqual(problems, []);
  });
});

browserTest('a policy without wasm-unsafe-eval becomes a sentence that names it', async () => {
  const headers = {
    'content-security-policy': `default-src 'self'; ${scriptSource().replace(" 'wasm-unsafe-eval'", '')}`,
  };
  await withDemo({ headers }, async ({ page, go }) => {
    await go('#tokens=256');
    await pressRun(page);
    assert.match(await status(page), /^The run failed: .*wasm-unsafe-eval/);
    assert.ok(await page.locator('#results').isHidden());
  });
});

browserTest('without WebAssembly it says so and offers no run', async () => {
  const before = () => void Reflect.deleteProperty(globalThis, 'WebAssembly');
  await withDemo({ before }, async ({ page, go, problems }) => {
    await go();
    await page.locator('#status', { hasText: 'no WebAssembly' }).waitFor();
    assert.ok(await page.locator('#run').isDisabled());
    assert.deepEqual(problems, []);
  });
});

browserTest('where its script does not start the page says what it needs', async () => {
  await withDemo({}, async ({ page, go }) => {
    await page.route('**/main.js', (route) => route.abort());
    await go();
    await page.locator('#starting', { hasText: 'has not started' }).waitFor();
    assert.equal(await page.locator('#run').count(), 0);
  });
});

browserTest('an engine without SIMD gets the scalar build, and the others cannot be chosen', async () => {
  await withDemo({ flags: ['--js-flags=--no-enable-sse4-1'] }, async ({ page, go }) => {
    await go('#tokens=256&build=relaxed');
    await sectionReady(page, 'wall');
    assert.equal(await page.locator('#build').inputValue(), 'auto');
    const disabled = page.locator('#build option:disabled');
    assert.deepEqual(await disabled.evaluateAll((nodes) => nodes.map((node) => /** @type {any} */ (node).value)), [
      'relaxed',
      'simd',
    ]);
    await pressRun(page);
    assert.equal(await page.locator('#used-build').textContent(), 'scalar');
    assert.ok((await numberAt(page, 'error')) <= 2e-6);
  });
});

for (const build of ['relaxed', 'simd', 'scalar']) {
  browserTest(`the ${build} build runs where it is chosen`, async () => {
    await withDemo({}, async ({ page, go, problems }) => {
      await go(`#tokens=768&build=${build}`);
      await pressRun(page);
      assert.equal(await page.locator('#used-build').textContent(), build);
      assert.ok((await numberAt(page, 'error')) <= 2e-6);
      assert.deepEqual(problems, []);
    });
  });
}

for (const { name, width, scheme } of /** @type {const} */ ([
  { name: 'desktop-light', width: 1280, scheme: 'light' },
  { name: 'desktop-dark', width: 1280, scheme: 'dark' },
  { name: 'phone-light', width: 360, scheme: 'light' },
  { name: 'phone-dark', width: 360, scheme: 'dark' },
])) {
  browserTest(`it fits a ${name.replace('-', ' screen, ')}, and its picture is kept`, async () => {
    const context = {
      viewport: { width, height: 800 },
      colorScheme: scheme,
      reducedMotion: /** @type {const} */ ('reduce'),
    };
    await withDemo({ context }, async ({ page, go }) => {
      await go('#tokens=8192');
      await pressRun(page);
      await page.locator('#all').evaluate((node) => void (/** @type {any} */ (node.open = true)));
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
      const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const [red] = (/\d+/.exec(background) ?? ['']).map(Number);
      assert.ok(scheme === 'dark' ? red < 64 : red > 192, background);
      assert.equal(
        await page.locator('#ours-square').evaluate((node) => getComputedStyle(node).transitionDuration),
        '0s',
      );
      const folder = join(root, 'build/screenshots');
      mkdirSync(folder, { recursive: true });
      await page.screenshot({ path: join(folder, `demo-${name}.png`), fullPage: true });
    });
  });
}

browserTest('every control has a name, and every part of the page a heading', async () => {
  await withDemo({}, async ({ page, go }) => {
    await go();
    await sectionReady(page, 'wall');
    for (const [role, name] of /** @type {const} */ ([
      ['slider', /^Tokens/],
      ['combobox', 'Build'],
      ['switch', 'Causal'],
      ['button', 'Run'],
      ['button', 'Copy the code of The memory wall'],
      ['button', 'Link to The memory wall as it is set'],
      ['progressbar', 'Progress of the run'],
      ['img', /^Memory against tokens/],
    ])) {
      assert.equal(await page.getByRole(role, { name }).count(), 1, `${role} ${name}`);
    }
    assert.equal(await page.getByRole('heading', { level: 1 }).count(), 1);
    const sections = await page.locator('main > section').count();
    assert.equal(await page.locator('main > section > .title-row > h2').count(), sections);
    assert.equal(await page.getByRole('navigation').getByRole('link').count(), sections);
  });
});
