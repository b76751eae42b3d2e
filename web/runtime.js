// The wasm module wrapped: memory with accounting, views that survive growth, the border's functions. The only importer
// of the glue, and the only place that knows wasm pointers apart from the call frame's writer.

import { loadError, outOfMemory, rangeError } from './errors.js';
import { frameBytes, frameFields } from './frame.js';
import createModule from './generated/glue.js';
import { version } from './version.js';

/**
 * The module's exports: plain functions of numbers.
 * @typedef {object} Exports
 * @property {{ readonly buffer: ArrayBuffer }} wasmMemory a WebAssembly.Memory
 * @property {() => string} version
 * @property {() => string} buildName
 * @property {() => string} frameFields names of the attention frame's fields, in order
 * @property {() => string} statusTable `code:name:error` entries
 * @property {(bytes: number) => number} allocate 64-byte aligned; 0 where there is no room
 * @property {(pointer: number) => void} release
 * @property {(frame: number) => number} attentionWorkspaceBytes bytes, or a negative status code
 * @property {(frame: number) => number} attention status code
 * @property {(frame: number) => number} attentionWeightsWorkspaceBytes bytes, or a negative status code
 * @property {(frame: number) => number} attentionWeights status code
 * @property {(frame: number) => number} attentionBackwardWorkspaceBytes bytes, or a negative status code
 * @property {(frame: number) => number} attentionBackward status code
 * @property {(frame: number) => number} windowAttentionWorkspaceBytes bytes, or a negative status code
 * @property {(frame: number) => number} windowAttention status code
 * @property {(frame: number, factors: number) => number} normalizeRows status code; of the frame's query, to its out
 * @property {(inner: number, columns: number) => number} gemmPackedBytes bytes, or a negative status code
 * @property {(frame: number) => number} gemmPack status code; the frame is that of layers/gemm.js
 * @property {(frame: number) => number} gemmWorkspaceBytes bytes, or a negative status code
 * @property {(frame: number) => number} gemm status code
 * @property {(frame: number) => number} linearAttentionWorkspaceBytes bytes, or a negative status code; the frame is that of linear/frame.js
 * @property {(frame: number) => number} linearAttention status code
 * @property {(frame: number) => number} linearAttentionBackwardWorkspaceBytes bytes, or a negative status code
 * @property {(frame: number) => number} linearAttentionBackward status code
 */

/** Bytes that a 32-bit wasm memory can have; the last page is left out, so that no end wraps to 0. */
const addressSpace = 2 ** 32 - 2 ** 16;

/** Where the arena's free room starts: behind the frame, at the next multiple of 64. */
const arenaStart = Math.ceil(frameBytes / 64) * 64;

/** One small block, taken once, so that small calls allocate nothing: a few tiles' worth of inputs, outputs and workspace. */
const arenaBytes = 256 * 1024;

/** What a finalised tensor leaves behind. @typedef {{ pointer: number, bytes: number }} Block */

export class Runtime {
  /** @type {Exports | null} */
  #exports;
  /** @type {number} */
  #limit;
  #held = 0;
  #peak = 0;
  /** @type {Map<number, { name: string, error: string }>} */
  #statuses;
  /** @type {FinalizationRegistry<Block> | null} */
  #registry;

  // Views of the whole memory, derived again when it has grown: the old ones then have length 0.
  /** @type {ArrayBufferLike} */
  #buffer;
  #bytes = new Uint8Array(0);
  #halves = new Uint16Array(0);
  #ints = new Int32Array(0);
  #floats = new Float32Array(0);
  #doubles = new Float64Array(0);

