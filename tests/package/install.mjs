// The package as npm delivers it: packed, and installed into an empty folder.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));

/** A program of the project's own tools. @param {string} name */
export const tool = (name) => join(root, 'node_modules/.bin', name);

/**
 * @returns {{ folder: string, tarball: string, files: string[], remove: () => void }} `folder` holds a package.json and node_modules/sdpa
 */
export function installPackage() {
  const parent = mkdtempSync(join(tmpdir(), 'sdpa package '));
  const remove = () => rmSync(parent, { recursive: true, force: true });
  try {
    const packed = run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', parent], root);
    const [{ filename, files }] = Object.values(JSON.parse(packed)).flat();
    const folder = join(parent, 'app');
    mkdirSync(folder);
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'app', private: true, version: '1.0.0' }));
    const tarball = join(parent, filename);
    const quiet = ['--no-audit', '--no-fund', '--ignore-scripts', '--prefer-offline'];
    run('npm', ['install', ...quiet, tarball], folder);
    return { folder, tarball, files: files.map((/** @type {any} */ file) => file.path), remove };
  } catch (error) {
    remove();
    throw error;
  }
}

/**
 * @param {string} program
 * @param {string[]} args
 * @param {string} cwd
 * @returns {string} what it wrote to stdout; a failure shows everything that it wrote
 */
export function run(program, args, cwd) {
  try {
    return execFileSync(program, args, {
      cwd,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      maxBuffer: 1 << 26,
    });
  } catch (error) {
    const { stdout, stderr } = /** @type {any} */ (error);
    throw new Error(`${program} ${args.join(' ')} failed:\n${stdout ?? ''}\n${stderr ?? error}`, { cause: error });
  }
}

/**
 * Checks JavaScript against the installed package's types, as a project of Node's and browsers' code has it.
 * @param {string} folder of the project, with the package in reach
 * @param {{ strict: boolean, files?: string[], include?: string[] }} project
 */
export function checkTypes(folder, { strict, ...sources }) {
  const compilerOptions = {
    module: 'NodeNext',
    target: 'ES2022',
    lib: ['ES2023', 'DOM', 'ESNext.Disposable'],
    typeRoots: [join(root, 'node_modules/@types')],
    types: ['node'],
    allowJs: true,
    checkJs: true,
    noEmit: true,
    strict,
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, ...sources }));
  run(tool('tsc'), ['-p', 'tsconfig.json'], folder);
}
