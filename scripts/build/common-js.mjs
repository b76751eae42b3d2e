/** The package's CommonJS files: an entry is one file, and the slim entry's parts are another that takes its common modules from there. */

import { build } from 'esbuild';
import { join, relative, resolve } from 'node:path';

/** An ES module's address is nothing in a script and in CommonJS. */
export const NO_ADDRESS = { 'import.meta.url': 'undefined' };

/** Entries that are files of their own. */
const ENTRIES = ['index.js', 'compat/onnx.js', 'compat/torch.js', 'compat/jax.js', 'io/index.js'];

/**
 * @param {string} web folder of the sources
 * @returns {Promise<Record<string, Uint8Array | string>>} names, beside those of the sources, and what is in them
 */
export async function bundleCommonJs(web) {
  /** @type {import('esbuild').BuildOptions} */
  const settings = {
    bundle: true,
    outdir: web,
    outExtension: { '.js': '.cjs' },
    format: 'cjs',
    platform: 'neutral',
    packages: 'external',
    target: 'es2022',
    legalComments: 'inline',
    define: NO_ADDRESS,
    write: false,
  };
  const whole = await build({ ...settings, entryPoints: ENTRIES.map((name) => join(web, name)), outbase: web });
  const files = Object.fromEntries(
    (whole.outputFiles ?? []).map(({ path, contents }) => [relative(web, path), contents]),
  );
  return { ...files, ...(await bundleSlim(web, settings)) };
}

/**
 * @param {string} web
 * @param {import('esbuild').BuildOptions} settings
 * @returns {Promise<Record<string, string>>}
 */
async function bundleSlim(web, settings) {
  const alone = await build({ ...settings, entryPoints: [join(web, 'slim.js')], metafile: true });
  const inSlim = new Set(Object.keys(alone.metafile?.inputs ?? {}).map((path) => resolve(path)));
  /** @type {Set<string>} modules of the slim entry that parts import, from the sources' folder */
  const common = new Set();
  const parts = await build({
    ...settings,
    entryPoints: [join(web, 'slim-parts.js')],
    external: ['./slim.cjs'],
    plugins: [
      {
        name: 'from-slim',
        setup({ onLoad, onResolve }) {
          onResolve({ filter: /^\./, namespace: 'file' }, ({ path, resolveDir }) => {
            const module = resolve(resolveDir, path);
            return inSlim.has(module) ? { path: relative(web, module), namespace: 'slim' } : undefined;
          });
          onLoad({ filter: /./, namespace: 'slim' }, ({ path }) => {
            common.add(path);
            return { contents: `module.exports = require('./slim.cjs').modules['${path}'];` };
          });
        },
      },
    ],
  });
  const names = [...common].sort();
  const slim = await build({
    ...settings,
    stdin: {
      // No export of the entry, so that it has the same ones as the ES module.
      contents: `
        export * from './slim.js';
        ${names.map((name, i) => `import * as m${i} from './${name}';`).join('\n')}
        const value = { ${names.map((name, i) => `'${name}': m${i}`).join(', ')} };
        Object.defineProperty(module.exports, 'modules', { value });`,
      resolveDir: web,
      sourcefile: 'slim-with-modules.js',
    },
    logOverride: { 'commonjs-variable-in-esm': 'silent' },
  });
  return { 'slim.cjs': slim.outputFiles?.[0].text ?? '', 'slim-parts.cjs': parts.outputFiles?.[0].text ?? '' };
}
