// Array buffers to be used again. A fresh one costs a page fault for every 4 KiB, several times what copying into it costs; the
// buffers of a call go to the workers and come back with their results, so that the next call finds them.

/** Bytes kept at most, for as long as the instance lives. */
const most = 2 ** 25;

/** Smaller ones come from memory that the engine has at hand. */
const least = 2 ** 14;

export class Buffers {
  /** @type {ArrayBuffer[]} */
  #free = [];
  #bytes = 0;

  /**
   * @template {Float32Array | Uint16Array | Uint8Array} T
   * @param {{ new (count: number): T, new (buffer: ArrayBuffer, offset: number, count: number): T, BYTES_PER_ELEMENT: number }} Type
   * @param {number} count
   * @returns {T} an array of that many elements, whatever they are, at the start of a buffer of its own
   * @throws RangeError where there is no memory
   */
  take(Type, count) {
    const bytes = count * Type.BYTES_PER_ELEMENT;
    let best = -1;
    if (bytes >= least) {
      this.#free.forEach(({ byteLength }, i) => {
        // Not one that another piece will miss.
        if (byteLength < bytes || byteLength > 2 * bytes) return;
        if (best < 0 || byteLength < this.#free[best].byteLength) best = i;
      });
    }
    if (best < 0) return new Type(count);
    const [buffer] = this.#free.splice(best, 1);
    this.#bytes -= buffer.byteLength;
    return new Type(buffer, 0, count);
  }

  /**
   * Takes a buffer back that nobody will read or write any more. The ones kept longest make room.
   * @param {ArrayBufferLike | undefined} buffer
   */
  give(buffer) {
    if (!(buffer instanceof ArrayBuffer) || buffer.byteLength < least || buffer.byteLength > most) return;
    this.#free.push(buffer);
    this.#bytes += buffer.byteLength;
    while (this.#bytes > most) this.#bytes -= /** @type {ArrayBuffer} */ (this.#free.shift()).byteLength;
  }

  clear() {
    this.#free = [];
    this.#bytes = 0;
  }
}
