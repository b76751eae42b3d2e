// Runs the program `sdpa` as a shell does: the package's own bin file, in a process of its own, in an empty folder.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';
import { readNpy, readNpz, readSafetensors, writeNpy, writeNpz, writeSafetensors } from 'sdpa/io';
import { childFlags, VARIANT } from '../helpers/sdpa.mjs';

const root = new URL('../../../', import.meta.url);
const { bin } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
export const program = fileURLToPath(new URL(bin.sdpa, root));
export const nodeFlags = childFlags;

/** @typedef {{ code: number, stdout: Buffer, stderr: string }} Outcome */

/** A folder that is removed after the tests of the file. */
export function makeFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'sdpa-cli-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  return {
    folder,
    /** @param {string} name */
    path: (name) => join(folder, name),
    list: () => readdirSync(folder).sort(),
    /** @param {string} name @param {Uint8Array} bytes */
    write: (name, bytes) => writeFileSync(join(folder, name), bytes),
    /** @param {string} name */
    read: (name) => /** @type {Uint8Array} */ (readFileSync(join(folder, name))),
    /** @param {string} name @param {import('sdpa/io').WritableTensor} tensor */
    npy: (name, tensor) => writeFileSync(join(folder, name), writeNpy(tensor)),
    /** @param {string} name @param {Record<string, import('sdpa/io').WritableTensor>} tensors */
    npz: (name, tensors) => writeFileSync(join(folder, name), writeNpz(tensors)),
    /** @param {string} name @param {Record<string, import('sdpa/io').WritableTensor>} tensors */
    safetensors: (name, tensors) => writeFileSync(join(folder, name), writeSafetensors(tensors)),
    /** @param {string} name */
    readNpy: (name) => readNpy(readFileSync(join(folder, name))),
    /** @param {string} name */
    readMany: (name) => (name.endsWith('.npz') ? readNpz : readSafetensors)(readFileSync(join(folder, name))),
    /** @param {string[]} args @param {{ node?: string[] }} [options] node: flags of the engine */
    run: (args, { node = [] } = {}) => run(folder, args, node),
    /** @param {string[]} args */
    start: (args) => spawn(process.execPath, [...nodeFlags, program, ...args], { cwd: folder }),
  };
}

/**
 * @param {string} cwd
 * @param {string[]} args
 * @param {string[]} node
 * @returns {Promise<Outcome>}
 */
function run(cwd, args, node) {
  return new Promise((resolve) => {
    const command = [...nodeFlags, ...node, program, ...args];
    const options = /** @type {const} */ ({ cwd, encoding: 'buffer', maxBuffer: 2 ** 28 });
    const child = execFile(process.execPath, command, options, (error, stdout, stderr) => {
      const code = error ? Number(error.code ?? -1) : 0;
      resolve({ code, stdout, stderr: stderr.toString() });
    });
    child.stdin?.end();
  });
}

/** The words that make `sdpa attention` take the build under test. */
export const attention = ['attention', '--variant', VARIANT];

/**
 * @param {Outcome} outcome
 * @param {number} code
 * @param {RegExp} message
 */
export function failsInOneLine(outcome, code, message) {
  assert.match(outcome.stderr, /^sdpa: [^\n]*\n$/, `one line, not:\n${outcome.stderr}`);
  assert.match(outcome.stderr, message);
  assert.equal(outcome.code, code, outcome.stderr);
  assert.equal(outcome.stdout.length, 0);
}

/** @param {Outcome} outcome */
export function succeeds(outcome) {
  assert.equal(outcome.code, 0, outcome.stderr);
  return outcome;
}
