// The packed and installed package: files, imports, types, bundlers, a page in Chromium.

import assert from 'node:assert/strict';
import { build as esbuild, transformSync } from 'esbuild';
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { quietFlags } from '../../scripts/chromium.mjs';
import { serve } from '../../scripts/serve.mjs';
import { installPackage, root, run, tool } from './install.mjs';

/** @type {ReturnType<typeof installPackage>} */
let installed;
before(() => {
  installed = installPackage();
});
after(() => installed?.remove());

const consumer = fileURLToPath(new URL('consumer/', import.meta.url));
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** Entries that JavaScript imports, as source. */
const entries = "['sdpa', 'sdpa/slim', 'sdpa/slim/parts', 'sdpa/onnx', 'sdpa/torch', 'sdpa/jax', 'sdpa/io']";

/** One call, whose result is written to stdout. @param {string} load */
const useOf = (load) => `
  const x = { data: Float32Array.from({ length: 32 }, (_, i) => Math.sin(i)), shape: [1, 1, 4, 8] };
  ${load}.then((sdpa) => console.log(JSON.stringify([...sdpa.attention(x, x, x, { causal: true }).out.data])));`;

/** The same in plain float64. */
function expected() {
  const x = Float32Array.from({ length: 32 }, (_, i) => Math.sin(i));
  const out = new Array(32).fill(0);
  for (let i = 0; i < 4; i++) {
    let sum = 0;
    for (let j = 0; j <= i; j++) {
      let dot = 0;
      for (let d = 0; d < 8; d++) dot += x[i * 8 + d] * x[j * 8 + d];
      const weight = Math.exp(dot / Math.sqrt(8));
      sum += weight;
      for (let d = 0; d < 8; d++) out[i * 8 + d] += weight * x[j * 8 + d];
    }
    for (let d = 0; d < 8; d++) out[i * 8 + d] /= sum;
  }
  return out;
}

/** @param {number[]} got */
function right(got) {
  const want = expected();
  assert.equal(got.length, want.length);
  got.forEach((value, i) => assert.ok(Math.abs(value - want[i]) <= 1e-6, `element ${i}: ${value}, not ${want[i]}`));
}

/** @param {string} name @param {string} source */
function script(name, source) {
  writeFileSync(join(installed.folder, name), source);
  return JSON.parse(run(process.execPath, [name], installed.folder));
}

test('the tarball holds the package and nothing of the workshop', () => {
  const folders = new Set(installed.files.map((path) => path.split('/')[0]));
  for (const name of folders)
    assert.ok(['dist', 'package.json', 'README.md', 'LICENSE', 'CHANGELOG.md'].includes(name), name);
  for (const variant of ['simd', 'relaxed', 'scalar'])
    assert.ok(installed.files.includes(`dist/wasm/sdpa.${variant}.wasm`));
});

