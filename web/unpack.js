// The builds out of the JavaScript that carries them. They lie there as one stream of LZMA, in which each is little more than its
// difference from those before it, and a module of 1.5 KB unpacks them (src/unpack/unpack.cpp says why).

import { loadError } from './errors.js';
import { compileMessage, messageOf } from './source.js';

/**
 * @typedef {object} Embedded
 * @property {string} unpacker a wasm module, in base64
 * @property {string} packed raw LZMA of all builds, one behind the other, in base64
 * @property {readonly (readonly [import('./variants.js').Variant, number])[]} sizes of the builds in bytes, in their order
 */

const pageBytes = 65536;

/**
 * @param {Embedded} embedded
 * @param {import('./variants.js').Variant} variant
 * @returns {Uint8Array<ArrayBuffer>} the build's binary
 * @throws Error `load-failed` where the engine or the host refuses wasm made of bytes
 */
export function unpackBuild({ unpacker, packed, sizes }, variant) {
  const { memory, unpack } = startUnpacker(unpacker);
  const source = decodeBase64(packed);
  let start = 0;
  let end = 0;
  for (const [name, size] of sizes) {
    start = end;
    end += size;
    if (name === variant) break;
  }
  // Behind all that the module has of its own.
  const input = memory.buffer.byteLength;
  const output = input + source.length;
  memory.grow(Math.ceil((source.length + end) / pageBytes));
  new Uint8Array(memory.buffer).set(source, input);
  unpack(input, output, end);
  return new Uint8Array(memory.buffer).slice(output + start, output + end);
}

/**
 * @param {string} binary in base64
 * @returns {{ memory: WebAssembly.Memory, unpack: (input: number, output: number, size: number) => void }}
 */
function startUnpacker(binary) {
  try {
    return /** @type {any} */ (new WebAssembly.Instance(new WebAssembly.Module(decodeBase64(binary))).exports);
  } catch (cause) {
    throw loadError('load-failed', compileMessage({}, messageOf(cause)), { cause });
  }
}

/**
 * @param {string} text
 * @returns {Uint8Array<ArrayBuffer>}
 */
function decodeBase64(text) {
  const { fromBase64 } = /** @type {any} */ (Uint8Array);
  if (typeof fromBase64 === 'function') return fromBase64.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}
