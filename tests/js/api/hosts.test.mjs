// Engines and hosts as they come: no side effect of the import, no SIMD, no eval, no WebAssembly, hosts that refuse things.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jsonOf, runModule } from '../helpers/child.mjs';
import { randomSource, referenceAttention, largestError } from '../helpers/reference.mjs';
import { VARIANT } from '../helpers/sdpa.mjs';

const x = randomSource(6).tensor(2, 2, 11, 6);
const want = referenceAttention(x, x, x, { causal: true }).out;
const input = `const x = { data: new Float32Array(${JSON.stringify([...x.data])}), shape: [2, 2, 11, 6] };`;

/** @param {number[]} got */
const right = (got) => assert.ok(largestError(got, want) <= 2e-6);

test('importing touches no global, prints nothing, adds no listener and keeps nothing alive', () => {
  for (const entry of ['sdpa', 'sdpa/slim', 'sdpa/slim/parts', 'sdpa/onnx', 'sdpa/io']) {
    const got = jsonOf(`
      const trapped = ['window', 'document', 'self', 'location', 'navigator', 'Worker', 'fetch', 'importScripts', 'process'];
      const { process, console } = globalThis;
      const names = process.eventNames().map((name) => [String(name), process.listenerCount(name)]);
      const touched = [];
      for (const name of trapped) {
        Object.defineProperty(globalThis, name, { configurable: true, get() { touched.push(name); throw new Error(name); } });
      }
      const compiled = WebAssembly.compile;
      for (const name of ['compile', 'instantiate', 'validate', 'Module', 'Instance', 'Memory']) {
        WebAssembly[name] = () => { touched.push(name); throw new Error(name); };
      }
      const before = Reflect.ownKeys(globalThis).map(String);
      const exports = Object.keys(await import('${entry}'));
      const added = Reflect.ownKeys(globalThis).map(String).filter((name) => !before.includes(name));
      await new Promise((done) => setTimeout(done, 20));
      const after = process.eventNames().map((name) => [String(name), process.listenerCount(name)]);
      console.log(JSON.stringify({ touched, added, exports, same: JSON.stringify(names) === JSON.stringify(after),
        resources: process.getActiveResourcesInfo().filter((kind) => !/TTY|Pipe/.test(kind)) }));`);
    assert.deepEqual(got.touched, [], entry);
    assert.deepEqual(got.added, [], entry);
    assert.ok(got.same, entry);
    assert.deepEqual(got.resources, [], entry);
    assert.ok(got.exports.length > 0, entry);
  }
});

test('twenty instances add no process listener, and errors of the user stay short', () => {
  const got = jsonOf(`
    import { load } from 'sdpa';
    const count = () => process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0);
    const before = count();
    for (let i = 0; i < 20; i++) await load({ variant: '${VARIANT}' });
    console.log(JSON.stringify(count() - before));`);
  assert.equal(got, 0);
  const { status, stderr } = runModule(`
    import { load } from 'sdpa';
    await load({ variant: '${VARIANT}' });
    Promise.reject(new Error('mine'));`);
  assert.equal(status, 1);
  assert.match(stderr, /Error: mine/);
  assert.ok(stderr.length < 2000, stderr.slice(0, 500));
});

test('a loaded instance does not keep the process alive', () => {
  const { status } = runModule(`import { load } from 'sdpa'; globalThis.kept = await load({ variant: '${VARIANT}' });`);
  assert.equal(status, 0);
});

test('without SIMD the scalar build is taken and says so', () => {
  const got = jsonOf(
    `import { features, load } from 'sdpa'; ${input}
     const sdpa = await load();
     let forced; try { await load({ variant: 'simd' }); } catch (error) { forced = error.code; }
     console.log(JSON.stringify({ simd: features().simd, variant: sdpa.variant, forced,
       out: [...sdpa.attention(x, x, x, { causal: true }).out.data] }));`,
    { flags: ['--no-enable-sse4-1'] },
  );
  assert.equal(got.simd, false);
  assert.equal(got.variant, 'scalar');
  assert.equal(got.forced, 'unsupported');
  right(got.out);
});

test('code generation from strings is not needed', () => {
  const got = jsonOf(
    `import { load } from 'sdpa'; ${input}
     const sdpa = await load({ variant: '${VARIANT}' });
     let refused = false; try { new Function(''); } catch { refused = true; }
     console.log(JSON.stringify({ refused, out: [...sdpa.attention(x, x, x, { causal: true }).out.data] }));`,
    { flags: ['--disallow-code-generation-from-strings'] },
  );
  assert.ok(got.refused);
  right(got.out);
});

test('without WebAssembly the import works and load says what is missing', () => {
  const got = jsonOf(`
    delete globalThis.WebAssembly;
    const { features, load } = await import('sdpa');
    let error; try { await load(); } catch (caught) { error = caught; }
    console.log(JSON.stringify({ features: features(), code: error.code, message: error.message }));`);
  assert.equal(got.features.webAssembly, false);
  assert.equal(got.features.simd, false);
  assert.equal(got.code, 'unsupported');
  assert.match(got.message, /no WebAssembly/);
});

test('without SharedArrayBuffer nothing changes', () => {
  const got = jsonOf(`
    delete globalThis.SharedArrayBuffer;
    const { load } = await import('sdpa'); ${input}
    const sdpa = await load({ variant: '${VARIANT}' });
    console.log(JSON.stringify([...sdpa.attention(x, x, x, { causal: true }).out.data]));`);
  right(got);
});

