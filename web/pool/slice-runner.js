// Computes slices with one instance, on whatever thread: keys and values of a unit stay in wasm memory between its slices.

import { compute } from '../attention.js';
import { computeGradients } from '../gradients/compute.js';
import { copyIn } from '../operand.js';
import { product } from '../tensor.js';
import { outShape } from '../validate.js';
import { Inputs } from '../weights/inputs.js';
import { callOf, newOut, operand, outOver } from './slice-call.js';

/**
 * @typedef {import('../options.js').AttentionCall} AttentionCall
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('../tensor.js').DType} DType
 */

/**
 * Keys and values of a unit, (batch, heads, seqlen, headDim or headDimV), and what else its slices share.
 * @typedef {object} Keys
 * @property {Float32Array | Uint16Array} key
 * @property {DType} keyDtype
 * @property {Float32Array | Uint16Array} value
 * @property {DType} valueDtype
 * @property {number} batch
 * @property {number} heads
 * @property {number} seqlen
 * @property {number} headDim
 * @property {number} headDimV
 * @property {Int32Array | null} segments ids of the keys, (batch, seqlen)
 * @property {Int32Array | null} queryStarts those of the whole call
 * @property {Int32Array | null} keyStarts
 */

/**
 * Part of a mask or bias, of rank 4.
 * @typedef {{ data: Float32Array | Uint16Array | Uint8Array, dtype: DType, shape: number[] }} Piece
 */

/**
 * One slice: plain data that can be sent to another thread. Arrays of numbers have one for each batch entry where nothing else is said.
 * @typedef {object} SliceWork
 * @property {number} heads query heads of each batch entry
 * @property {number} rows of each head
 * @property {Float32Array | Uint16Array} query (batch, heads, rows, headDim)
 * @property {DType} queryDtype
 * @property {Piece | null} mask
 * @property {Piece | null} bias
 * @property {number} align how `offsets` count
 * @property {number[]} offsets positions of row 0; packed sequences have one for all
 * @property {number[] | null} queryLengths
 * @property {number[] | null} kvLengths
 * @property {number} scale
 * @property {number} softcap
 * @property {boolean} causal
 * @property {number} windowLeft
 * @property {number} windowRight
 * @property {number} chunk
 * @property {number} globalKeys
 * @property {import('../option-arrays.js').Numbers<Float32Array> | null} alibiSlopes (heads) or (batch, heads)
 * @property {import('../option-arrays.js').Numbers<Float32Array> | null} sinks
 * @property {Int32Array | null} segments ids of the rows, (batch, rows)
 * @property {boolean} blocks whether the block mask that is held counts
 * @property {number} dropout
 * @property {number} seedLow
 * @property {number} seedHigh
 * @property {number} cellBatch where batch entry 0, query head 0 and row 0 of the slice stand in the call
 * @property {number} cellHead
 * @property {number} cellRow
 * @property {boolean} returnLse
 * @property {number} scores stage
 * @property {WeightsWork | null} [weights] what is wanted of the weights, in place of the output
 * @property {Upstream | null} [upstream] what the backward pass needs, for gradients in place of the output
 */

/**
 * @typedef {object} WeightsWork
 * @property {import('../weights/kinds.js').Request} request rows and cells of rows counted from the slice's first row
 * @property {Float32Array | null} lse (batch, heads, rows)
 * @property {boolean} sums whether sums are wanted in double precision
 */

/**
 * What attention() gave, and its gradients: (batch, heads, rows, headDimV) and (batch, heads, rows).
 * @typedef {object} Upstream
 * @property {Float32Array} out
 * @property {Float32Array} lse
 * @property {Float32Array} dOut
 * @property {Float32Array | null} dLse
 * @property {boolean} sinks whether gradients of the sinks are wanted
 */

/** What a slice of gradients gives. @typedef {import('../gradients/compute.js').RawGradients & { milliseconds: number }} GradientsSliceResult */

/**
 * What a slice of weights gives: lines (batch, heads, lines, width).
 * @typedef {object} WeightsSliceResult
 * @property {Float32Array | Float64Array} out values, or sums
 * @property {Int32Array | undefined} indices
 * @property {Float32Array | undefined} entropy
 * @property {number} milliseconds
 */

/**
 * @typedef {object} SliceResult
 * @property {Float32Array} out (batch, heads, rows, headDimV)
 * @property {Float32Array | undefined} lse (batch, heads, rows)
 * @property {Float32Array | undefined} scores (batch, heads, rows, seqlen)
 * @property {number} milliseconds
 */

/** @typedef {SliceResult | WeightsSliceResult | GradientsSliceResult} AnySliceResult */

/**
 * The large arrays of a slice, which are sent without a copy.
 * @param {SliceWork} work
 */
export const arraysOf = ({ query, mask, bias, weights, upstream }) => [
  query,
  mask?.data,
  bias?.data,
  weights?.lse,
  upstream?.out,
  upstream?.lse,
  upstream?.dOut,
  upstream?.dLse,
];

/**
 * What is transferred with a message.
 * @param {unknown[]} arrays those that are there
 * @returns {ArrayBuffer[]}
 */
export const buffersOf = (arrays) =>
  arrays.flatMap((array) => (ArrayBuffer.isView(array) ? [/** @type {ArrayBuffer} */ (array.buffer)] : []));

