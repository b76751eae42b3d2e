// The border of linear attention.

import { align64, Block } from '../block.js';
import { dtypeCodes, layoutCodes } from '../frame.js';
import { copyIn, settle } from '../operand.js';
import { copyOut } from '../output.js';
import { product } from '../tensor.js';

/**
 * @typedef {import('../operand.js').Operand} Operand
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('../tensor.js').Tensor} Tensor
 * @typedef {import('./call.js').LinearCall} LinearCall
 */

/**
 * Runs a call that has been checked.
 * @param {Runtime} runtime
 * @param {LinearCall} call
 * @returns {{ out: Tensor, state?: Tensor }}
 * @throws RangeError `out-of-memory`, with nothing changed
 */
export function compute(runtime, call) {
  const { outShape, stateShape, returnState } = call;
  const outCount = product('out', outShape);
  const stateCount = product('state', stateShape);
  const results = { out: outCount * 4, nextState: returnState ? stateCount * 4 : 0 };
  return run(runtime, call, 'linearAttention', [], results, (at) => {
    const out = copyOut(runtime, at.out, outCount, outShape);
    return returnState ? { out, state: copyOut(runtime, at.nextState, stateCount, stateShape) } : { out };
  });
}

/**
 * Places a call's arrays in wasm memory, in the arena where they fit, and runs it.
 * @template {string} R
 * @template T
 * @param {Runtime} runtime
 * @param {LinearCall} call
 * @param {'linearAttention' | 'linearAttentionBackward'} name of the module's function
 * @param {readonly [string, Operand][]} more inputs beside those of the call
 * @param {Record<R, number>} results bytes of each; 0: not wanted
 * @param {(at: Record<R, number>) => T} read makes the results from where they lie
 * @returns {T}
 */
export function run(runtime, call, name, more, results, read) {
  const { exports } = runtime;
  const inputs = [...call.operands, ...more];
  const names = /** @type {Record<string, string>} */ ({ ...call.names, step: 'dt' });
  for (const [what, operand] of inputs) settle(names[what] ?? what, operand, runtime);
  const block = new Block();
  const places = inputs.map(([, operand]) => block.input(operand));
  /** @type {[Float32Array | Uint8Array | null, number][]} */
  const arrays = [call.rate, call.skip, call.keyMask].map((array) => [array, array ? block.take(array.byteLength) : 0]);
  const wanted = /** @type {R[]} */ (Object.keys(results));
  const offsets = wanted.map((result) => (results[result] ? block.take(results[result]) : -1));
  // Beyond the address space there is no pointer to ask the module with.
  if (runtime.arena + block.bytes >= 2 ** 32) runtime.afford(block.bytes, call.name);

  const pointersFrom = (/** @type {number} */ base) => {
    /** @type {Record<string, number>} */
    const pointers = {};
    inputs.forEach(([what, { pointer }], i) => (pointers[what] = pointer || base + places[i]));
    const [rate, skip, keyMask] = arrays.map(([array, at]) => (array ? base + at : 0));
    wanted.forEach((result, i) => (pointers[result] = offsets[i] < 0 ? 0 : base + offsets[i]));
    return { ...pointers, rate, skip, keyMask };
  };
  writeFrame(runtime, call, pointersFrom(runtime.arena), 0, 0);
  // The module reads rates and skips only when it computes.
  const needed = exports[`${name}WorkspaceBytes`](runtime.frame);
  if (needed < 0) runtime.check(needed, call.name);
  const bytes = block.bytes + align64(needed);
  const own = bytes > runtime.arenaBytes;
  const base = own ? runtime.allocate(bytes, call.name) : runtime.arena;
  try {
    const pointers = pointersFrom(base);
    writeFrame(runtime, call, pointers, base + block.bytes, needed);
    inputs.forEach(([, operand], i) => {
      if (places[i] >= 0) copyIn(runtime, operand, base + places[i]);
    });
    for (const [array, at] of arrays) {
      if (array) runtime.bytes.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), base + at);
    }
    const status = exports[name](runtime.frame);
    if (status !== 0) runtime.check(status, call.name);
    return read(/** @type {any} */ (pointers));
  } finally {
    if (own) runtime.release(base, bytes);
  }
}

/** Pointers of a backward call. */
const gradientNames = [
  'dOut',
  'dState',
  'dQuery',
  'dKey',
  'dValue',
  'dDecay',
  'dStep',
  'dRate',
  'dSkip',
  'dFirstState',
];

/**
 * In the order of LinearField in src/binding/linear_frame.hpp.
 * @param {Runtime} runtime
 * @param {LinearCall} call
 * @param {Record<string, number>} at pointers
 * @param {number} workspace
 * @param {number} bytes
 */
function writeFrame(runtime, call, at, workspace, bytes) {
  const { inputs, decay, beta, step } = call;
  const dtype = (/** @type {Operand | null} */ operand) =>
    operand ? dtypeCodes[/** @type {keyof typeof dtypeCodes} */ (operand.dtype)] : 0;
  const operands = [inputs.query, inputs.key, inputs.value, decay, beta, step];
  runtime.doubles.set(
    [
      ...['query', 'key', 'value', 'decay', 'beta', 'step'].map((name) => at[name] ?? 0),
      ...operands.map(dtype),
      ...['rate', 'skip', 'keyMask', 'state', 'nextState', 'out'].map((name) => at[name] ?? 0),
      call.batch,
      call.heads,
      call.keyHeads,
      call.states,
      call.seqlenQ,
      call.seqlenKv,
      call.headDim,
      call.headDimV,
      call.decayColumns,
      call.betaHeads,
      call.blhd ? layoutCodes.blhd : layoutCodes.bhld,
      call.causal ? 1 : 0,
      call.normalised ? 1 : 0,
      call.scale,
      call.epsilon,
      call.chunk,
      workspace,
      bytes,
      ...gradientNames.map((name) => at[name] ?? 0),
    ],
    runtime.frame / 8,
  );
}
