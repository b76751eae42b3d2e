/** Measures what calls take of the memory, each in a fresh process, and prints it. */

import { BACKWARD_MEMORY_CASE, caseName, flops, MEMORY_CASE } from './cases.mjs';
import { measureBackwardMemory, measureMemory } from './measure.mjs';
import { digits, megabytes } from './text.mjs';

/** @typedef {import('./bench.mjs').Results} Results */
/** @typedef {import('sdpa').Variant} Variant */

/** Most bytes beside inputs and result that the case of --extra-memory may take. */
const MEMORY_LIMIT = 64e6;

const memoryName = `memory/${caseName(MEMORY_CASE)}`;

export const BACKWARD_MEMORY_NAME = `memory/${caseName(BACKWARD_MEMORY_CASE)}`.replace('prefill', 'backward');

/**
 * @param {readonly Variant[]} variants that run here
 * @param {Results} results filled
 * @param {(text: string) => void} print
 */
export async function runBackwardMemory(variants, results, print) {
  print(`${BACKWARD_MEMORY_NAME}  (forward and backward on arrays)`);
  results.backwardMemory = [];
  for (const variant of variants) {
    const found = await measureBackwardMemory(variant);
    results.backwardMemory.push(found);
    const { arrays, allocated, resident, ms } = found;
    print(
      `  ${variant.padEnd(8)}${megabytes(resident)} in all: ${megabytes(arrays)} of inputs, results and gradients, ` +
        `${megabytes(allocated)} of wasm memory for copies and work; ${digits(ms)} ms`,
    );
  }
}

/**
 * The longest call.
 * @param {Results} results filled
 * @param {(text: string) => void} print
 * @throws Error where it takes more than it may
 */
export async function runExtraMemory(results, print) {
  const memory = (results.memory = await measureMemory('simd'));
  const { ms, operands, extra, wasm, wasmExtra } = memory;
  const gflops = flops(MEMORY_CASE) / ms / 1e6;
  print(
    `${memoryName}\n  simd  ${megabytes(extra)} beside ${megabytes(operands)} of inputs and result; wasm memory ${megabytes(wasm)}, ` +
      `${megabytes(wasmExtra)} beside them; ${digits(ms)} ms, ${digits(gflops)} GFLOP/s`,
  );
  if (Math.max(extra, wasmExtra) >= MEMORY_LIMIT) {
    throw new Error(`this is more than the ${megabytes(MEMORY_LIMIT)} that are allowed beside inputs and result`);
  }
}
