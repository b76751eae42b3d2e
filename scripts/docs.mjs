/** npm run docs: the API reference, out of the package's declarations, and the guides of web/docs, as pages in build/docs. */

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bootstrap, whileLocked } from './bootstrap.mjs';
import { ensureTools } from './hosts/tools.mjs';
import { isMain, run, runMain } from './lib/exec.mjs';
import { createLog } from './lib/log.mjs';
import { BUILD, logFile, ROOT } from './lib/project.mjs';

const GUIDES = join(ROOT, 'web/docs');

const DIST = join(ROOT, 'dist');

/** What the package exports: the names that are imported, where the declarations are, and a line about each. */
const ENTRIES = {
  sdpa: { file: 'index', text: 'Everything, with all builds inside.' },
  'sdpa/slim': { file: 'slim', text: 'Attention itself, without a binary inside.' },
  'sdpa/slim/parts': { file: 'slim-parts', text: 'What the slim entry can be given.' },
  'sdpa/torch': { file: 'compat/torch', text: "PyTorch's name and rules." },
  'sdpa/jax': { file: 'compat/jax', text: "JAX's name and rules." },
  'sdpa/onnx': { file: 'compat/onnx', text: 'Operators of ONNX and onnxruntime.' },
  'sdpa/io': { file: 'io/index', text: 'Bytes of `.npy`, `.npz` and `.safetensors` files to tensors and back.' },
};

/** What has to have a text: everything but single properties, many of which their name and type explain. */
const DESCRIBED = ['Namespace', 'Variable', 'Function', 'Class', 'Interface', 'Method', 'Accessor', 'TypeAlias'];

/**
 * Writes the pages. dist/ has to be there.
 *
 * @param {object} [options]
 * @param {import('./lib/log.mjs').Log} [options.log]
 * @returns {Promise<{ pages: string, json: string }>} the pages' folder, and a file with the same as data
 * @throws {import('./lib/exec.mjs').CommandError} where TypeDoc warns of anything
 */
export async function writeDocs({ log = createLog() } = {}) {
  const tools = await ensureTools('docs', log);
  const [pages, json, settings] = ['docs', 'docs.json', 'docs-settings'].map((name) => join(BUILD, name));
  await whileLocked('docs', log, async () => {
    mkdirSync(settings, { recursive: true });
    const { entryPoints, makers } = writeEntries(settings);
    const tsconfig = join(settings, 'tsconfig.json');
    const compilerOptions = {
      module: 'NodeNext',
      moduleResolution: 'NodeNext',
      target: 'ES2022',
      lib: ['ES2022', 'ESNext.Disposable'],
      types: [],
      strict: true,
      noEmit: true,
    };
    writeFileSync(tsconfig, JSON.stringify({ compilerOptions, files: entryPoints }));
    const options = join(settings, 'typedoc.json');
    writeFileSync(
      options,
      JSON.stringify({
        ...typedocOptions(tools, makers),
        ...writeGuides(settings),
        entryPoints,
        tsconfig,
        out: pages,
        json,
      }),
    );
    log('writing build/docs');
    await run([process.execPath, join(tools, 'node_modules/typedoc/bin/typedoc'), '--options', options], {
      cwd: ROOT,
      log: logFile('docs'),
    });
  });
  return { pages, json };
}

/**
 * One file for each entry, under the name that is imported, and one for the functions behind `masks`.
 * @param {string} folder
 * @returns {{ entryPoints: string[], makers: string[] }} the files, and the names of those functions
 */
function writeEntries(folder) {
  /** @param {string} name @param {string} text @param {string[]} lines */
  const write = (name, text, lines) => {
    const file = join(folder, `${name.replaceAll('/', '-')}.d.ts`);
    writeFileSync(file, `/**\n * ${text}\n * @module ${name}\n */\n${lines.join('\n')}\n`);
    return file;
  };
  const text = readFileSync(join(DIST, 'masks/index.d.ts'), 'utf8');
  const taken = [...text.matchAll(/^import \{ (.*) \} from '\.(.*)';$/gm)];
  const entryPoints = [
    ...Object.entries(ENTRIES).map(([name, entry]) =>
      write(name, entry.text, [`export * from '${join(DIST, entry.file)}.js';`]),
    ),
    write(
      'masks',
      'The functions of `masks`, which `sdpa` and `sdpa/slim` export and each instance has.',
      taken.map(([, names, file]) => `export { ${names} } from '${join(DIST, 'masks', file)}';`),
    ),
  ];
  return { entryPoints, makers: taken.flatMap(([, names]) => names.split(', ')) };
}

/**
 * Copies of the guides that say their titles where TypeDoc looks for them, in the order in which the first page has them.
 * @param {string} folder
 * @returns {{ readme: string, projectDocuments: string[] }} the first page, and the others
 */
function writeGuides(folder) {
  const place = join(folder, 'guides');
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place);
  const names = readdirSync(GUIDES).filter((name) => name.endsWith('.md'));
  const [readme, ...others] = ['README.md', ...names.filter((name) => name !== 'README.md')].map((name) => {
    const text = readFileSync(join(GUIDES, name), 'utf8');
    const [heading, title] = /^# (.*)\n/.exec(text) ?? ['', name];
    const file = join(place, name);
    // The first page's title is the project's.
    writeFileSync(
      file,
      name === 'README.md' ? text.slice(heading.length) : `---\ntitle: ${JSON.stringify(title)}\n---\n\n${text}`,
    );
    return { file, at: name };
  });
  const index = readFileSync(join(GUIDES, 'README.md'), 'utf8');
  others.sort((a, b) => index.indexOf(`(${a.at})`) - index.indexOf(`(${b.at})`));
  return { readme: readme.file, projectDocuments: others.map(({ file }) => file) };
}

/** @param {string} tools folder of TypeDoc @param {string[]} makers of masks */
function typedocOptions(tools, makers) {
  return {
    plugin: [join(tools, 'node_modules/typedoc-plugin-missing-exports/index.js')],
    name: 'sdpa',
    // Types that exported ones are made of.
    internalModule: 'other types',
    placeInternalsInOwningModule: false,
    excludeInternal: true,
    excludeExternals: true,
    disableSources: true,
    sort: ['source-order'],
    validation: {
      notExported: true,
      invalidLink: true,
      invalidPath: true,
      notDocumented: true,
      unusedMergeModuleWith: true,
    },
    requiredToBeDocumented: DESCRIBED,
    // Each leads to a function, which has the text.
    intentionallyNotDocumented: makers.map((name) => `sdpa.Sdpa.masks.__type.${name}`),
    treatWarningsAsErrors: true,
    treatValidationWarningsAsErrors: true,
    githubPages: false,
  };
}

if (isMain(import.meta.url)) {
  runMain(async () => {
    const log = createLog();
    const { env } = await bootstrap({ log });
    const { build } = await import('./build.mjs');
    await build({ log, env });
    const { pages } = await writeDocs({ log });
    process.stdout.write(`${join(pages, 'index.html')}\n`);
  });
}
