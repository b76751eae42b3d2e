// Memory of one call, taken until it ends.

import { product } from '../tensor.js';

export class Scratch {
  /** @type {import('../runtime.js').Block[]} */
  #blocks = [];
  #runtime;

  /** @param {import('../runtime.js').Runtime} runtime */
  constructor(runtime) {
    this.#runtime = runtime;
  }

  /**
   * @param {readonly number[]} shape of float32
   * @returns {number} pointer; what is there is not cleared
   * @throws RangeError `out-of-memory`
   */
  take(shape) {
    const bytes = Math.max(1, product('a layer', shape)) * 4;
    const pointer = this.#runtime.allocate(bytes, 'a layer');
    this.#blocks.push({ pointer, bytes });
    return pointer;
  }

  release() {
    for (const { pointer, bytes } of this.#blocks) this.#runtime.release(pointer, bytes);
  }
}
