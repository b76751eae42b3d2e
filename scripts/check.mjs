/**
 * Format, lint, types, and the arrows between the folders.
 *
 *   npm run check                    everything
 *   npm run check -- --only types    some parts
 */

import { existsSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { bootstrap } from './bootstrap.mjs';
import { isMain, run, runMain, which } from './lib/exec.mjs';
import { runNodeTests } from './lib/node-tests.mjs';
import { NO_CASES, SkipPart } from './lib/parts.mjs';
import { partsCommand } from './lib/parts-command.mjs';
import { BUILD, logFile, ROOT } from './lib/project.mjs';

const CPP_FOLDERS = ['src', 'tests', 'bench'];

/** @returns {string[]} our C++ files, relative */
function cppFiles() {
  return CPP_FOLDERS.filter((folder) => existsSync(join(ROOT, folder)))
    .flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
    )
    .concat(readdirSync(join(ROOT, 'scripts/setup')).map((name) => join('scripts/setup', name)))
    .filter((name) => /\.(cpp|hpp|cc|h)$/.test(name) && !name.includes('node_modules'))
    .sort();
}

/**
 * A program of an npm package, found through its package.json so that no shell script of node_modules/.bin is needed.
 *
 * @param {string} name of the package
 * @param {string} [program]
 */
function npmProgram(name, program = name) {
  const require = createRequire(join(ROOT, 'package.json'));
  let folder = dirname(require.resolve(name));
  while (relative(ROOT, folder).split('/').slice(-1)[0] !== name) folder = dirname(folder);
  const { bin } = require(join(folder, 'package.json'));
  return join(folder, typeof bin === 'string' ? bin : bin[program]);
}

/**
 * @param {import('./lib/log.mjs').Log} log
 * @returns {import('./lib/parts.mjs').Part[]}
 */
function checkParts(log) {
  /** @type {import('./setup.mjs').Toolchain} */
  let toolchain;
  /** @param {string} name @param {string[]} command */
  const node = async (name, command) => {
    const env = { ...process.env, FORCE_COLOR: '0' };
    await run([process.execPath, ...command], { cwd: ROOT, env, log: logFile(`check-${name}`) });
  };
  return [
    {
      name: 'setup',
      title: 'npm packages, toolchain and formatter',
      run: async () => {
        toolchain = await bootstrap({ log, extraParts: ['clang-format'] });
        return NO_CASES;
      },
    },
    {
      name: 'format',
      title: 'prettier',
      after: ['setup'],
      run: () => node('format', [npmProgram('prettier'), '--check', '--log-level', 'warn', ...cache('prettier'), '.']),
    },
    {
      name: 'format-cpp',
      title: 'clang-format',
      after: ['setup'],
      run: async () => {
        const clangFormat = which('clang-format', toolchain.env.PATH);
        if (!clangFormat) throw new SkipPart('no clang-format: install it (Debian: apt-get install clang-format)');
        await run([clangFormat, '--dry-run', '-Werror', ...cppFiles()], {
          cwd: ROOT,
          env: toolchain.env,
          log: logFile('check-format-cpp'),
        });
      },
    },
    {
      name: 'lint',
      title: 'eslint',
      after: ['setup'],
      run: () => node('lint', [npmProgram('eslint'), '--max-warnings', '0', ...cache('eslint'), '.']),
    },
    {
      name: 'types',
      title: 'tsc over the JavaScript files',
      after: ['setup'],
      run: () =>
        node('types', [npmProgram('typescript', 'tsc'), '-p', 'tsconfig.json', '--noEmit', '--pretty', 'false']),
    },
    {
      name: 'architecture',
      title: 'the arrows between the folders',
      after: ['setup'],
      run: () => runNodeTests({ name: 'check-architecture', folder: join(ROOT, 'tests/architecture') }),
    },
  ];
}

/**
 * Both tools skip what they have seen, by content.
 *
 * @param {string} tool
 */
function cache(tool) {
  return ['--cache', '--cache-strategy', 'content', '--cache-location', join(BUILD, `${tool}.cache`)];
}

if (isMain(import.meta.url))
  runMain(() => partsCommand(process.argv.slice(2), { name: 'npm run check', parts: checkParts }));
