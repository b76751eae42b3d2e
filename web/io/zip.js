// Reads the members of a .zip file, as far as .npz files use it: stored or deflated, with zip64 sizes, one part, no encryption.
//
// fflate inflates; the directory is walked here, because fflate's own reader takes sizes and names on trust, lets the last of two equal
// names win and leaves the CRC-32 unread, so that a damaged array would pass as data.
// Source: PKWARE APPNOTE.TXT, sections 4.3 (records) and 4.5.3 (zip64).

import { Inflate } from 'fflate';
import { AttentionError } from '../errors.js';
import { failOption, failUnsupported } from './fail.js';
import { allocate } from './tensors.js';

const kEndRecord = 0x06054b50;
const kEndRecordBytes = 22;
const kZip64Locator = 0x07064b50;
const kZip64EndRecord = 0x06064b50;
const kDirectoryEntry = 0x02014b50;
const kDirectoryEntryBytes = 46;
const kLocalHeader = 0x04034b50;
const kLocalHeaderBytes = 30;
/** Deflate cannot shrink further than 258 bytes into 2 bits: a member that claims more lies about its size. */
const kMaxDeflateRatio = 1032;
/** Compressed bytes that are inflated at a time: to 17 MB at the most. */
const kPieceBytes = 16384;

/**
 * @typedef {object} ZipEntry
 * @property {string} name
 * @property {number} method 0 stored, 8 deflated
 * @property {number} flags
 * @property {number} crc
 * @property {number} packed bytes in the file
 * @property {number} size bytes when unpacked, as declared
 * @property {number} offset of the local header
 */

/**
 * @param {Uint8Array} file
 * @returns {ZipEntry[]} in the directory's order; no name twice
 */
export function listZip(file) {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const { count, start, end } = findDirectory(view);
  const entries = [];
  const names = new Set();
  let at = start;
  for (let i = 0; i < count; i++) {
    if (at + kDirectoryEntryBytes > end || view.getUint32(at, true) !== kDirectoryEntry) {
      return failOption(`the .npz file has a damaged zip directory: entry ${i} of ${count} is not where it should be`);
    }
    const nameLength = view.getUint16(at + 28, true);
    const extraLength = view.getUint16(at + 30, true);
    const next = at + kDirectoryEntryBytes + nameLength + extraLength + view.getUint16(at + 32, true);
    if (next > end) return failOption(`the .npz file has a damaged zip directory: entry ${i} of ${count} is cut short`);
    const nameStart = at + kDirectoryEntryBytes;
    const name = new TextDecoder().decode(file.subarray(nameStart, nameStart + nameLength));
    if (names.has(name)) failOption(`the .npz file has the member '${name}' twice`);
    names.add(name);
    const entry = {
      name,
      flags: view.getUint16(at + 8, true),
      method: view.getUint16(at + 10, true),
      crc: view.getUint32(at + 16, true),
      packed: view.getUint32(at + 20, true),
      size: view.getUint32(at + 24, true),
      offset: view.getUint32(at + 42, true),
    };
    readZip64(entry, view, nameStart + nameLength, extraLength);
    entries.push(entry);
    at = next;
  }
  return entries;
}

/**
 * @param {Uint8Array} file
 * @param {ZipEntry} entry
 * @returns {Uint8Array} the member's content: a view of `file` where it is stored, a new array where it is deflated
 */
export function unpackEntry(file, entry) {
  const { name, method, packed, size, offset } = entry;
  if (entry.flags & 1) failUnsupported(`member '${name}' of the .npz file is encrypted`);
  if (method !== 0 && method !== 8)
    failUnsupported(`member '${name}' of the .npz file has zip compression method ${method}; 0 and 8 are read`);
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  if (offset + kLocalHeaderBytes > file.length || view.getUint32(offset, true) !== kLocalHeader) {
    failOption(`member '${name}' of the .npz file is not where the zip directory says`);
  }
  const start = offset + kLocalHeaderBytes + view.getUint16(offset + 26, true) + view.getUint16(offset + 28, true);
  if (start + packed > file.length) {
    failOption(
      `member '${name}' of the .npz file is cut short: it takes ${packed} bytes, ${Math.max(0, file.length - start)} are there`,
    );
  }
  const source = file.subarray(start, start + packed);
  if (method === 0 && packed !== size)
    failOption(`member '${name}' of the .npz file is stored in ${packed} bytes but declares ${size}`);
  const content = method === 0 ? source : inflate(source, size, name);
  if (crc32(content) !== entry.crc)
    failOption(`member '${name}' of the .npz file is damaged: its CRC-32 does not match`);
  return content;
}

