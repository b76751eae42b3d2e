// Where a wasm binary comes from: bytes, a Response, a URL or a path. What is done depends on what the value is and, for an
// address, on its scheme; never on which globals happen to exist.

import { loadError, show, typeError } from './errors.js';
import { nodeModule } from './node-module.js';
import { arrayKind } from './tensor.js';

/**
 * @typedef {object} WasmModule a WebAssembly.Module (whose type not every consumer's libraries have)
 * @typedef {{ readonly href: string }} UrlLike a URL
 * @typedef {object} ResponseLike what is used of a Response
 * @property {() => Promise<ArrayBuffer>} arrayBuffer its body
 * @property {boolean} ok
 * @property {number} status
 * @property {string} url
 * @typedef {string | UrlLike | ArrayBuffer | ArrayBufferView | ResponseLike | WasmModule} WasmSource where load() takes a binary from: an address or path, bytes, a Response, a compiled module
 */

const magic = [0, 97, 115, 109];

/**
 * The compiled module of whatever the `wasm` option holds.
 * @param {unknown} source
 * @returns {Promise<WasmModule>}
 */
export async function compileSource(source) {
  if (Object.prototype.toString.call(source) === '[object WebAssembly.Module]') {
    return /** @type {WasmModule} */ (source);
  }
  if (arrayKind(source) !== undefined || source instanceof DataView) {
    const { buffer, byteOffset, byteLength } = /** @type {ArrayBufferView} */ (source);
    return compileBytes(new Uint8Array(buffer, byteOffset, byteLength), {});
  }
  const tag = Object.prototype.toString.call(source);
  if (tag === '[object ArrayBuffer]' || tag === '[object SharedArrayBuffer]') {
    return compileBytes(new Uint8Array(/** @type {ArrayBuffer} */ (source)), {});
  }
  if (typeof source === 'string') return fromAddress(source);
  const object = /** @type {any} */ (source);
  if (typeof object === 'object' && object !== null) {
    if (typeof object.arrayBuffer === 'function') return fromResponse(object, object.url || '(a response)');
    if (typeof object.href === 'string') return fromAddress(object.href);
  }
  throw typeError('type', `wasm must be a URL, bytes, a Response or a WebAssembly.Module, got ${show(source)}`);
}

/** @param {string} address */
async function fromAddress(address) {
  const path = filePath(address);
  if (path === null) {
    let response;
    try {
      response = await fetch(address);
    } catch (cause) {
      throw loadError('load-failed', `could not fetch the wasm binary from ${address}: ${messageOf(cause)}`, {
        cause,
        url: address,
      });
    }
    return fromResponse(response, address);
  }
  let bytes;
  try {
    bytes = await readFile(path);
  } catch (cause) {
    throw loadError('load-failed', `could not read the wasm binary from ${address}: ${messageOf(cause)}`, {
      cause,
      url: address,
    });
  }
  return compileBytes(bytes, { url: address });
}

/**
 * A `file:` URL, or an address without a scheme where there is no page that it could be relative to, is a file.
 * @param {string} address
 * @returns {string | URL | null} null for everything that fetch takes
 */
function filePath(address) {
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(address)?.[1].toLowerCase();
  if (scheme === 'file') return new URL(address);
  if (scheme !== undefined || 'location' in globalThis) return null;
  return address;
}

/**
 * @param {string | URL} path
 * @returns {Promise<Uint8Array>}
 */
async function readFile(path) {
  const fs = nodeModule('fs');
  if (fs) return fs.promises.readFile(path);
  if (typeof path === 'object') {
    // Engines other than Node fetch file: URLs where they allow it.
    const response = await fetch(path);
    return new Uint8Array(await response.arrayBuffer());
  }
  throw new Error('this engine gives no access to files; pass the bytes instead');
}

/**
 * @param {ResponseLike} response
 * @param {string} address
 */
async function fromResponse(response, address) {
  const { status, ok } = response;
  const url = response.url || address;
  let bytes;
  try {
    bytes = new Uint8Array(await response.arrayBuffer());
  } catch (cause) {
    throw loadError('load-failed', `could not read the wasm binary from ${url}: ${messageOf(cause)}`, {
      cause,
      url,
      status,
    });
  }
  if (!ok) {
    throw loadError('load-failed', `could not load the wasm binary from ${url}: status ${status}`, {
      url,
      status,
      firstBytes: bytes.slice(0, 16),
    });
  }
  return compileBytes(bytes, { url, status });
}

/**
 * @param {Uint8Array} bytes
 * @param {{ url?: string, status?: number }} origin
 * @returns {Promise<WasmModule>}
 */
export async function compileBytes(bytes, origin) {
  const firstBytes = bytes.slice(0, 16);
  if (!magic.every((byte, i) => firstBytes[i] === byte)) {
    throw loadError(
      'load-failed',
      `${describe(origin)} is not a wasm binary: it starts with ${showBytes(firstBytes)}`,
      {
        ...origin,
        firstBytes,
      },
    );
  }
  try {
    // The copy takes bytes off shared memory, which compile() refuses.
    const isShared = Object.prototype.toString.call(bytes.buffer) === '[object SharedArrayBuffer]';
    return await WebAssembly.compile(/** @type {Uint8Array<ArrayBuffer>} */ (isShared ? new Uint8Array(bytes) : bytes));
  } catch (cause) {
    throw loadError('load-failed', compileMessage(origin, messageOf(cause)), { ...origin, firstBytes, cause });
  }
}

/**
 * What to say of bytes that did not compile.
 * @param {{ url?: string }} origin
 * @param {string} reason the engine's words
 */
export function compileMessage(origin, reason) {
  if (/content.security.policy|unsafe-eval|\bCSP\b/i.test(reason)) {
    return `this page's Content-Security-Policy forbids WebAssembly: add 'wasm-unsafe-eval' to its script-src directive (${reason})`;
  }
  if (/embedder/i.test(reason)) {
    return `this host compiles no wasm from bytes: pass a WebAssembly.Module in the option 'wasm' (${reason})`;
  }
  return `${describe(origin)} does not compile in this engine: ${reason}`;
}

/** @param {{ url?: string }} origin */
const describe = (origin) => (origin.url ? `what came back from ${origin.url}` : 'the wasm binary');

/** @param {Uint8Array} bytes */
function showBytes(bytes) {
  if (bytes.length === 0) return 'nothing';
  const hex = Array.from(bytes.subarray(0, 8), (byte) => byte.toString(16).padStart(2, '0')).join(' ');
  const text = String.fromCharCode(...bytes).replace(/[^\x20-\x7e]/g, '.');
  return `${hex} (${JSON.stringify(text)})`;
}

/** @param {unknown} error */
export const messageOf = (error) => (error instanceof Error ? error.message : String(error));