test('which globals exist does not matter: a window in Node, or a throwing one', () => {
  for (const setUp of [
    'globalThis.window = globalThis; globalThis.document = {};',
    // As in jsdom.
    'globalThis.window = globalThis; delete globalThis.TextDecoder; delete globalThis.TextEncoder;',
    'globalThis.self = globalThis; globalThis.WorkerGlobalScope = function () {};',
    "for (const name of ['window', 'document', 'self', 'WorkerGlobalScope']) Object.defineProperty(globalThis, name, { get() { throw new Error(name); } });",
  ]) {
    const got = jsonOf(`${setUp}
      const { load } = await import('sdpa'); ${input}
      const sdpa = await load({ variant: '${VARIANT}' });
      console.log(JSON.stringify([...sdpa.attention(x, x, x, { causal: true }).out.data]));`);
    right(got);
  }
});

test('a host that compiles no bytes gets advice, and takes a ready module', () => {
  const got = jsonOf(`
    import { readFile } from 'node:fs/promises';
    import { fileURLToPath } from 'node:url';
    import { load } from 'sdpa'; ${input}
    const module = await WebAssembly.compile(await readFile(fileURLToPath(import.meta.resolve('sdpa/wasm/sdpa.${VARIANT}.wasm'))));
    const refuse = async () => { throw new WebAssembly.CompileError('Wasm code generation disallowed by embedder'); };
    WebAssembly.compile = refuse;
    const { instantiate } = WebAssembly;
    WebAssembly.instantiate = (what, imports) => (what instanceof WebAssembly.Module ? instantiate(what, imports) : refuse());
    let error; try { await load({ variant: '${VARIANT}' }); } catch (caught) { error = caught; }
    const sdpa = await load({ wasm: module });
    console.log(JSON.stringify({ code: error.code, message: error.message, out: [...sdpa.attention(x, x, x, { causal: true }).out.data] }));`);
  assert.equal(got.code, 'load-failed');
  assert.match(got.message, /pass a WebAssembly\.Module in the option 'wasm'/);
  right(got.out);
});

test('a page whose policy forbids WebAssembly is told which directive is missing', () => {
  // Words of V8, of Firefox and of Safari.
  for (const reason of [
    "WebAssembly.compile(): Refused to compile or instantiate WebAssembly module because 'unsafe-eval' is not an allowed source of script in the following Content Security Policy directive: ...",
    'call to WebAssembly.compile() blocked by CSP',
    "Refused to create a WebAssembly object because 'unsafe-eval' or 'wasm-unsafe-eval' is not an allowed source of script",
  ]) {
    const got = jsonOf(`
      import { load } from 'sdpa';
      WebAssembly.compile = async () => { throw new WebAssembly.CompileError(${JSON.stringify(reason)}); };
      let error; try { await load(); } catch (caught) { error = caught; }
      console.log(JSON.stringify({ code: error.code, message: error.message }));`);
    assert.equal(got.code, 'load-failed');
    assert.match(got.message, /Content-Security-Policy forbids WebAssembly: add 'wasm-unsafe-eval' to its script-src/);
  }
});

test('a build that fails to compile, or computes wrongly, makes room for the next one', () => {
  const compile = `
    import { load } from 'sdpa'; ${input}
    const { compile, instantiate } = WebAssembly;
    let calls = 0;`;
  const report = `
    const sdpa = await load();
    let forced; try { calls = 0; await load({ variant: 'simd' }); } catch (error) { forced = error; }
    console.log(JSON.stringify({ variant: sdpa.variant, code: forced.code, message: forced.message, cause: String(forced.cause),
      out: [...sdpa.attention(x, x, x, { causal: true }).out.data] }));`;
  const noCompile = jsonOf(
    `${compile}
     WebAssembly.compile = (bytes) => (calls++ === 0 ? Promise.reject(new WebAssembly.CompileError('no luck')) : compile(bytes));
     ${report}`,
    { relaxed: false },
  );
  assert.equal(noCompile.code, 'load-failed');
  assert.match(noCompile.message, /does not compile in this engine: no luck/);
  assert.match(noCompile.cause, /no luck/);
  right(noCompile.out);

  // A build and the self-test's own exponential that disagree, for the first build alone.
  const wrong = jsonOf(
    `${compile}
     const { exp } = Math;
     WebAssembly.compile = (bytes) => {
       Math.exp = calls++ === 0 ? (value) => exp(1.001 * value) : exp;
       return compile(bytes);
     };
     ${report}`,
    { relaxed: false },
  );
  assert.equal(wrong.code, 'load-failed');
  assert.match(wrong.message, /the simd build computes wrongly in this engine: error .* in its self-test/);
  assert.equal(wrong.variant, noCompile.variant);
  right(wrong.out);
});

test('from nothing to the first result, in milliseconds', (t) => {
  const got = jsonOf(`
    const start = performance.now();
    const { load } = await import('sdpa');
    const imported = performance.now();
    ${input}
    const sdpa = await load({ variant: '${VARIANT}' });
    sdpa.attention(x, x, x);
    const end = performance.now();
    console.log(JSON.stringify({ import: imported - start, load: end - imported }));`);
  t.diagnostic(`import ${got.import.toFixed(1)} ms, load to first result ${got.load.toFixed(1)} ms`);
  assert.ok(got.load > 0);
});
