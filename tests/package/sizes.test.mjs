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

/** Bytes of a bundle in which everything of an entry is used. @param {string} entry */
async function bundled(entry) {
  const { outputFiles } = await build({
    stdin: { contents: `export * from '${entry}';`, resolveDir: installed.folder },
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    platform: 'browser',
  });
  return gzipped(outputFiles[0].contents);
}

/** Most KB. The slim entry has everything but the binaries: it is there for the choice of one of them, and for hosts that want a file. */
const limits = { sdpa: 200, 'sdpa/slim': 90, 'sdpa/io': 15, 'sdpa/torch': 6, 'sdpa/jax': 6, 'sdpa/onnx': 16 };

for (const [entry, most] of Object.entries(limits)) {
  test(`${entry} has at most ${most} KB`, async (t) => {
    const size = await bundled(entry);
    t.diagnostic(`${(size / 1024).toFixed(1)} KB`);
    assert.ok(size <= most * 1024, `${size} bytes`);
  });
}

for (const variant of ['simd', 'relaxed', 'scalar']) {
  test(`the ${variant} binary has at most 80 KB`, (t) => {
    const size = gzipped(readFileSync(join(installed.folder, `node_modules/sdpa/dist/wasm/sdpa.${variant}.wasm`)));
    t.diagnostic(`${(size / 1024).toFixed(1)} KB`);
    assert.ok(size <= 80 * 1024, `${size} bytes`);
  });
}

test('the slim entry with one binary is smaller than the default entry', async () => {
  const wasm = gzipped(readFileSync(join(installed.folder, 'node_modules/sdpa/dist/wasm/sdpa.relaxed.wasm')));
  assert.ok((await bundled('sdpa/slim')) + wasm < (await bundled('sdpa')));
});
