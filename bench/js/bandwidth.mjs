/**
 * How fast one core reads memory in this engine: a loop that loads numbers and adds them up, over as many bytes as a decode
 * case's keys and values have, which have to be read once for each token.
 */

import { assemble, op } from './assembler.mjs';
import { ARITHMETIC, totalOf } from './ceiling.mjs';
import { median } from './statistics.mjs';

/** @typedef {import('./ceiling.mjs').Arithmetic} Arithmetic */
/** @typedef {import('sdpa').Variant} Variant */

/**
 * Places that are read in turn, each a part of the whole and read from its start to its end. Processors read ahead in each of
 * several such streams, and from memory one alone is a third slower; from more than these nothing is gained.
 */
const STREAMS = 4;

/** Loads in one turn of the loop from each stream: a cache line with SIMD. */
const LOADS = 4;

/** Accumulators: enough that the loads are the limit, not the latency of an addition. */
const CHAINS = 8;

const PAGE = 65536;

/** A sample is as many passes as take so long, and a measurement a few samples. */
const SAMPLE_MS = 4;
const SAMPLES = 3;
const WARM_UP_MS = 100;

/** Numbers 0, 1 and 2 in turn: small, so that an accumulator is exact below 2^24, which is half a gigabyte of single numbers. */
const PERIOD = 3;

/** @param {Arithmetic} arithmetic @returns {number} bytes that one turn of the loop reads */
export const turnBytes = ({ lanes }) => STREAMS * LOADS * lanes * 4;

/**
 * @param {Arithmetic} arithmetic
 * @param {number} bytes whole turns of the loop
 * @returns {Uint8Array<ArrayBuffer>} a module with `read()`, the sum of all numbers in the bytes, and its memory
 */
export function bandwidthModule(arithmetic, bytes) {
  const { type, lanes, load, add } = arithmetic;
  const { get, set, tee } = op.local;
  const [address, first] = [0, 1];
  const stream = bytes / STREAMS;
  const width = lanes * 4;
  const round = Array.from({ length: STREAMS * LOADS }, (_, i) => {
    const acc = first + (i % CHAINS);
    const offset = Math.floor(i / LOADS) * stream + (i % LOADS) * width;
    return set(acc, add(get(acc), load(get(address), offset)));
  }).flat();
  const next = tee(address, op.i32.add(get(address), op.i32.const(LOADS * width)));
  return assemble({
    pages: Math.ceil(bytes / PAGE),
    functions: [
      {
        name: 'read',
        params: [],
        result: 'f32',
        locals: ['i32', ...Array(CHAINS).fill(type)],
        body: [...op.loopWhile(round, op.i32.sub(op.i32.const(stream), next)), ...totalOf(arithmetic, first, CHAINS)],
      },
    ],
  });
}

export class Bandwidth {
  /** @type {() => number} one pass over all bytes */
  #read;
  #passes = 1;

  /**
   * @param {Variant} variant
   * @param {number} bytes about so many are read; the memory goes with this object
   */
  constructor(variant, bytes) {
    const arithmetic = ARITHMETIC[variant];
    const step = turnBytes(arithmetic);
    /** Bytes that are read: whole turns of the loop. */
    this.bytes = Math.max(1, Math.floor(bytes / step)) * step;
    const code = bandwidthModule(arithmetic, this.bytes);
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(code));
    this.#read = /** @type {any} */ (exports.read);
    this.#verify(/** @type {WebAssembly.Memory} */ (exports.memory).buffer);
    const start = performance.now();
    let passes = 0;
    do {
      this.#read();
      passes++;
    } while (performance.now() - start < WARM_UP_MS);
    this.#passes = Math.max(1, Math.ceil((SAMPLE_MS * passes) / (performance.now() - start)));
  }

  /**
   * Fills the memory and makes sure that the loop reads all of it, once.
   * @param {ArrayBuffer} buffer
   */
  #verify(buffer) {
    const numbers = new Float32Array(buffer, 0, this.bytes / 4);
    let sum = 0;
    for (let i = 0; i < numbers.length; i++) sum += numbers[i] = i % PERIOD;
    const found = this.#read();
    // Only the sum of the accumulators rounds.
    if (!(Math.abs(found - sum) <= 1e-6 * sum)) {
      throw new Error(`the loop that measures the bandwidth sums ${this.bytes} bytes up to ${found}, not ${sum}`);
    }
  }

  /** @returns {number} GB/s, as measured now */
  measure() {
    const samples = Array.from({ length: SAMPLES }, () => {
      const start = performance.now();
      for (let i = 0; i < this.#passes; i++) this.#read();
      return performance.now() - start;
    });
    return (this.#passes * this.bytes) / median(samples) / 1e6;
  }
}
