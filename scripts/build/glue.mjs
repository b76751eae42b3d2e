/** Emscripten's glue without what our use of it never reaches. */

import { transform } from 'esbuild';

/** The border has numbers, and strings of ASCII that come out: what would register other types is not needed. */
const UNUSED_TYPES = ['bigint', 'bool', 'emval', 'memory_view', 'std_wstring'];

/** The function that the glue consists of. */
const HEAD = 'async function Module(moduleArg={}){';
const TAIL = ';return Module}export default Module;';

/**
 * It is always handed an instance, so it has no address of its own to find out (bundlers would follow it, and CommonJS has none), no
 * file to fetch and no environment to guess.
 */
const EDITS = [
  ['new URL("sdpa.wasm",import.meta.url).href', '""'],
  ['var _scriptName=import.meta.url;', ''],
  ['var ENVIRONMENT_IS_WEB=!!globalThis.window;', ''],
  ['var ENVIRONMENT_IS_WORKER=!!globalThis.WorkerGlobalScope;', ''],
  [
    'var ENVIRONMENT_IS_NODE=globalThis.process?.versions?.node&&globalThis.process?.type!="renderer";',
    '',
  ],
  ['if(instantiateWasm){return new Promise(', 'if(true){return new Promise('],
  ['var stdStringIsUTF8=true;', ''],
  ['var UTF16Decoder=globalThis.TextDecoder?new TextDecoder("utf-16le"):undefined;', ''],
  ...UNUSED_TYPES.map((type) => [`:__embind_register_${type},`, ':()=>{},']),
];

const DEFINE = {
  ENVIRONMENT_IS_WEB: 'false',
  ENVIRONMENT_IS_WORKER: 'false',
  ENVIRONMENT_IS_NODE: 'false',
  _scriptName: '""',
  stdStringIsUTF8: 'false',
};

/**
 * @param {string} glue as the linker wrote it
 * @returns {Promise<string>}
 */
export async function prepareGlue(glue) {
  let text = glue.trim();
  if (!text.startsWith(HEAD) || !text.endsWith(TAIL)) throw new Error('the glue is not one function: its maker has changed');
  text = text.slice(HEAD.length, -TAIL.length);
  for (const [from, to] of EDITS) {
    if (text.split(from).length !== 2) throw new Error(`the glue does not hold ${from} exactly once: its maker has changed`);
    text = text.replace(from, () => to);
  }
  // As a module of its own, so that what nothing refers to is left out. What is left out may have been the last to refer to more.
  for (let before = ''; text !== before;) {
    before = text;
    const { code } = await transform(text, {
      format: 'esm',
      target: 'es2022',
      treeShaking: true,
      minifySyntax: true,
      minifyWhitespace: true,
      define: DEFINE,
    });
    text = code.trim();
  }
  const prepared = `${HEAD}${text}return Module}export default Module;\n`;
  for (const word of ['import.meta', 'import(', 'require(', 'eval(', 'new Function', 'fetch(']) {
    if (prepared.includes(word)) throw new Error(`the glue holds ${word}`);
  }
  return prepared;
}
