// Weights of one call, computed where its inputs lie in wasm memory.

import { align64, Block, runInWorkspace } from '../block.js';
import { outOfMemory } from '../errors.js';
import { field } from '../frame.js';
import { copyIn } from '../operand.js';
import { arrayBytes, writeFrame } from '../write-frame.js';
import { hasEntropy, hasIndices } from './kinds.js';

/**
 * @typedef {import('../options.js').AttentionCall} AttentionCall
 * @typedef {import('../operand.js').Operand} Operand
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('./kinds.js').Lines} Lines
 * @typedef {import('./kinds.js').Request} Request
 */

/** Inputs of a call in wasm memory, for as many results as are wanted of it. */
export class Inputs {
  #runtime;
  #call;
  #lse;
  /** Address of each operand that had to be copied in. @type {Map<Operand, number>} */
  #places = new Map();
  #bytes;
  #block = 0;
  #shortBytes;

  /**
   * @param {Runtime} runtime
   * @param {AttentionCall} call
   * @param {Operand | null} lse
   * @throws RangeError `out-of-memory`
   */
  constructor(runtime, call, lse) {
    this.#runtime = runtime;
    this.#call = call;
    this.#lse = lse;
    const { query, key, mask, bias } = call;
    const operands = [query, key, mask, bias, lse].flatMap((operand) =>
      operand && operand.pointer === 0 ? [operand] : [],
    );
    this.#shortBytes = align64(arrayBytes(call));
    this.#bytes = this.#shortBytes;
    for (const operand of operands) {
      this.#places.set(operand, this.#bytes);
      this.#bytes += align64(operand.bytes);
    }
    this.#block = runtime.allocate(Math.max(64, this.#bytes), 'attentionWeights');
    for (const [operand, at] of this.#places) copyIn(runtime, operand, this.#block + at);
  }

  free() {
    this.#runtime.release(this.#block, Math.max(64, this.#bytes));
  }

  /**
   * @param {Int32Array} heads
   * @param {Request} request
   * @param {number} count elements of the result
   * @param {boolean} sums whether sums are wanted in double precision
   * @returns {Lines & { sums: Float64Array | null }}
   * @throws RangeError `out-of-memory`
   */
  compute(heads, request, count, sums) {
    const runtime = this.#runtime;
    const { picks, rowCells, columnCells } = request;
    const lists = [heads, picks, rowCells, columnCells];
    const block = new Block();
    const values = block.take(sums ? count * 8 : count * 4);
    const indices = hasIndices(request) ? block.take(count * 4) : -1;
    const entropy = hasEntropy(request) ? block.take(count * 4) : -1;
    const [headsAt, picksAt, rowsAt, columnsAt] = lists.map((list) => (list ? block.take(list.length * 4) : -1));
    const base = runtime.allocate(block.bytes, `the result '${request.name}'`);
    try {
      lists.forEach((list, i) => list && runtime.ints.set(list, (base + [headsAt, picksAt, rowsAt, columnsAt][i]) / 4));
      writeFrame(runtime, this.#call, this.#block);
      this.#writePointers();
      const frame = runtime.doubles;
      const f = runtime.frame / 8;
      const pointer = (/** @type {number} */ at) => (at < 0 ? 0 : base + at);
      frame[f + field.weights_kind] = request.kind;
      frame[f + field.weights_heads] = pointer(headsAt);
      frame[f + field.weights_num_heads] = heads.length;
      frame[f + field.weights_picks] = pointer(picksAt);
      frame[f + field.weights_num_picks] = picks ? picks.length : 0;
      frame[f + field.top_k] = request.topK;
      frame[f + field.row_cells] = pointer(rowsAt);
      frame[f + field.num_row_cells] = rowCells ? rowCells.length - 1 : 0;
      frame[f + field.column_cells] = pointer(columnsAt);
      frame[f + field.num_column_cells] = columnCells ? columnCells.length - 1 : 0;
      frame[f + field.weights_values] = sums ? 0 : base + values;
      frame[f + field.weights_indices] = pointer(indices);
      frame[f + field.weights_entropy] = pointer(entropy);
      frame[f + field.weights_sums] = sums ? base + values : 0;
      runInWorkspace(runtime, 'attentionWeights');
      const copy = (/** @type {any} */ memory, /** @type {number} */ at, /** @type {number} */ bytes) =>
        memory.slice((base + at) / bytes, (base + at) / bytes + count);
      try {
        return {
          values: sums ? none : copy(runtime.floats, values, 4),
          indices: indices < 0 ? null : copy(runtime.ints, indices, 4),
          entropy: entropy < 0 ? null : copy(runtime.floats, entropy, 4),
          sums: sums ? copy(runtime.doubles, values, 8) : null,
        };
      } catch (cause) {
        throw outOfMemory(count * 4, 0, `the result '${request.name}' outside wasm memory`, cause);
      }
    } finally {
      runtime.release(base, block.bytes);
    }
  }

  #writePointers() {
    const { query, key, mask, bias } = this.#call;
    const frame = this.#runtime.doubles;
    const f = this.#runtime.frame / 8;
    const at = (/** @type {Operand | null} */ operand) =>
      operand ? operand.pointer || this.#block + /** @type {number} */ (this.#places.get(operand)) : 0;
    frame[f + field.query] = at(query);
    frame[f + field.key] = at(key);
    frame[f + field.value] = at(key);
    frame[f + field.out] = 0;
    frame[f + field.lse] = at(this.#lse);
    frame[f + field.scores] = 0;
    frame[f + field.mask] = at(mask);
    frame[f + field.bias] = at(bias);
  }
}

const none = /* @__PURE__ */ new Float32Array(0);
