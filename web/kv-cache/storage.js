// The memory of a cache: one block of wasm memory with the keys, the values and, for int8, their scales.

import { align64 } from '../block.js';

/** @typedef {import('./cache-options.js').CacheSpec} CacheSpec */

/** Bytes of one element. */
const elementBytes = { float32: 4, float16: 2, int8: 1 };

/** Keys, or values: elements (outer, heads, rows, dim) and, for int8, scales (outer, heads, rows). */
class Plane {
  /**
   * @param {number} heads
   * @param {number} rows
   * @param {number} dim
   * @param {number} bytes of one element
   */
  constructor(heads, rows, dim, bytes) {
    this.heads = heads;
    this.rows = rows;
    this.dim = dim;
    this.bytes = bytes;
    /** Address of the elements. */
    this.pointer = 0;
    /** Address of the scales; 0 where there are none. */
    this.scales = 0;
  }

  /** Elements from one outer, head, row to the next. @returns {[number, number, number]} */
  get strides() {
    return [this.heads * this.rows * this.dim, this.rows * this.dim, this.dim];
  }

  /**
   * Number of the row, from the start of the plane.
   * @param {number} outer
   * @param {number} head
   * @param {number} row
   */
  rowAt(outer, head, row) {
    return (outer * this.heads + head) * this.rows + row;
  }
}

/** Room for `rows` tokens in each of `outer` batch rows or pages. */
export class Storage {
  /** @type {import('../runtime.js').Runtime} */
  #runtime;
  /** @type {import('../runtime.js').Block} */
  #block;

  /**
   * @param {import('../runtime.js').Runtime} runtime
   * @param {CacheSpec} spec
   * @param {number} outer
   * @param {number} rows
   * @throws RangeError `out-of-memory`
   */
  constructor(runtime, spec, outer, rows) {
    const { numKvHeads, headDim, headDimV, dtype } = spec;
    const each = elementBytes[dtype];
    const count = outer * numKvHeads * rows;
    this.outer = outer;
    this.rows = rows;
    this.dtype = dtype;
    this.key = new Plane(numKvHeads, rows, headDim, each);
    this.value = new Plane(numKvHeads, rows, headDimV, each);
    const keyBytes = align64(count * headDim * each);
    const valueBytes = align64(count * headDimV * each);
    const scaleBytes = dtype === 'int8' ? align64(count * 4) : 0;
    const bytes = keyBytes + valueBytes + 2 * scaleBytes;
    const pointer = runtime.allocate(bytes, `a ${dtype} KV cache of ${outer} x ${rows} tokens`);
    this.#runtime = runtime;
    this.#block = { pointer, bytes };
    this.key.pointer = pointer;
    this.value.pointer = pointer + keyBytes;
    if (scaleBytes) {
      this.key.scales = pointer + keyBytes + valueBytes;
      this.value.scales = this.key.scales + scaleBytes;
    }
    runtime.watch(this, this.#block);
  }

  /** Bytes of wasm memory. */
  get byteLength() {
    return this.#block.bytes;
  }

  release() {
    this.#runtime.unwatch(this.#block);
    this.#runtime.release(this.#block.pointer, this.#block.bytes);
  }

  /**
   * Copies `count` tokens of every head, also over one another.
   * @param {Storage} source
   * @param {number} fromOuter
   * @param {number} fromRow
   * @param {number} toOuter
   * @param {number} toRow
   * @param {number} count
   */
  copyRows(source, fromOuter, fromRow, toOuter, toRow, count) {
    this.#copyPlane(source.key, this.key, fromOuter, fromRow, toOuter, toRow, count);
    this.#copyPlane(source.value, this.value, fromOuter, fromRow, toOuter, toRow, count);
  }

  /**
   * @param {Plane} source
   * @param {Plane} target
   * @param {number} fromOuter
   * @param {number} fromRow
   * @param {number} toOuter
   * @param {number} toRow
   * @param {number} count
   */
  #copyPlane(source, target, fromOuter, fromRow, toOuter, toRow, count) {
    const { bytes, floats } = this.#runtime;
    const rowBytes = target.dim * target.bytes;
    for (let head = 0; head < target.heads; head++) {
      const from = source.rowAt(fromOuter, head, fromRow);
      const to = target.rowAt(toOuter, head, toRow);
      const start = source.pointer + from * rowBytes;
      bytes.copyWithin(target.pointer + to * rowBytes, start, start + count * rowBytes);
      if (target.scales) {
        const first = source.scales / 4 + from;
        floats.copyWithin(target.scales / 4 + to, first, first + count);
      }
    }
  }

  /**
   * Writes tokens of one batch row.
   * @param {Plane} plane
   * @param {import('./stage.js').Staged} staged
   * @param {number} b batch row of the staged tokens
   * @param {import('./rows.js').Run} run where they go
   */
  write(plane, staged, b, { outer, row, count, skip }) {
    const { heads, dim } = plane;
    const memory = this.#elements();
    const source = staged.elements ?? memory;
    const base = plane.pointer / plane.bytes;
    for (let head = 0; head < heads; head++) {
      const to = plane.rowAt(outer, head, row);
      const from = staged.rowAt(b, head, skip);
      if (staged.tokenRows === 1) {
        const at = staged.origin + from * dim;
        memory.set(source.subarray(at, at + count * dim), base + to * dim);
      } else {
        for (let t = 0; t < count; t++) {
          const at = staged.origin + (from + t * staged.tokenRows) * dim;
          memory.set(source.subarray(at, at + dim), base + (to + t) * dim);
        }
      }
      if (staged.scales) {
        const { floats } = this.#runtime;
        for (let t = 0; t < count; t++) {
          floats[plane.scales / 4 + to + t] = staged.scales[from + t * staged.tokenRows];
        }
      }
    }
  }

  /** The memory as elements of the storage type; int8 as bytes. @returns {any} */
  #elements() {
    const { dtype } = this;
    return dtype === 'float32'
      ? this.#runtime.floats
      : dtype === 'float16'
        ? this.#runtime.halves
        : this.#runtime.bytes;
  }
}