export class SliceRunner {
  /** @type {Runtime} */
  #runtime;
  /** The keys without their elements, which lie in wasm memory. @type {Omit<Keys, 'key' | 'value'> | null} */
  #keys = null;
  #key = { pointer: 0, bytes: 0 };
  #value = { pointer: 0, bytes: 0 };
  /** The block mask, with the pointers of its arrays. @type {import('../options.js').Blocks | null} */
  #blocks = null;

  /** @param {Runtime} runtime */
  constructor(runtime) {
    this.#runtime = runtime;
  }

  /**
   * Takes the keys and values of the slices that follow.
   * @param {Keys} keys
   * @throws RangeError `out-of-memory`
   */
  hold(keys) {
    this.#freeKeys();
    const { key, value, ...rest } = keys;
    this.#key = this.#place(key, rest.keyDtype);
    this.#value = this.#place(value, rest.valueDtype);
    this.#keys = rest;
  }

  /**
   * Takes the block mask of the slices that follow.
   * @param {import('../options.js').Blocks} blocks
   * @throws RangeError `out-of-memory`
   */
  holdBlocks(blocks) {
    this.#freeBlocks();
    const { tiles, bits } = blocks;
    const bytes = (tiles.length + bits.length) * 4;
    const tilesPointer = this.#runtime.allocate(bytes, 'a block mask');
    const bitsPointer = tilesPointer + tiles.length * 4;
    this.#runtime.ints.set(tiles, tilesPointer / 4);
    this.#runtime.ints.set(bits, bitsPointer / 4);
    this.#blocks = { ...blocks, tilesPointer, bitsPointer };
  }

  /** Lets go of all that it holds. */
  free() {
    this.#freeKeys();
    this.#freeBlocks();
  }

  #freeBlocks() {
    if (!this.#blocks) return;
    const { tilesPointer, tiles, bits } = this.#blocks;
    this.#runtime.release(/** @type {number} */ (tilesPointer), (tiles.length + bits.length) * 4);
    this.#blocks = null;
  }

  #freeKeys() {
    for (const { pointer, bytes } of [this.#key, this.#value]) if (pointer) this.#runtime.release(pointer, bytes);
    this.#key = this.#value = { pointer: 0, bytes: 0 };
    this.#keys = null;
  }

  /**
   * @param {SliceWork} work
   * @param {boolean} own whether the query's array may be written over: the result then takes its place, where it fits
   * @returns {AnySliceResult}
   */
  run(work, own) {
    const start = performance.now();
    const keys = this.#keys;
    if (!keys) throw new Error('a slice came before its keys');
    const call = callOf(work, keys);
    const { batch, heads, seqlen, headDim, headDimV } = keys;
    call.key = operand(nothing, keys.keyDtype, [batch, heads, seqlen, headDim], this.#key.pointer);
    call.value = operand(nothing, keys.valueDtype, [batch, heads, seqlen, headDimV], this.#value.pointer);
    call.blockMask = work.blocks ? this.#blocks : null;
    const results = work.weights
      ? this.#weigh(call, work.weights)
      : work.upstream
        ? this.#differentiate(call, work.upstream)
        : this.#attend(call, work, own);
    return { ...results, milliseconds: performance.now() - start };
  }

  /**
   * @param {AttentionCall} call
   * @param {Upstream} upstream
   */
  #differentiate(call, { out, lse, dOut, dLse, sinks }) {
    const { batch, numHeads, seqlenQ, headDimV } = call;
    const rows = [batch, numHeads, seqlenQ];
    return computeGradients(this.#runtime, {
      call,
      sinks: sinks ? call.sinks : null,
      out: operand(out, 'float32', [...rows, headDimV], 0),
      lse: operand(lse, 'float32', rows, 0),
      dOut: operand(dOut, 'float32', [...rows, headDimV], 0),
      dLse: dLse && operand(dLse, 'float32', rows, 0),
    });
  }

  /**
   * @param {AttentionCall} call
   * @param {SliceWork} work
   * @param {boolean} own as for run()
   */
  #attend(call, { query }, own) {
    const shape = outShape(call);
    const result = compute(this.#runtime, call, shape, own ? outOver(query, shape) : newOut());
    return { out: result.out.data, lse: result.lse?.data, scores: result.scores?.data };
  }

  /**
   * @param {AttentionCall} call
   * @param {WeightsWork} work
   */
  #weigh(call, { request, lse, sums: wanted }) {
    const { batch, numHeads, seqlenQ } = call;
    const inputs = new Inputs(this.#runtime, call, lse && operand(lse, 'float32', [batch, numHeads, seqlenQ], 0));
    try {
      const heads = Int32Array.from({ length: numHeads }, (_, h) => h);
      const count = product(request.name, [batch, numHeads, request.lines, request.width]);
      const { values, indices, entropy, sums } = inputs.compute(heads, request, count, wanted);
      return { out: sums ?? values, indices: indices ?? undefined, entropy: entropy ?? undefined };
    } finally {
      inputs.free();
    }
  }

  /**
   * @param {Float32Array | Uint16Array} data
   * @param {DType} dtype
   */
  #place(data, dtype) {
    // Weights have no values.
    if (data.length === 0) return { pointer: 0, bytes: 0 };
    const block = { pointer: this.#runtime.allocate(data.byteLength, 'keys and values'), bytes: data.byteLength };
    copyIn(this.#runtime, operand(data, dtype, [data.length], 0), block.pointer);
    return block;
  }
}

const nothing = /* @__PURE__ */ new Float32Array(0);
