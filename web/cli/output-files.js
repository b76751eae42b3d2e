// Results to files: complete or not at all. Everything is written beside its target first and renamed at the end.

import { open, realpath, rename, stat } from 'node:fs/promises';
import { unlinkSync } from 'node:fs';
import { dirname, extname } from 'node:path';
import { writeNpy, writeNpz, writeSafetensors } from '../io/index.js';
import { explainFileError } from './input-files.js';
import { UsageError } from './usage-error.js';

/** @import { WritableTensor } from '../io/index.js' */
/** @typedef {'npy' | 'npz' | 'safetensors'} Format */
/** @typedef {{ flag: string, path: string, format: Format, tensors: Record<string, WritableTensor> }} OutputFile */
/** @typedef {{ flag: string, path: string, content: Uint8Array }} ReadyFile its bytes are there already */

const kWriteChunk = 2 ** 28;

/**
 * @param {string} path "-" is the standard output
 * @param {string} flag
 * @returns {Format}
 */
export function outputFormat(path, flag) {
  const extension = path === '-' ? 'npy' : extname(path).slice(1).toLowerCase();
  if (extension === 'npy' || extension === 'npz' || extension === 'safetensors') return extension;
  throw new UsageError(`${flag} ${path}: the name must end in .npy, .npz or .safetensors`);
}

/**
 * @param {{ flag: string, path: string, name: string }[]} results what goes where; several may share a file
 * @returns {{ flag: string, path: string, format: Format, names: string[] }[]}
 */
export function planOutputs(results) {
  /** @type {Map<string, { flag: string, path: string, format: Format, names: string[] }>} */
  const files = new Map();
  for (const { flag, path, name } of results) {
    const file = files.get(path);
    if (!file) files.set(path, { flag, path, format: outputFormat(path, flag), names: [name] });
    else if (file.format !== 'npy') file.names.push(name);
    else
      throw new UsageError(
        `${file.flag} and ${flag} both name ${path}; a .npy file holds one array, .npz and .safetensors several`,
      );
  }
  return [...files.values()];
}

/**
 * Says early what would fail late, after the computation.
 * @param {{ flag: string, path: string }} file
 * @param {readonly string[]} inputs paths that are read
 */
export async function checkOutput({ flag, path }, inputs) {
  if (path === '-') return;
  const where = `${flag} ${path}`;
  try {
    const folder = await stat(dirname(path));
    if (!folder.isDirectory()) throw new UsageError(`${where}: ${dirname(path)} is not a directory`);
  } catch (error) {
    throw explainFileError(error, where);
  }
  const target = await stat(path).catch(() => undefined);
  if (target?.isDirectory()) throw new UsageError(`${where} is a directory`);
  if (!target?.isFile()) return;
  for (const input of inputs) {
    const source = await stat(input).catch(() => undefined);
    if (source?.ino === target.ino && source.dev === target.dev)
      throw new UsageError(`${where} is also an input; it would be overwritten`);
  }
}

/**
 * @param {OutputFile} file
 * @returns {Uint8Array}
 */
export function formatOutput({ format, tensors }) {
  if (format === 'npz') return writeNpz(tensors);
  if (format === 'safetensors') return writeSafetensors(tensors);
  return writeNpy(Object.values(tensors)[0]);
}

/**
 * @param {readonly (OutputFile | ReadyFile)[]} files without the standard output
 */
export async function writeOutputs(files) {
  /** @type {{ from: string, to: string, where: string }[]} */
  const renames = [];
  const removeUnfinished = () => {
    for (const { from } of renames) {
      try {
        unlinkSync(from);
      } catch {
        // renamed already
      }
    }
  };
  const onSignal = (/** @type {NodeJS.Signals} */ signal) => {
    removeUnfinished();
    process.exit(signal === 'SIGINT' ? 130 : 143);
  };
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal);
  try {
    for (const file of files) {
      const where = `${file.flag} ${file.path}`;
      try {
        await writeBeside(file, (from, to) => renames.push({ from, to, where }));
      } catch (error) {
        throw explainFileError(error, where);
      }
    }
    for (const { from, to, where } of renames) {
      await rename(from, to).catch((error) => {
        throw explainFileError(error, where);
      });
    }
  } catch (error) {
    removeUnfinished();
    throw error;
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
}

/**
 * @param {OutputFile | ReadyFile} file
 * @param {(from: string, to: string) => void} started called before the first byte is written
 */
async function writeBeside(file, started) {
  const existing = await stat(file.path).catch(() => undefined);
  // a device or a pipe is written to, not replaced
  const direct = existing !== undefined && !existing.isFile();
  const target = existing?.isFile() ? await realpath(file.path) : file.path;
  const path = direct ? target : `${target}.${process.pid}.tmp`;
  if (!direct) started(path, target);
  const handle = await open(path, direct ? 'w' : 'wx', existing ? existing.mode & 0o777 : 0o666);
  try {
    const bytes = 'content' in file ? file.content : formatOutput(file);
    for (let at = 0; at < bytes.length;) {
      const { bytesWritten } = await handle.write(bytes, at, Math.min(kWriteChunk, bytes.length - at));
      at += bytesWritten;
    }
  } finally {
    await handle.close();
  }
}
