// The weights of a layer in wasm memory: each projection's matrix packed for its product, and its bias.

import { align64 } from '../block.js';
import { widened } from '../kv-cache/stage.js';
import { inColumns, inRows, multiply, pack, packedBytes, forms } from './gemm.js';

/**
 * @typedef {import('../operand.js').Operand} Operand
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('./weight-parts.js').LayerParts} LayerParts
 * @typedef {import('./weight-parts.js').Part} Part
 */

/** y = x·W + b with W and b in wasm memory. */
export class Projection {
  /** Where W lies, packed, and b; 0 where there is none. */
  pointer = 0;
  bias = 0;

  /** @param {Part} part */
  constructor(part) {
    this.part = part;
    this.inputs = part.inputs;
    this.outputs = part.outputs;
  }

  /**
   * y (rows, outputs) of x (rows, inputs).
   * @param {Runtime} runtime
   * @param {number} x pointer
   * @param {number} rows
   * @param {number} y pointer
   */
  apply(runtime, x, rows, y) {
    const { inputs, outputs, pointer, bias } = this;
    const b = { pointer, stride: 0, form: forms.packed };
    multiply(runtime, { a: inRows(x, inputs), b, bias, c: y, rows, columns: outputs, inner: inputs });
  }

  /**
   * dx = dy·Wᵀ, or dx += dy·Wᵀ.
   * @param {Runtime} runtime
   * @param {number} dy pointer
   * @param {number} rows
   * @param {number} dx pointer
   * @param {boolean} accumulate
   */
  applyTransposed(runtime, dy, rows, dx, accumulate) {
    const { inputs, outputs, pointer } = this;
    const b = { pointer, stride: 0, form: forms.packedColumns };
    multiply(runtime, { a: inRows(dy, outputs), b, c: dx, accumulate, rows, columns: inputs, inner: outputs });
  }

  /**
   * dW = xᵀ·dy, or its transpose where the weight is one, into the weight's place in its tensor.
   * @param {Runtime} runtime
   * @param {number} x pointer
   * @param {number} dy pointer
   * @param {number} rows
   * @param {number} tensor pointer
   */
  weightGradient(runtime, x, dy, rows, tensor) {
    const { inputs, outputs } = this;
    const { transposed, at, stride } = this.part;
    const [left, leftWidth, right, rightWidth] = transposed ? [dy, outputs, x, inputs] : [x, inputs, dy, outputs];
    multiply(runtime, {
      a: inColumns(left, leftWidth),
      b: inRows(right, rightWidth),
      c: tensor + at * 4,
      cStride: stride,
      rows: leftWidth,
      columns: rightWidth,
      inner: rows,
    });
  }
}

/** One block of wasm memory with the four projections of a layer. */
export class PackedWeights {
  /** @type {import('../runtime.js').Block | null} */
  #block;
  #runtime;

  /**
   * @param {Runtime} runtime
   * @param {LayerParts} layer
   * @throws RangeError `out-of-memory`
   */
  constructor(runtime, { parts, operands }) {
    this.#runtime = runtime;
    this.query = new Projection(parts.query);
    this.key = new Projection(parts.key);
    this.value = new Projection(parts.value);
    this.out = new Projection(parts.out);
    let bytes = 0;
    for (const projection of this.#all()) {
      projection.pointer = bytes;
      bytes += align64(packedBytes(runtime, projection.inputs, projection.outputs));
      if (projection.part.bias === undefined) continue;
      projection.bias = bytes;
      bytes += align64(projection.outputs * 4);
    }
    const pointer = runtime.allocate(bytes, "a layer's weights");
    this.#block = { pointer, bytes };
    for (const projection of this.#all()) {
      projection.pointer += pointer;
      if (projection.part.bias !== undefined) projection.bias += pointer;
    }
    try {
      this.fill(operands);
    } catch (error) {
      runtime.release(pointer, bytes);
      throw error;
    }
    runtime.watch(this, this.#block);
  }

  #all() {
    return [this.query, this.key, this.value, this.out];
  }

  /** Bytes of the block; 0 once it has been released. */
  get bytes() {
    return this.#block?.bytes ?? 0;
  }

  get released() {
    return this.#block === null;
  }

  release() {
    if (!this.#block) return;
    this.#runtime.unwatch(this.#block);
    this.#runtime.release(this.#block.pointer, this.#block.bytes);
    this.#block = null;
  }

  /**
   * Packs tensors of the shapes that the layer was made from.
   * @param {ReadonlyMap<string, Operand>} operands by name, just read
   * @throws RangeError `out-of-memory`, with nothing changed
   */
  fill(operands) {
    const runtime = this.#runtime;
    // Each tensor is copied in once, though query, key and value may share it; the largest says what room that takes.
    let most = 0;
    for (const { count, pointer, dtype } of operands.values()) {
      if (pointer === 0 || dtype !== 'float32') most = Math.max(most, count * 4);
    }
    const room = most > 0 ? runtime.allocate(most, "a layer's weights") : 0;
    try {
      for (const [name, operand] of operands) {
        const tensor = place(runtime, operand, room);
        for (const projection of this.#all()) {
          const { part, inputs, outputs, pointer, bias } = projection;
          if (part.weight === name) {
            const at = tensor + part.at * 4;
            const b = part.transposed ? inColumns(at, part.stride) : inRows(at, part.stride);
            pack(runtime, b, inputs, outputs, pointer);
          }
          if (part.bias === name) {
            const at = tensor + part.biasAt * 4;
            runtime.bytes.copyWithin(bias, at, at + outputs * 4);
          }
        }
      }
    } finally {
      if (room) runtime.release(room, most);
    }
  }
}

/**
 * An operand's elements as float32 in wasm memory.
 * @param {Runtime} runtime
 * @param {Operand} operand
 * @param {number} room pointer, where they go that do not lie there already
 * @returns {number} pointer
 */
export function place(runtime, operand, room) {
  if (operand.pointer !== 0 && operand.dtype === 'float32') return operand.pointer;
  runtime.floats.set(widened(runtime, operand), room / 4);
  return room;
}
