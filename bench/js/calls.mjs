/** Calls on resident tensors and on plain arrays, within one build's process. */

import { ARRAYS_CASE, SMALLEST_CASE } from './cases.mjs';
import { callsPerTurn, repeatFor, startMeter, WARM_UP_MS } from './pace.mjs';
import { Problem } from './problem.mjs';
import { median } from './statistics.mjs';

/** @typedef {import('sdpa').Sdpa} Sdpa */
/** @typedef {import('sdpa').SdpaTensor} SdpaTensor */

/** @param {SdpaTensor} tensor */
const plain = ({ data, shape }) => ({ data: Float32Array.from(data), shape });

/** @param {SdpaTensor} tensor of float32 */
const floats = ({ data }) => /** @type {Float32Array} */ (data);

/** @param {Problem} problem @returns the operands as JavaScript arrays of their own */
export const plainOperands = ({ query, key, value }) => ({
  query: plain(query),
  key: plain(key),
  value: plain(value),
});

/** @param {Float32Array} a @param {Float32Array} b @returns {boolean} */
export const sameBits = (a, b) => bytesOf(a).equals(bytesOf(b));

/** @param {Float32Array} array */
const bytesOf = ({ buffer, byteOffset, byteLength }) => Buffer.from(buffer, byteOffset, byteLength);

/**
 * @param {() => void} call
 * @param {number} count
 * @returns {number} ms a call
 */
function batch(call, count) {
  const start = performance.now();
  for (let i = 0; i < count; i++) call();
  return (performance.now() - start) / count;
}

/**
 * The smallest call: 4×4, D 8, one head.
 * @param {Sdpa} sdpa
 * @returns {{ resident: number, arrays: number }} µs a call, from and to wasm memory or JavaScript arrays
 */
export function timeSmallest(sdpa) {
  const problem = new Problem(sdpa, SMALLEST_CASE);
  problem.run();
  problem.check();
  const { query, key, value } = plainOperands(problem);
  const options = { out: new Float32Array(problem.out.data.length) };
  const result = {
    resident: microseconds(() => problem.run()),
    arrays: microseconds(() => sdpa.attention(query, key, value, options)),
  };
  problem.dispose();
  return result;
}

/**
 * @param {() => void} call too short to be timed alone
 * @returns {number} median of some batches
 */
function microseconds(call) {
  repeatFor(call, WARM_UP_MS);
  return 1000 * median(Array.from({ length: 15 }, () => batch(call, 2000)));
}

/** @typedef {{ resident: number, arrays: number }} ArraysTurn ms a call */

/**
 * A call on JavaScript arrays, whose result is a new one, against the same call from and to wasm memory.
 * @param {Sdpa} sdpa
 * @param {number} turns each has a batch of both, and every other begins with the arrays
 * @returns {{ turns: ArraysTurn[], load: import('./pace.mjs').Load }}
 */
export function timeArrays(sdpa, turns) {
  const problem = new Problem(sdpa, ARRAYS_CASE);
  const { query, key, value } = plainOperands(problem);
  const resident = () => problem.run();
  const arrays = () => sdpa.attention(query, key, value);
  resident();
  problem.check();
  if (!sameBits(arrays().out.data, floats(problem.out))) {
    throw new Error('arrays and resident tensors give different results');
  }
  repeatFor(resident, WARM_UP_MS);
  const count = callsPerTurn(repeatFor(arrays, WARM_UP_MS));
  const meter = startMeter();
  const timed = Array.from({ length: turns }, (_, turn) => {
    if (turn % 2) {
      const later = batch(arrays, count);
      return { resident: batch(resident, count), arrays: later };
    }
    return { resident: batch(resident, count), arrays: batch(arrays, count) };
  });
  problem.dispose();
  return { turns: timed, load: meter() };
}