  /**
   * @param {Exports} exports
   * @param {number} maxMemory bytes that may be allocated at once
   */
  constructor(exports, maxMemory) {
    this.#exports = exports;
    this.#limit = Math.min(maxMemory, addressSpace);
    this.#statuses = readStatusTable(exports.statusTable());
    this.#buffer = new ArrayBuffer(0);
    /** Which build this is. */
    this.variant = /** @type {import('./variants.js').Variant} */ (exports.buildName());
    this.#registry =
      typeof FinalizationRegistry === 'function'
        ? new FinalizationRegistry(({ pointer, bytes }) => this.release(pointer, bytes))
        : null;
    /** Address of the call frame, which is the start of the arena. */
    this.frame = this.allocate(Math.min(arenaBytes, Math.max(this.#limit, arenaStart)), 'loading');
    /** Address and size of the block that small calls use. */
    this.arena = this.frame + arenaStart;
    this.arenaBytes = this.#held - arenaStart;
  }

  /** @returns {Exports} */
  get exports() {
    if (!this.#exports) throw rangeError('disposed', 'this sdpa instance has been disposed of');
    return this.#exports;
  }

  get disposed() {
    return this.#exports === null;
  }

  /**
   * Throws where `bytes` more bytes would pass the limit.
   * @param {number} bytes
   * @param {string} what who needs them, for the error
   */
  afford(bytes, what) {
    const allowed = this.#limit - this.#held;
    if (!(bytes <= allowed)) throw outOfMemory(bytes, allowed, what);
  }

  /**
   * Takes `bytes` bytes at a multiple of 64.
   * @param {number} bytes
   * @param {string} what who needs them, for the error
   * @returns {number} the address
   * @throws RangeError `out-of-memory`, with nothing changed
   */
  allocate(bytes, what) {
    const { exports } = this;
    this.afford(bytes, what);
    const pointer = exports.allocate(bytes);
    if (pointer === 0) throw outOfMemory(bytes, exports.wasmMemory.buffer.byteLength - this.#held, what);
    this.#held += bytes;
    if (this.#held > this.#peak) this.#peak = this.#held;
    return pointer;
  }

  /**
   * Gives back what allocate() gave. Nothing happens after dispose().
   * @param {number} pointer
   * @param {number} bytes the same as in allocate()
   */
  release(pointer, bytes) {
    if (!this.#exports) return;
    this.#exports.release(pointer);
    this.#held -= bytes;
  }

  /**
   * Frees `block` when `owner` has been forgotten.
   * @param {object} owner
   * @param {Block} block
   */
  watch(owner, block) {
    this.#registry?.register(owner, block, block);
  }

  /** @param {Block} block */
  unwatch(block) {
    this.#registry?.unregister(block);
  }

  #derive() {
    const { buffer } = this.exports.wasmMemory;
    if (buffer === this.#buffer) return;
    this.#buffer = buffer;
    this.#bytes = new Uint8Array(buffer);
    this.#halves = new Uint16Array(buffer);
    this.#ints = new Int32Array(buffer);
    this.#floats = new Float32Array(buffer);
    this.#doubles = new Float64Array(buffer);
  }

  /** The memory's buffer as it is now. */
  get buffer() {
    return this.exports.wasmMemory.buffer;
  }

  // Each of these is good until the next allocation.

  get bytes() {
    this.#derive();
    return this.#bytes;
  }

  get halves() {
    this.#derive();
    return this.#halves;
  }

  get ints() {
    this.#derive();
    return this.#ints;
  }

  get floats() {
    this.#derive();
    return this.#floats;
  }

  get doubles() {
    this.#derive();
    return this.#doubles;
  }

  /**
   * Throws for a status that is not 0. The checks in JavaScript come first, so this is a disagreement between the two.
   * @param {number} status
   * @param {string} what
   */
  check(status, what) {
    if (status === 0) return;
    const entry = this.#statuses.get(Math.abs(status));
    const code = /** @type {import('./errors.js').ErrorCode} */ (entry?.error || 'option');
    throw rangeError(code, `${what} was refused: ${entry?.name ?? `status ${status}`}`);
  }

  /**
   * @returns {{ held: number, peak: number, wasm: number }} bytes allocated now, their maximum since load, and the size
   *   of the wasm memory
   */
  memory() {
    return { held: this.#held, peak: this.#peak, wasm: this.buffer.byteLength };
  }

  /** Drops the module and its memory. */
  dispose() {
    this.#exports = null;
    this.#registry = null;
    this.#held = 0;
    this.#buffer = new ArrayBuffer(0);
    this.#bytes = new Uint8Array(0);
    this.#halves = new Uint16Array(0);
    this.#ints = new Int32Array(0);
    this.#floats = new Float32Array(0);
    this.#doubles = new Float64Array(0);
  }
}

/**
 * @param {string} table `code:name:error` entries separated by commas
 * @returns {Map<number, { name: string, error: string }>}
 */
function readStatusTable(table) {
  return new Map(
    table.split(',').map((entry) => {
      const [code, name, error] = entry.split(':');
      return [Number(code), { name, error }];
    }),
  );
}

/**
 * Instantiates a compiled build and checks that it belongs to this JavaScript.
 * @param {object} compiled a WebAssembly.Module
 * @param {number} maxMemory bytes that may be allocated at once
 * @returns {Promise<Runtime>}
 */
export async function instantiate(compiled, maxMemory) {
  const module = /** @type {WebAssembly.Module} */ (compiled);
  const [stamp] = WebAssembly.Module.customSections(module, 'sdpa.version');
  // Digits and dots; simulated pages have no TextDecoder.
  if (stamp) checkVersion(String.fromCharCode(...new Uint8Array(stamp)));
  const exports = await new Promise((resolve, reject) => {
    createModule({
      instantiateWasm(imports, receive) {
        // The glue awaits receive() and never learns of a failure: hence the promise around it.
        WebAssembly.instantiate(module, imports)
          .then((instance) => receive(instance))
          .catch(reject);
        return {};
      },
    }).then(resolve, reject);
  });
  return checked(/** @type {Exports} */ (exports), maxMemory);
}

/**
 * @param {Exports} exports
 * @param {number} maxMemory
 */
function checked(exports, maxMemory) {
  checkVersion(exports.version());
  const fields = exports.frameFields();
  if (fields !== frameFields.join(',')) {
    throw loadError('version-mismatch', `the wasm binary has another call frame (${fields}) than this JavaScript`);
  }
  return new Runtime(exports, maxMemory);
}

/** @param {string} found */
function checkVersion(found) {
  if (found === version) return;
  throw loadError(
    'version-mismatch',
    `the wasm binary is of version ${found} but the JavaScript is of version ${version}`,
  );
}
