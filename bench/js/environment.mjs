/** Where and with what a run took place, as the results file says it. */

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, realpathSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { version } from 'sdpa';
import { BUILD, ROOT } from '../../scripts/lib/project.mjs';
import { emscriptenVersion } from '../../scripts/setup/emscripten.mjs';

/**
 * @typedef {object} Environment
 * @property {string} date ISO 8601
 * @property {string} commit `-dirty` where files in git had been changed; 'unknown' outside of a git checkout
 * @property {string} command
 * @property {{ cpu: string, cores: number, memory: number, system: string }} machine memory in bytes
 * @property {{ sdpa: string, node: string, v8: string, emscripten: string }} versions
 */

/** @param {string[]} args @returns {string} */
const git = (...args) =>
  execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();

function commit() {
  try {
    // Results of an earlier run are no change of what is measured.
    const changed = git('status', '--porcelain', '--untracked-files=no', '--', '.', ':!bench/results');
    return `${git('rev-parse', 'HEAD')}${changed ? '-dirty' : ''}`;
  } catch {
    return 'unknown';
  }
}

/** @returns {string} version of the compiler that the wasm builds' folder was set up with */
function compilerVersion() {
  try {
    const folder = join(BUILD, 'wasm-simd/CMakeFiles');
    const name = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((file) =>
      file.endsWith('CMakeCXXCompiler.cmake'),
    );
    const compiler = /set\(CMAKE_CXX_COMPILER "([^"]+)"\)/.exec(readFileSync(join(folder, name ?? ''), 'utf8'))?.[1];
    const found = emscriptenVersion(dirname(realpathSync(compiler ?? '')));
    return found === '0' ? 'unknown' : found;
  } catch {
    return 'unknown';
  }
}

/**
 * @param {string} script this command's file
 * @param {string[]} args
 * @returns {Environment}
 */
export function environment(script, args) {
  const processors = cpus();
  return {
    date: new Date().toISOString(),
    commit: commit(),
    command: ['node', relative(ROOT, script), ...args].join(' '),
    machine: {
      cpu: processors[0].model.trim(),
      cores: processors.length,
      memory: totalmem(),
      system: `${process.platform} ${process.arch}`,
    },
    versions: {
      sdpa: version,
      node: process.versions.node,
      v8: process.versions.v8,
      emscripten: compilerVersion(),
    },
  };
}
