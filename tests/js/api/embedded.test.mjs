// The builds that the default entry carries inside its JavaScript.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { jsonOf } from '../helpers/child.mjs';
import { loadVariant, VARIANT } from '../helpers/sdpa.mjs';

test('the build that is unpacked is the one in sdpa/wasm, byte for byte', async (t) => {
  /** @type {Uint8Array[]} */
  const compiled = [];
  const { compile } = WebAssembly;
  t.mock.method(WebAssembly, 'compile', (/** @type {Uint8Array<ArrayBuffer>} */ bytes) => {
    compiled.push(new Uint8Array(bytes));
    return compile(bytes);
  });
  await loadVariant();
  assert.equal(compiled.length, 1);
  const file = await readFile(fileURLToPath(import.meta.resolve(`sdpa/wasm/sdpa.${VARIANT}.wasm`)));
  assert.ok(file.equals(compiled[0]));
});

test('it unpacks without any module of Node', () => {
  const got = jsonOf(`
    process.getBuiltinModule = undefined;
    const { load } = await import('sdpa');
    const sdpa = await load({ variant: '${VARIANT}' });
    console.log(JSON.stringify(sdpa.variant));`);
  assert.equal(got, VARIANT);
});

test('where no module may be made of bytes, the error says what to do', () => {
  for (const [reason, advice] of [
    [
      "WebAssembly.Module(): Refused to compile or instantiate WebAssembly module because 'unsafe-eval' is not an allowed source",
      "add 'wasm-unsafe-eval'",
    ],
    ['call to WebAssembly.Module() blocked by CSP', "add 'wasm-unsafe-eval'"],
    [
      'WebAssembly.Module(): Wasm code generation disallowed by embedder',
      "pass a WebAssembly.Module in the option 'wasm'",
    ],
  ]) {
    const got = jsonOf(`
      import { load } from 'sdpa';
      WebAssembly.Module = function () { throw new WebAssembly.CompileError(${JSON.stringify(reason)}); };
      let error; try { await load({ variant: '${VARIANT}' }); } catch (caught) { error = caught; }
      console.log(JSON.stringify({ code: error.code, message: error.message, cause: error.cause.message }));`);
    assert.equal(got.code, 'load-failed');
    assert.ok(got.message.includes(advice), got.message);
    assert.equal(got.cause, reason);
  }
});
