// Runs the module of smoke.cpp: node smoke-run.mjs <glue.mjs> <module.wasm>. Exit status 0 when its result is right.

import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { setFlagsFromString } from 'node:v8';

const [, , glue, wasm] = process.argv;
if (process.versions.node.startsWith('20.')) setFlagsFromString('--experimental-wasm-relaxed-simd');
const { default: createModule } = await import(pathToFileURL(glue).href);
const compiled = new WebAssembly.Module(readFileSync(wasm));
const instance = await createModule({
  /** @type {(imports: WebAssembly.Imports, done: (instance: WebAssembly.Instance) => void) => object} */
  instantiateWasm(imports, done) {
    const made = new WebAssembly.Instance(compiled, imports);
    done(made);
    return made.exports;
  },
});
const result = instance.madd(2, 3, 10);
if (result !== 16) {
  console.error(`2 * 3 + 10 gave ${result}, expected 16`);
  process.exitCode = 1;
}
