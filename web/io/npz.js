// The .npz format: a .zip file whose members are .npy files, as numpy.savez and numpy.savez_compressed write it.

import { zipSync } from 'fflate';
import { show } from '../errors.js';
import { failOption, failType, failUnsupported } from './fail.js';
import { formatNpy, parseNpy } from './npy.js';
import { checkMaxBytes, checkOptionNames, toBytes } from './tensors.js';
import { listZip, unpackEntry } from './zip.js';

/** @import { FileTensor, WritableTensor } from './tensors.js' */

/** No more than a wasm memory holds; a small file can claim any size. */
const kDefaultMaxBytes = 2 ** 32;
/** Sizes and offsets beyond this need zip64, which the writer does not do. */
const kMaxZipBytes = 2 ** 32 - 1;
/** A zip name takes at most 65 535 bytes, and a character at most three. */
const kMaxNameLength = 20_000;

/**
 * Reads a .npz file. Members that are not .npy files are left out.
 *
 * The sizes that the members declare are added up before any of them is unpacked, so that a file that would inflate beyond `maxBytes`
 * is refused at once. dtypes and views as for readNpy; compressed members are always copies.
 *
 * @param {Uint8Array | ArrayBuffer} bytes the whole file
 * @param {{ filter?: (name: string) => boolean, maxBytes?: number }} [options]
 *   filter: which arrays to unpack (default all); maxBytes: largest size of those together, in bytes (default 2^32)
 * @returns {Record<string, FileTensor>} by name without '.npy', in the file's order; an object without prototype
 * @throws {RangeError} an AttentionError: code 'option' for a damaged or too large file, 'shape' and 'unsupported' as readNpy
 */
export function readNpz(bytes, options) {
  checkOptionNames(options, ['filter', 'maxBytes'], 'readNpz');
  const maxBytes = checkMaxBytes(options?.maxBytes, kDefaultMaxBytes);
  const file = toBytes(bytes, 'readNpz');
  const wanted = listZip(file)
    .filter((entry) => entry.name.endsWith('.npy'))
    .map((entry) => ({ entry, name: entry.name.slice(0, -'.npy'.length) }))
    .filter(({ name }) => !options?.filter || options.filter(name));
  const total = wanted.reduce((sum, { entry }) => sum + entry.size, 0);
  if (total > maxBytes) failOption(`the .npz file would unpack to ${total} bytes, more than maxBytes ${maxBytes}`);

  /** @type {Record<string, FileTensor>} */
  const tensors = Object.create(null);
  for (const { entry, name } of wanted) {
    tensors[name] = parseNpy(unpackEntry(file, entry), `array '${name}' of the .npz file`, Infinity);
  }
  return tensors;
}

/**
 * Writes a .npz file. The same tensors give the same bytes at any time (the members carry the date 1980-01-01).
 *
 * @param {Record<string, WritableTensor>} tensors by name
 * @param {{ compress?: boolean }} [options] compress: deflate the arrays, as numpy.savez_compressed (default false)
 * @returns {Uint8Array<ArrayBuffer>}
 * @throws {TypeError | RangeError} an AttentionError: as writeNpy, and 'unsupported' for a file of 4 GiB or more
 */
export function writeNpz(tensors, options) {
  checkOptionNames(options, ['compress'], 'writeNpz');
  const compress = options?.compress ?? false;
  if (typeof compress !== 'boolean') failType(`writeNpz: compress must be a boolean, but is ${show(compress)}`);
  if (typeof tensors !== 'object' || tensors === null)
    failType(`writeNpz takes tensors by name, but got ${show(tensors)}`);
  /** @type {Record<string, Uint8Array>} */
  const members = Object.create(null);
  let total = 0;
  for (const [name, tensor] of Object.entries(tensors)) {
    if (name.length > kMaxNameLength)
      failOption(`writeNpz: a name has ${name.length} characters; at most ${kMaxNameLength} are written`);
    members[`${name}.npy`] = formatNpy(tensor, `writeNpz: array '${name}'`);
    // local header, directory entry and the name twice
    total += members[`${name}.npy`].length + 128 + 8 * name.length;
  }
  if (total > kMaxZipBytes)
    failUnsupported(
      `writeNpz: the arrays take ${total} bytes, more than a .npz file without zip64 holds; .safetensors has no such limit`,
    );
  return /** @type {Uint8Array<ArrayBuffer>} */ (
    zipSync(members, { level: compress ? 6 : 0, mtime: new Date(1980, 0, 1) })
  );
}
