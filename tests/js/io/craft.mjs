// Files put together byte by byte from the formats' descriptions, right or wrong as the tests want them.

/**
 * @param {string} header text of the Python dictionary
 * @param {Uint8Array | number[]} [data]
 * @param {{ major?: number, minor?: number, headerBytes?: number }} [options] headerBytes: the length to claim
 * @returns {Uint8Array}
 */
export function npyBytes(header, data = [], { major = 1, minor = 0, headerBytes } = {}) {
  const text = new TextEncoder().encode(`${header}\n`);
  const length = headerBytes ?? text.length;
  const bytesOfLength = major === 1 ? 2 : 4;
  const lengthField = Array.from({ length: bytesOfLength }, (_, i) => Math.floor(length / 256 ** i) % 256);
  return Uint8Array.from([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, major, minor, ...lengthField, ...text, ...data]);
}

/**
 * @param {string} descr
 * @param {string} shape
 * @param {string} [fortran]
 */
export const npyHeader = (descr, shape, fortran = 'False') =>
  `{'descr': ${descr}, 'fortran_order': ${fortran}, 'shape': ${shape}, }`;

/**
 * @param {string | object} header JSON text, or what becomes it
 * @param {Uint8Array | number[]} [data]
 * @param {bigint} [claimed] header length to claim
 * @returns {Uint8Array}
 */
export function safetensorsBytes(header, data = [], claimed) {
  const text = new TextEncoder().encode(typeof header === 'string' ? header : JSON.stringify(header));
  const length = new Uint8Array(8);
  new DataView(length.buffer).setBigUint64(0, claimed ?? BigInt(text.length), true);
  return Uint8Array.from([...length, ...text, ...data]);
}

/**
 * @typedef {object} Member
 * @property {string} name
 * @property {Uint8Array} content as it lies in the file
 * @property {number} crc
 * @property {number} [method] 0 stored, 8 deflated
 * @property {number} [flags]
 * @property {number} [size] declared size when unpacked
 * @property {boolean} [zip64] sizes and offset in the zip64 extra field
 */

/**
 * @param {Member[]} members
 * @param {{ count?: number }} [options] count: number of entries to claim
 * @returns {Uint8Array}
 */
export function zipBytes(members, { count = members.length } = {}) {
  /** @type {number[]} */
  const file = [];
  /** @type {number[]} */
  const directory = [];
  for (const { name, content, crc, method = 0, flags = 0, size = content.length, zip64 = false } of members) {
    const nameBytes = [...new TextEncoder().encode(name)];
    const offset = file.length;
    const narrow = (/** @type {number} */ value) => u32(zip64 ? 0xffffffff : value);
    const extra = zip64 ? [...u16(1), ...u16(24), ...u64(size), ...u64(content.length), ...u64(offset)] : [];
    const common = [...u16(45), ...u16(flags), ...u16(method), ...u32(0), ...u32(crc)];
    file.push(...u32(0x04034b50), ...common, ...u32(content.length), ...u32(size), ...u16(nameBytes.length), ...u16(0));
    file.push(...nameBytes, ...content);
    directory.push(...u32(0x02014b50), ...u16(45), ...common, ...narrow(content.length), ...narrow(size));
    directory.push(
      ...u16(nameBytes.length),
      ...u16(extra.length),
      ...u16(0),
      ...u16(0),
      ...u16(0),
      ...u32(0),
      ...narrow(offset),
    );
    directory.push(...nameBytes, ...extra);
  }
  const end = [
    ...u32(0x06054b50),
    ...u32(0),
    ...u16(count),
    ...u16(count),
    ...u32(directory.length),
    ...u32(file.length),
  ];
  return Uint8Array.from([...file, ...directory, ...end, ...u16(0)]);
}

/** @param {number} value */
const u16 = (value) => [value & 255, (value >> 8) & 255];
/** @param {number} value */
const u32 = (value) => [...u16(value & 65535), ...u16(Math.floor(value / 65536))];
/** @param {number} value */
const u64 = (value) => [...u32(value >>> 0), ...u32(Math.floor(value / 2 ** 32))];
