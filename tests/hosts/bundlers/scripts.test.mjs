// webpack, Rollup, esbuild and Parcel, with as little configuration as each can do with.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { runIn } from '../helpers/apps.mjs';
import { assertBundled, bundlerApp, html, twoWorkers } from '../helpers/bundle.mjs';
import { pageTest, visitFolder } from '../helpers/chromium.mjs';
import { policy, workersAllowed } from '../helpers/headers.mjs';
import { lacks, toolFile } from '../helpers/tools.mjs';

for (const mode of /** @type {const} */ (['production', 'development'])) {
  pageTest(`webpack 5: ${mode} build`, lacks('bundlers', 'webpack'), async () => {
    const app = bundlerApp();
    const webpack = createRequire(import.meta.url)(toolFile('bundlers', 'webpack'));
    const stats = await new Promise((resolve, reject) => {
      webpack(
        { mode, context: app, output: { path: join(app, 'dist') } },
        (/** @type {unknown} */ error, /** @type {any} */ result) => (error ? reject(error) : resolve(result)),
      );
    });
    const { errors, warnings } = stats.toJson({ all: false, errors: true, warnings: true });
    assert.deepEqual(errors, []);
    // Hints that a script of more than 244 KB takes time to come.
    const others = warnings.filter(({ message }) => !/size limit|code-splitting/.test(message));
    assert.deepEqual(others, []);
    assert.deepEqual(readdirSync(join(app, 'dist')), ['main.js']);
    writeFileSync(join(app, 'dist/index.html'), html('defer src="main.js"'));
    // Its development builds are made of eval().
    const headers =
      mode === 'production'
        ? workersAllowed
        : policy("default-src 'self'; img-src data:; script-src 'self' 'unsafe-eval'; worker-src blob:");
    assertBundled(await visitFolder(join(app, 'dist'), twoWorkers, { headers }));
  });
}

for (const [format, script] of [
  ['es', 'type="module" src="index.js"'],
  ['iife', 'defer src="index.js"'],
]) {
  pageTest(`Rollup: format ${format}`, lacks('bundlers', 'rollup'), async () => {
    const app = bundlerApp();
    const rollup = toolFile('bundlers', 'rollup/dist/bin/rollup');
    // What finds packages at all is a plugin of its own. --failAfterWarnings: no warning either.
    runIn(
      [
        process.execPath,
        rollup,
        'src/index.js',
        '-p',
        '@rollup/plugin-node-resolve',
        '-d',
        'out',
        '-f',
        format,
        '--failAfterWarnings',
      ],
      app,
    );
    assert.deepEqual(readdirSync(join(app, 'out')), ['index.js']);
    writeFileSync(join(app, 'out/index.html'), html(script));
    assertBundled(await visitFolder(join(app, 'out'), twoWorkers, { headers: workersAllowed }));
  });
}

for (const [format, script] of [
  ['esm', 'type="module" src="index.js"'],
  ['iife', 'defer src="index.js"'],
  ['cjs', 'defer src="index.js"'],
]) {
  for (const minify of [false, true]) {
    pageTest(`esbuild: format ${format}${minify ? ', minified' : ''}`, lacks('bundlers', 'esbuild'), async () => {
      const app = bundlerApp();
      const { build } = createRequire(import.meta.url)(toolFile('bundlers', 'esbuild'));
      const outfile = join(app, 'out/index.js');
      const { warnings } = await build({
        absWorkingDir: app,
        entryPoints: ['src/index.js'],
        outfile,
        bundle: true,
        platform: 'browser',
        format,
        minify,
        logLevel: 'silent',
      });
      assert.deepEqual(warnings, []);
      assert.deepEqual(readdirSync(join(app, 'out')), ['index.js']);
      // What runs CommonJS in pages gives it a function of its own.
      const text = readFileSync(outfile, 'utf8');
      if (format === 'cjs') writeFileSync(outfile, `((module, exports) => {${text}\n})({ exports: {} }, {});`);
      writeFileSync(join(app, 'out/index.html'), html(script));
      assertBundled(await visitFolder(join(app, 'out'), twoWorkers, { headers: workersAllowed }));
    });
  }
}

pageTest('Parcel: build', lacks('bundlers', 'parcel'), async () => {
  const app = bundlerApp();
  const parcel = toolFile('bundlers', 'parcel/lib/bin.js');
  runIn([process.execPath, parcel, 'build', 'index.html', '--dist-dir', 'out', '--no-cache', '--no-source-maps'], app, {
    PARCEL_WORKERS: '0',
  });
  const kinds = readdirSync(join(app, 'out')).map((name) => name.replace(/^.*\./, ''));
  assert.deepEqual(kinds.sort(), ['html', 'js']);
  assertBundled(await visitFolder(join(app, 'out'), twoWorkers, { headers: workersAllowed }));
});

test('Parcel: the other entries, where it is told to read exports', { skip: lacks('bundlers', 'parcel') }, () => {
  const app = bundlerApp({
    'package.json': JSON.stringify({ private: true, '@parcel/resolver-default': { packageExports: true } }),
    'src/index.js': `import { onnxOps } from 'sdpa/onnx'; import { load } from 'sdpa/slim'; globalThis.report = [onnxOps, load];`,
  });
  const parcel = toolFile('bundlers', 'parcel/lib/bin.js');
  runIn([process.execPath, parcel, 'build', 'index.html', '--dist-dir', 'out', '--no-cache', '--no-source-maps'], app);
});

const onePart = {
  'src/index.js': `import { load } from 'sdpa/slim'; import { caches } from 'sdpa/slim/parts'; globalThis.report = [load, caches];`,
};

/** Each has a text that only one part of the slim entry holds. @param {string} file */
function assertOnePart(file) {
  const text = readFileSync(file, 'utf8');
  assert.match(text, / a whole number/, 'caches');
  const others = {
    layers: /windowAttention2d needs the option/,
    linear: /has no gradients of the delta rules/,
    weights: /pool must be an object/,
    workers: /a slice came before the start/,
  };
  for (const [part, its] of Object.entries(others)) assert.doesNotMatch(text, its, part);
}

test('webpack 5: of the slim entry, what is imported', { skip: lacks('bundlers', 'webpack') }, async () => {
  const app = bundlerApp(onePart);
  const webpack = createRequire(import.meta.url)(toolFile('bundlers', 'webpack'));
  await new Promise((resolve, reject) => {
    webpack(
      { mode: 'production', context: app, output: { path: join(app, 'dist') } },
      (/** @type {unknown} */ error) => (error ? reject(error) : resolve(undefined)),
    );
  });
  assertOnePart(join(app, 'dist/main.js'));
});

test('Rollup: of the slim entry, what is imported', { skip: lacks('bundlers', 'rollup') }, () => {
  const app = bundlerApp(onePart);
  const rollup = toolFile('bundlers', 'rollup/dist/bin/rollup');
  runIn([process.execPath, rollup, 'src/index.js', '-p', '@rollup/plugin-node-resolve', '-d', 'out', '-f', 'es'], app);
  assertOnePart(join(app, 'out/index.js'));
});