test('the main entry needs no other package', () => {
  for (const name of ['index.cjs', 'slim.cjs', 'compat/onnx.cjs', 'compat/torch.cjs', 'compat/jax.cjs']) {
    const text = readFileSync(join(installed.folder, 'node_modules/sdpa/dist', name), 'utf8');
    // Without its comments, which import types.
    const { code } = transformSync(text, { minify: true });
    const found = /\brequire\(|\bimport\(|import\.meta/.exec(code);
    assert.equal(found, null, `${name} holds ${found}`);
  }
});

test('import works from every entry', () => {
  right(script('use.mjs', `import { load } from 'sdpa'; ${useOf('load()')}`));
  const names = script(
    'entries.mjs',
    `const all = {}; for (const entry of ${entries}) all[entry] = Object.keys(await import(entry));
     console.log(JSON.stringify(all));`,
  );
  assert.ok(names.sdpa.includes('load') && names['sdpa/slim'].includes('load'));
  assert.deepEqual(names['sdpa/onnx'], ['onnxOps']);
  assert.deepEqual(names['sdpa/torch'], ['torchFunctional']);
  assert.deepEqual(names['sdpa/jax'], ['jaxNN']);
  assert.ok(names['sdpa/io'].includes('readNpy'));
});

test('require works from every entry, with the same exports', () => {
  right(script('use.cjs', `const { load } = require('sdpa'); ${useOf('load()')}`));
  const same = script(
    'same.cjs',
    `(async () => { const all = [];
       for (const entry of ${entries})
         all.push([Object.keys(require(entry)).sort(), Object.keys(await import(entry)).filter((name) => name !== 'default' && name !== 'module.exports').sort()]);
       console.log(JSON.stringify(all)); })();`,
  );
  for (const [required, imported] of same) assert.deepEqual(required, imported);
});

test('errors of the CommonJS copy are AttentionErrors of the ESM copy', () => {
  const got = script(
    'errors.mjs',
    `import { createRequire } from 'node:module'; import { AttentionError } from 'sdpa';
     const other = createRequire(import.meta.url)('sdpa');
     let error; try { other.chooseVariant({}, { variant: 'x' }); } catch (caught) { error = caught; }
     console.log(JSON.stringify([other.AttentionError !== AttentionError, error instanceof AttentionError, error.code]));`,
  );
  assert.deepEqual(got, [true, true, 'option']);
});

test('slim takes the binary that the package exports', () => {
  right(
    script(
      'slim.mjs',
      `import { load } from 'sdpa/slim'; ${useOf("load({ wasm: import.meta.resolve('sdpa/wasm/sdpa.scalar.wasm') })")}`,
    ),
  );
});

test('the command runs', () => {
  const bin = join(installed.folder, 'node_modules/.bin/sdpa');
  assert.equal(run(bin, ['--version'], installed.folder).trim(), manifest.version);
});

test('types: ESM and CommonJS consumers compile, wrong uses do not', () => {
  const uses = readdirSync(consumer).filter((name) => /^use.*ts$/.test(name));
  assert.ok(uses.includes('use.mts') && uses.includes('use.cts'));
  for (const name of uses) cpSync(join(consumer, name), join(installed.folder, name));
  // `types: []` and no DOM: the declarations must stand on their own.
  writeFileSync(
    join(installed.folder, 'globals.d.ts'),
    'declare const console: { log(...values: unknown[]): void };\n',
  );
  for (const [module, moduleResolution, files] of [
    ['NodeNext', 'NodeNext', uses],
    ['Node16', 'Node16', uses],
    ['ESNext', 'Bundler', uses.filter((name) => name.endsWith('.mts'))],
  ]) {
    const compilerOptions = {
      module,
      moduleResolution,
      target: 'ES2022',
      lib: ['ES2022'],
      types: [],
      strict: true,
      noEmit: true,
      skipLibCheck: false,
    };
    writeFileSync(
      join(installed.folder, 'tsconfig.json'),
      JSON.stringify({ compilerOptions, files: [...files, 'globals.d.ts'] }),
    );
    run(tool('tsc'), ['-p', 'tsconfig.json'], installed.folder);
  }
});

test('publint has nothing to say', () => {
  run(tool('publint'), ['run', installed.tarball, '--strict'], root);
});

test('the types resolve in every mode (are the types wrong?)', () => {
  run(tool('attw'), [installed.tarball, '--exclude-entrypoints', './package.json', '--format', 'ascii'], root);
});

test('esbuild bundles for browsers without a warning, and to CommonJS', async () => {
  const entry = join(installed.folder, 'entry.js');
  writeFileSync(entry, `import { load } from 'sdpa'; ${useOf('load()')}`);
  for (const [platform, format] of /** @type {const} */ ([
    ['browser', 'esm'],
    ['node', 'cjs'],
    ['neutral', 'cjs'],
  ])) {
    const outfile = join(installed.folder, 'bundled', `${platform}.${format === 'cjs' ? 'cjs' : 'mjs'}`);
    const { warnings } = await esbuild({
      entryPoints: [entry],
      outfile,
      bundle: true,
      minify: true,
      platform,
      format,
      logLevel: 'silent',
    });
    assert.deepEqual(warnings, []);
    right(JSON.parse(run(process.execPath, [outfile], installed.folder)));
  }
});

test('what is not used is left out of a bundle', async () => {
  const { outputFiles } = await esbuild({
    stdin: {
      contents: "import { AttentionError } from 'sdpa'; console.log(AttentionError.is(1));",
      resolveDir: installed.folder,
    },
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
  });
  assert.ok(outputFiles[0].contents.length < 5000, `${outputFiles[0].contents.length} bytes`);
});

test('Vite builds it, and the page computes in Chromium under a strict policy', { skip: noBrowser() }, async (t) => {
  const site = join(installed.folder, 'site');
  mkdirSync(site, { recursive: true });
  cpSync(join(consumer, 'page.js'), join(site, 'page.js'));
  writeFileSync(
    join(site, 'index.html'),
    '<!doctype html><title>page</title><script type="module" src="./page.js"></script>',
  );
  const built = join(installed.folder, 'built');
  run(
    tool('vite'),
    ['build', site, '--outDir', built, '--base', './', '--logLevel', 'warn', '--configLoader', 'native'],
    installed.folder,
  );
  assert.ok(
    readdirSync(join(built, 'assets')).some((name) => name.endsWith('.wasm')),
    'the ?url import is an asset',
  );

  const { chromium } = await import('playwright-core');
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: quietFlags,
  });
  t.after(() => browser.close());
  /** @param {Record<string, string>} headers */
  const visit = async (headers) => {
    const served = await serve(built, { headers });
    const page = await browser.newPage();
    /** @type {string[]} */
    const complaints = [];
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on(
      'console',
      (message) =>
        message.type() === 'error' && !/favicon/.test(message.location().url) && complaints.push(message.text()),
    );
    await page.goto(`${served.url}/index.html`);
    const handle = await page.waitForFunction(() => /** @type {any} */ (globalThis).report, null, { timeout: 30_000 });
    const report = await handle.jsonValue();
    await page.close();
    await served.close();
    return { report, complaints };
  };

  const allowed = await visit({
    'content-security-policy': "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'",
  });
  assert.deepEqual(allowed.complaints, []);
  assert.equal(allowed.report.error, undefined);
  right(allowed.report.out);
  right(allowed.report.slim);
  t.diagnostic(`Chromium ${browser.version()} took the ${allowed.report.variant} build`);

  const forbidden = await visit({ 'content-security-policy': "default-src 'self'; script-src 'self'" });
  assert.equal(forbidden.report.code, 'load-failed');
  assert.match(forbidden.report.error, /add 'wasm-unsafe-eval' to its script-src/);
});

/** @returns {string | false} */
function noBrowser() {
  return process.env.CHROMIUM ? false : 'CHROMIUM is not set to a browser';
}
