/**
 * The stamp that says what a toolchain folder holds: written last, so that an interrupted installation is not taken
 * for a whole one.
 */

import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Raise when the layout of the folder changes; older folders are then filled anew. */
const FORMAT = 1;

/**
 * @typedef {object} State
 * @property {number} format
 * @property {string} arch of the machine
 * @property {{ versions: Record<string, string> }} [emscripten] Debian's packages lie in `emscripten/`
 * @property {string[]} nativeParts names of what lies in `native/`
 * @property {Record<string, string>} nativeVersions
 * @property {string} [tested] the compiler (path and version) whose test program ran
 */

/**
 * @param {string} dir
 * @returns {State}
 */
export function readState(dir) {
  try {
    const state = JSON.parse(readFileSync(join(dir, 'state.json'), 'utf8'));
    if (state.format === FORMAT && state.arch === process.arch) return state;
  } catch {
    // none yet, or not readable: as if empty
  }
  return { format: FORMAT, arch: process.arch, nativeParts: [], nativeVersions: {} };
}

/**
 * @param {string} dir
 * @param {State} state
 */
export function writeState(dir, state) {
  const file = join(dir, 'state.json');
  writeFileSync(`${file}.new`, `${JSON.stringify(state, null, 2)}\n`);
  renameSync(`${file}.new`, file);
}
