// Files with tensors: read whole, known by their first bytes, decoded only as far as tensors are asked for.

import { open, readFile, stat } from 'node:fs/promises';
import { AttentionError } from '../errors.js';
import { readNpy, readNpz, readSafetensors } from '../io/index.js';
import { UsageError } from './usage-error.js';

/** @import { FileTensor } from '../io/index.js' */

/** No more than a wasm memory holds. */
const kMaxFileBytes = 2 ** 32;
const kReadChunk = 2 ** 28;

/**
 * @typedef {object} TensorFile
 * @property {boolean} single the file is one array without a name (.npy)
 * @property {readonly string[]} names of the tensors; empty for .npy
 * @property {(name?: string) => FileTensor} read one tensor
 */

/**
 * @param {string} path
 * @param {string} flag that named it, for messages
 * @returns {Promise<TensorFile>}
 */
export async function openTensorFile(path, flag) {
  const where = `${flag} ${path}`;
  const bytes = await readBytes(path, where);
  if (startsWith(bytes, [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59])) {
    return { single: true, names: [], read: () => named(where, () => readNpy(bytes)) };
  }
  const reader = startsWith(bytes, [0x50, 0x4b])
    ? readNpz
    : /\.safetensors$/i.test(path) || bytes[8] === 0x7b
      ? readSafetensors
      : undefined;
  if (!reader) throw new UsageError(`${where} is not a .npy, .npz or .safetensors file`);
  /** @type {string[]} */
  const names = [];
  named(where, () => reader(bytes, { filter: (name) => (names.push(name), false) }));
  return {
    single: false,
    names,
    read: (wanted) => named(where, () => reader(bytes, { filter: (name) => name === wanted }))[wanted ?? ''],
  };
}

/**
 * @template T
 * @param {string} where
 * @param {() => T} run
 * @returns {T}
 */
function named(where, run) {
  try {
    return run();
  } catch (error) {
    if (!AttentionError.is(error) || error.code === 'out-of-memory') throw error;
    throw new UsageError(`${where}: ${error.message}`);
  }
}

/**
 * @param {string} path
 * @param {string} where
 * @returns {Promise<Uint8Array>}
 */
async function readBytes(path, where) {
  try {
    const info = await stat(path);
    if (info.isDirectory()) throw new UsageError(`${where} is a directory`);
    // pipes and devices have no size
    if (!info.isFile()) return await readFile(path);
    if (info.size > kMaxFileBytes) {
      throw new UsageError(
        `${where} has ${info.size} bytes, more than the ${kMaxFileBytes} that a WebAssembly memory holds`,
      );
    }
    return await readWhole(path, info.size);
  } catch (error) {
    throw explainFileError(error, where);
  }
}

/**
 * In pieces, because one call of readFile ends at 2 GiB.
 * @param {string} path
 * @param {number} size
 * @returns {Promise<Uint8Array>}
 */
async function readWhole(path, size) {
  const bytes = new Uint8Array(size);
  const file = await open(path);
  try {
    for (let at = 0; at < size;) {
      const { bytesRead } = await file.read(bytes, at, Math.min(kReadChunk, size - at), at);
      if (bytesRead === 0) return bytes.subarray(0, at);
      at += bytesRead;
    }
    return bytes;
  } finally {
    await file.close();
  }
}

/**
 * @param {unknown} error of a file operation
 * @param {string} where
 * @returns {unknown} a UsageError for what the user can put right, the error itself otherwise
 */
export function explainFileError(error, where) {
  const code = /** @type {NodeJS.ErrnoException} */ (error).code ?? '';
  /** @type {Record<string, string>} */
  const reasons = {
    ENOENT: 'no such file or directory',
    ENOTDIR: 'a part of the path is not a directory',
    EISDIR: 'is a directory',
    EACCES: 'permission denied',
    EPERM: 'not permitted',
    EROFS: 'the file system is read-only',
    ELOOP: 'too many symbolic links',
    ENAMETOOLONG: 'the name is too long',
    ERR_INVALID_ARG_VALUE: 'not a path',
  };
  return Object.hasOwn(reasons, code) ? new UsageError(`${where}: ${reasons[code]}`) : error;
}

/**
 * @param {Uint8Array} bytes
 * @param {number[]} start
 * @returns {boolean}
 */
function startsWith(bytes, start) {
  return start.every((byte, i) => bytes[i] === byte);
}