/**
 * @param {Uint8Array} source
 * @param {number} size declared
 * @param {string} name
 * @returns {Uint8Array}
 */
function inflate(source, size, name) {
  if (size > source.length * kMaxDeflateRatio) {
    failOption(
      `member '${name}' of the .npz file declares ${size} bytes, more than its ${source.length} compressed bytes can hold`,
    );
  }
  const content = allocate(size, `member '${name}' of the .npz file`);
  let length = 0;
  const stream = new Inflate((piece) => {
    // A stream goes on for a thousand times its own length: what it would come to is not waited for.
    if (length + piece.length > size)
      failOption(`member '${name}' of the .npz file declares ${size} bytes and inflates to more`);
    content.set(piece, length);
    length += piece.length;
  });
  try {
    for (let at = 0; at < source.length; at += kPieceBytes) {
      stream.push(source.subarray(at, at + kPieceBytes), at + kPieceBytes >= source.length);
    }
  } catch (error) {
    if (AttentionError.is(error)) throw error;
    return failOption(`member '${name}' of the .npz file is damaged: ${/** @type {Error} */ (error).message}`);
  }
  if (length !== size) failOption(`member '${name}' of the .npz file declares ${size} bytes and inflates to ${length}`);
  return content;
}

/**
 * @param {DataView} view
 * @returns {{ count: number, start: number, end: number }} entries of the directory, and where it lies
 */
function findDirectory(view) {
  // the end record is the file's last, followed by a comment of at most 65 535 bytes
  const lowest = Math.max(0, view.byteLength - kEndRecordBytes - 0xffff);
  let record = view.byteLength - kEndRecordBytes;
  while (record >= lowest && view.getUint32(record, true) !== kEndRecord) record--;
  if (record < lowest)
    return failOption('the .npz file has no zip directory at its end: it is cut short, or not a .npz file');
  let count = view.getUint16(record + 10, true);
  let start = view.getUint32(record + 16, true);
  let end = start + view.getUint32(record + 12, true);
  const locator = record - 20;
  if (locator >= 0 && view.getUint32(locator, true) === kZip64Locator) {
    const wide = Number(view.getBigUint64(locator + 8, true));
    if (wide + 56 > view.byteLength || view.getUint32(wide, true) !== kZip64EndRecord) {
      return failOption('the .npz file has a damaged zip64 directory');
    }
    count = Number(view.getBigUint64(wide + 32, true));
    start = Number(view.getBigUint64(wide + 48, true));
    end = start + Number(view.getBigUint64(wide + 40, true));
  }
  if (end > record || count > (end - start) / kDirectoryEntryBytes) {
    return failOption(
      `the .npz file has a damaged zip directory: ${count} entries from byte ${start} to ${end} of ${view.byteLength}`,
    );
  }
  return { count, start, end };
}

/**
 * Where a size or the offset does not fit 32 bits, it stands in an extra field, in this order.
 * @param {ZipEntry} entry
 * @param {DataView} view
 * @param {number} start
 * @param {number} length of the extra fields
 */
function readZip64(entry, view, start, length) {
  /** @type {('size' | 'packed' | 'offset')[]} */
  const wide = /** @type {const} */ (['size', 'packed', 'offset']).filter((key) => entry[key] === 0xffffffff);
  if (wide.length === 0) return;
  for (let at = start; at + 4 <= start + length; at += 4 + view.getUint16(at + 2, true)) {
    if (view.getUint16(at, true) !== 1) continue;
    if (Math.min(view.getUint16(at + 2, true), start + length - at - 4) < 8 * wide.length) break;
    wide.forEach((key, i) => (entry[key] = Number(view.getBigUint64(at + 4 + 8 * i, true))));
    return;
  }
  failOption(`member '${entry.name}' of the .npz file lacks its zip64 sizes`);
}

/** @type {Uint32Array | undefined} */
let crcTable;

/**
 * CRC-32 as zip uses it (reflected polynomial 0xedb88320).
 * @param {Uint8Array} bytes
 * @returns {number}
 */
export function crc32(bytes) {
  crcTable ??= Uint32Array.from({ length: 256 }, (_, byte) => {
    for (let bit = 0; bit < 8; bit++) byte = byte & 1 ? (byte >>> 1) ^ 0xedb88320 : byte >>> 1;
    return byte;
  });
  let crc = 0xffffffff;
  for (let i = 0; i < bytes.length; i++) crc = crcTable[(crc ^ bytes[i]) & 255] ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}
