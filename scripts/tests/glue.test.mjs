import assert from 'node:assert/strict';
import { test } from 'node:test';
import { prepareGlue } from '../build/glue.mjs';

const types = ['bigint', 'bool', 'emval', 'memory_view', 'std_wstring', 'float'];

/** A glue with all that is edited, and nothing else but what a test adds. @param {string} [more] */
const glue = (more = '') =>
  [
    'async function Module(moduleArg={}){var Module=moduleArg;',
    'var ENVIRONMENT_IS_WEB=!!globalThis.window;',
    'var ENVIRONMENT_IS_WORKER=!!globalThis.WorkerGlobalScope;',
    'var ENVIRONMENT_IS_NODE=globalThis.process?.versions?.node&&globalThis.process?.type!="renderer";',
    'var _scriptName=import.meta.url;',
    'var readAsync;if(ENVIRONMENT_IS_WEB||ENVIRONMENT_IS_WORKER){readAsync=url=>fetch(url)}',
    'function findWasmBinary(){return new URL("sdpa.wasm",import.meta.url).href}',
    'function helper(){return "of wide strings"}',
    'var UTF16Decoder=globalThis.TextDecoder?new TextDecoder("utf-16le"):undefined;',
    ...types.map(
      (type) => `function __embind_register_${type}(){${type === 'std_wstring' ? 'helper();' : ''}return "${type}"}`,
    ),
    'function text(){var stdStringIsUTF8=true;return stdStringIsUTF8?"utf-8":"ascii"}',
    'async function createWasm(){var instantiateWasm=Module["instantiateWasm"];',
    'if(instantiateWasm){return new Promise(resolve=>instantiateWasm(wasmImports,resolve))}return readAsync(findWasmBinary())}',
    `var wasmImports={${types.map((type, i) => `${'abcdef'[i]}:__embind_register_${type},`).join('')}g:text};`,
    `${more}Module["made"]=await createWasm();\n;return Module}export default Module;\n`,
  ].join('');

/** @param {string} text */
const moduleOf = async (text) => (await import(`data:text/javascript,${encodeURIComponent(text)}`)).default;

test('the glue keeps what it is used for', async () => {
  const createModule = await moduleOf(await prepareGlue(glue()));
  const { made } = await createModule({
    instantiateWasm: (/** @type {any} */ imports, /** @type {(value: any) => void} */ done) => done(imports),
  });
  assert.equal(made.f(), 'float');
  assert.equal(made.g(), 'ascii');
  for (const name of 'abcde') assert.equal(made[name](), undefined);
});

test('what nothing refers to is left out, and what that alone referred to', async () => {
  const text = await prepareGlue(glue());
  for (const word of [
    'fetch',
    'import.meta',
    'sdpa.wasm',
    'wide strings',
    'utf-16le',
    'utf-8',
    '__embind_register_bigint',
    'globalThis',
  ]) {
    assert.ok(!text.includes(word), `${word} is in ${text}`);
  }
});

test('a glue that is not as expected is refused by what it lacks or has', async () => {
  await assert.rejects(prepareGlue('function Module(){}'), /not one function: its maker has changed/);
  await assert.rejects(
    prepareGlue(glue().replace('c:__embind_register_emval,', '')),
    /does not hold :__embind_register_emval, exactly once/,
  );
  await assert.rejects(prepareGlue(glue('Module.x=()=>fetch("y");')), /the glue holds fetch\(/);
  await assert.rejects(prepareGlue(glue('Module.x=new Function("y");')), /the glue holds new Function/);
});
