/** dist/: the package's files, and build/demo: the page with the package beside it. */

import { build as bundle } from 'esbuild';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { run } from '../lib/exec.mjs';
import { BUILD, logFile, ROOT } from '../lib/project.mjs';
import { bundleCommonJs, NO_ADDRESS } from './common-js.mjs';
import { finishDeclarations } from './declarations.mjs';
import { listFiles, OutputFolder } from './files.mjs';
import { prepareGlue } from './glue.mjs';
import { packBuilds } from './pack.mjs';
import { VARIANTS } from './wasm.mjs';

const WEB = join(ROOT, 'web');
export const DIST = join(ROOT, 'dist');
const DECLARATIONS = join(BUILD, 'declarations');

/** Most bytes that a build may have, gzipped: one wasm file, the default entry with everything in it, the slim entry. */
const LIMITS = { wasm: 80 * 1024, index: 200 * 1024, slim: 40 * 1024 };

/**
 * What the sources import from web/generated/.
 * @param {import('./wasm.mjs').WasmBuilds} builds
 */
export async function writeGenerated(builds) {
  const folder = new OutputFolder(join(WEB, 'generated'));
  folder.write('glue.js', `/* eslint-disable */\n${await prepareGlue(builds.glue)}`);
  folder.write('embedded.js', `export const embedded = ${JSON.stringify(packBuilds(builds))};\n`);
  // One script that needs no other file, for pages and hosts where a worker cannot load one.
  const { outputFiles } = await bundle({
    entryPoints: [join(WEB, 'pool/worker.js')],
    bundle: true,
    write: false,
    minify: true,
    format: 'iife',
    platform: 'neutral',
    target: 'es2022',
    legalComments: 'none',
    define: NO_ADDRESS,
  });
  folder.write('worker-text.js', `export const workerText = ${JSON.stringify(outputFiles[0].text)};\n`);
}

/**
 * Writes dist/.
 * @param {import('./wasm.mjs').WasmBuilds} builds
 */
export async function writePackage({ wasm }) {
  const dist = new OutputFolder(DIST);
  const sources = listFiles(WEB).filter((name) => name.endsWith('.js') && !/^(demo|examples)\//.test(name));
  for (const name of sources) dist.write(name, readFileSync(join(WEB, name)));
  for (const variant of VARIANTS) dist.write(`wasm/sdpa.${variant}.wasm`, wasm[variant]);
  if (existsSync(join(WEB, 'cli/cli.js'))) dist.write('cli.js', "#!/usr/bin/env node\nimport './cli/cli.js';\n", 0o755);
  for (const [name, contents] of Object.entries(await bundleCommonJs(WEB))) dist.write(name, contents);
  await writeDeclarations(dist);
  dist.prune();
}

/**
 * Declarations out of the sources' JSDoc, and the same for CommonJS, where each file names its neighbours by `.cjs`.
 * @param {OutputFolder} dist
 */
async function writeDeclarations(dist) {
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  await run([process.execPath, tsc, '-p', join(ROOT, 'tsconfig.declarations.json'), '--outDir', DECLARATIONS], {
    cwd: ROOT,
    log: logFile('declarations'),
  });
  for (const name of listFiles(DECLARATIONS)) {
    const source = join(WEB, name.replace(/\.d\.ts$/, '.js'));
    if (!name.endsWith('.d.ts') || !existsSync(source) || name.startsWith('cli/') || name.startsWith('demo/')) continue;
    // TypeScript before 5.7 has no type parameter there.
    const written = readFileSync(join(DECLARATIONS, name), 'utf8').replace(/\b(\w+Array)<ArrayBuffer(Like)?>/g, '$1');
    const text = finishDeclarations(written, readFileSync(source, 'utf8'));
    dist.write(name, text);
    dist.write(name.replace(/\.d\.ts$/, '.d.cts'), text.replace(/(['"]\.{1,2}\/[^'"\n]*)\.js(['"])/g, '$1.cjs$2'));
  }
}

/** Files from elsewhere that the page takes along, by their place in build/demo: of npm packages, and the race's task. */
const TAKEN = {
  'bench/needle.js': 'bench/alternatives/needle.mjs',
  'vendor/fflate/browser.js': 'node_modules/fflate/esm/browser.js',
  'vendor/fflate/LICENSE': 'node_modules/fflate/LICENSE',
  'vendor/uplot/uPlot.esm.js': 'node_modules/uplot/dist/uPlot.esm.js',
  'vendor/uplot/uPlot.min.css': 'node_modules/uplot/dist/uPlot.min.css',
  'vendor/uplot/LICENSE': 'node_modules/uplot/LICENSE',
};

/** build/demo: web/demo with the package's ESM files in sdpa/, and what it takes along. */
export function writeDemo() {
  if (!existsSync(join(WEB, 'demo'))) return false;
  const demo = new OutputFolder(join(BUILD, 'demo'));
  for (const name of listFiles(join(WEB, 'demo'))) demo.write(name, readFileSync(join(WEB, 'demo', name)));
  for (const name of listFiles(DIST)) {
    if (!/\.(js|wasm)$/.test(name) || /^cli[./]/.test(name)) continue;
    demo.write(join('sdpa', name), readFileSync(join(DIST, name)));
  }
  for (const [name, source] of Object.entries(TAKEN)) demo.write(name, readFileSync(join(ROOT, source)));
  demo.prune();
  return true;
}

/**
 * Sizes, and an error where one is above its limit.
 * @param {import('../lib/log.mjs').Log} log
 */
export async function checkSizes(log) {
  /** @param {number} bytes */
  const kilobytes = (bytes) => `${(bytes / 1024).toFixed(1)} KB`;
  /** @param {'index' | 'slim'} name */
  const entrySize = async (name) => {
    const { outputFiles } = await bundle({
      entryPoints: [join(DIST, `${name}.js`)],
      bundle: true,
      write: false,
      minify: true,
      format: 'esm',
      platform: 'browser',
    });
    const size = gzipSync(outputFiles[0].contents, { level: 9 }).length;
    if (size > LIMITS[name]) {
      throw new Error(`the entry ${name}.js has ${size} bytes gzipped; at most ${LIMITS[name]} are allowed`);
    }
    return kilobytes(size);
  };
  const binaries = VARIANTS.map((variant) => {
    const bytes = readFileSync(join(DIST, `wasm/sdpa.${variant}.wasm`));
    const size = gzipSync(bytes, { level: 9 }).length;
    if (size > LIMITS.wasm) {
      throw new Error(`the ${variant} build has ${size} bytes gzipped; at most ${LIMITS.wasm} are allowed`);
    }
    return `${variant} ${kilobytes(bytes.length)}, ${kilobytes(size)} gzipped`;
  });
  const [index, slim] = [await entrySize('index'), await entrySize('slim')];
  log(`sizes: default entry ${index} minified and gzipped, slim ${slim}; wasm ${binaries.join('; ')}`);
}
