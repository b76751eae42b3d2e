/** Small file helpers of the build: writes that leave unchanged files alone, listings, hashes. */

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * @param {string} folder
 * @returns {string[]} paths of all files below, relative to the folder, sorted
 */
export function listFiles(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(folder.length + 1))
    .sort();
}

/**
 * A folder whose files are written one by one; prune() then removes those that were not.
 */
export class OutputFolder {
  /** @type {Set<string>} */
  #written = new Set();

  /** @param {string} root */
  constructor(root) {
    this.root = root;
  }

  /**
   * @param {string} name relative path
   * @param {string | Uint8Array} content
   * @param {number} [mode]
   */
  write(name, content, mode) {
    const file = join(this.root, name);
    const bytes = Buffer.from(content);
    this.#written.add(name);
    if (existsSync(file) && readFileSync(file).equals(bytes)) return;
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, bytes, { mode });
  }

  prune() {
    for (const name of listFiles(this.root)) {
      if (!this.#written.has(name)) rmSync(join(this.root, name));
    }
  }
}

/**
 * @param {string[]} files
 * @returns {string} of their names and contents; a missing file counts as such
 */
export function hashFiles(files) {
  const hash = createHash('sha256');
  for (const file of files) {
    hash.update(`${file}\n`);
    hash.update(existsSync(file) ? readFileSync(file) : 'missing');
  }
  return hash.digest('hex');
}
