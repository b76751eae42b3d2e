/** Reads the arrows of the project: includes from the text, imports as esbuild parses them. */

import { build } from 'esbuild';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { includesOf } from './arrows.mjs';

/** @typedef {import('./arrows.mjs').Arrow} Arrow */

/**
 * @param {string} root
 * @param {string[]} folders
 * @param {RegExp} pattern
 * @returns {string[]} files, relative to the root
 */
export function listFiles(root, folders, pattern) {
  return folders
    .filter((folder) => existsSync(join(root, folder)))
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
    )
    .filter((name) => pattern.test(name) && !name.split('/').includes('node_modules'))
    .sort();
}

/**
 * @param {string} root
 * @param {string[]} files
 * @returns {Arrow[]}
 */
export function readIncludes(root, files) {
  return files.flatMap((from) => includesOf(readFileSync(join(root, from), 'utf8')).map((to) => ({ from, to })));
}

/**
 * @param {string} root
 * @param {string[]} files
 * @returns {Promise<Arrow[]>} static and dynamic imports, re-exports and requires of a literal name
 */
export async function readImports(root, files) {
  /** @type {Arrow[]} */
  const arrows = [];
  await build({
    absWorkingDir: root,
    entryPoints: files,
    bundle: true,
    write: false,
    outdir: 'build/unused',
    platform: 'node',
    format: 'esm',
    logLevel: 'silent',
    plugins: [
      {
        name: 'record',
        setup({ onResolve }) {
          onResolve({ filter: /.*/ }, ({ kind, importer, path }) => {
            if (kind === 'entry-point') return undefined;
            arrows.push({ from: relative(root, importer), to: path });
            return { path, external: true };
          });
        },
      },
    ],
  });
  return arrows;
}
