// What the packed package weighs where it is used: entries bundled and minified as pages have them, binaries, all gzipped.

import assert from 'node:assert/strict';
import { build } from 'esbuild';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { installPackage } from './install.mjs';

/** @type {ReturnType<typeof installPackage>} */
let installed;
before(() => {
  installed = installPackage();
});
after(() => installed?.remove());

/** @param {Uint8Array} bytes */
const gzipped = (bytes) => gzipSync(bytes, { level: 9 }).length;

/** Bytes of a bundle of a module. @param {string} contents */
async function bundled(contents) {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: installed.folder },
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    platform: 'browser',
  });
  return gzipped(outputFiles[0].contents);
}

/** Bytes of a bundle in which everything of an entry is used. @param {string} name */
const entry = (name) => bundled(`export * from '${name}';`);

/** Most KB. */
const limits = { sdpa: 200, 'sdpa/slim': 40, 'sdpa/io': 15, 'sdpa/torch': 6, 'sdpa/jax': 6, 'sdpa/onnx': 16 };

for (const [name, most] of Object.entries(limits)) {
  test(`${name} has at most ${most} KB`, async (t) => {
    const size = await entry(name);
    t.diagnostic(`${(size / 1024).toFixed(1)} KB`);
    assert.ok(size <= most * 1024, `${size} bytes`);
  });
}

test('so has what require() of sdpa/slim takes', async (t) => {
  const size = await bundled("console.log(require('sdpa/slim'));");
  t.diagnostic(`${(size / 1024).toFixed(1)} KB`);
  assert.ok(size <= limits['sdpa/slim'] * 1024, `${size} bytes`);
});

/** Most KB that a part adds to the slim entry where it is the only one. */
const parts = { caches: 15, gradients: 8, layers: 25, linear: 8, weights: 8, workers: 18 };

test('a part is taken into a bundle where it is imported, and no other', async (t) => {
  const alone = await entry('sdpa/slim');
  for (const [name, most] of Object.entries(parts)) {
    const added = (await bundled(`export * from 'sdpa/slim'; export { ${name} } from 'sdpa/slim/parts';`)) - alone;
    t.diagnostic(`${name}: ${(added / 1024).toFixed(1)} KB`);
    assert.ok(added > 100 && added <= most * 1024, `${name}: ${added} bytes`);
  }
});

for (const variant of ['simd', 'relaxed', 'scalar']) {
  test(`the ${variant} binary has at most 80 KB`, (t) => {
    const size = gzipped(readFileSync(join(installed.folder, `node_modules/sdpa/dist/wasm/sdpa.${variant}.wasm`)));
    t.diagnostic(`${(size / 1024).toFixed(1)} KB`);
    assert.ok(size <= 80 * 1024, `${size} bytes`);
  });
}

test('the slim entry with all parts and one binary is smaller than the default entry', async () => {
  const wasm = gzipped(readFileSync(join(installed.folder, 'node_modules/sdpa/dist/wasm/sdpa.relaxed.wasm')));
  const all = await bundled("export * from 'sdpa/slim'; export * from 'sdpa/slim/parts';");
  assert.ok(all + wasm < (await entry('sdpa')));
});
