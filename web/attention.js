// attention(): places one call's arrays in wasm memory, runs it, and hands the results back.

import { align64 } from './block.js';
import { field } from './frame.js';
import { copyIn, settleAll } from './operand.js';
import { copyOut, emptyResult, readOut, receive, result } from './output.js';
import { product } from './tensor.js';
import { lseShape, outShape, readCall, scoresShape } from './validate.js';
import { arrayBytes, writeFrame } from './write-frame.js';

/**
 * @typedef {import('./options.js').AttentionCall} AttentionCall
 * @typedef {import('./options.js').AttentionOptions} AttentionOptions
 * @typedef {import('./operand.js').Operand} Operand
 * @typedef {import('./output.js').Out} Out
 * @typedef {import('./tensor.js').SdpaTensor} SdpaTensor
 * @typedef {import('./tensor.js').Tensor} Tensor
 * @typedef {import('./runtime.js').Runtime} Runtime
 */

/**
 * What attention() gives: out, and what was asked for besides.
 * @template {AttentionOptions} [O={}]
 * @typedef {{
 *   out: O extends { out: SdpaTensor } ? SdpaTensor : Tensor,
 *   lse: O extends { returnLse: true } ? Tensor : Tensor | undefined,
 *   scores: O extends { scores: string } ? Tensor : Tensor | undefined,
 * }} AttentionResult
 */

/** Where a call's arrays lie: offsets from the start of one block, which is the arena or allocated for the call. */
class Placement {
  bytes = 0;

  /** @param {AttentionCall} call @param {boolean} outStays @param {number} out @param {number} lse @param {number} scores elements */
  constructor(call, outStays, out, lse, scores) {
    this.query = this.#input(call.query);
    this.key = this.#input(call.key);
    this.value = this.#input(call.value);
    this.mask = this.#input(call.mask);
    this.bias = this.#input(call.bias);
    this.out = outStays ? 0 : this.#take(out * 4);
    this.lse = this.#take(lse * 4);
    this.scores = this.#take(scores * 4);
    this.workspace = this.bytes;
  }

  /** @param {number} bytes */
  #take(bytes) {
    const at = this.bytes;
    this.bytes += align64(bytes);
    return at;
  }

  /** @param {Operand | null} operand */
  #input(operand) {
    return operand && operand.pointer === 0 ? this.#take(operand.bytes) : 0;
  }
}

/**
 * @param {Runtime} runtime
 * @param {unknown} query
 * @param {unknown} key
 * @param {unknown} value
 * @param {unknown} options
 * @returns {{ out: any, lse?: Tensor, scores?: Tensor }}
 */
export function attention(runtime, query, key, value, options) {
  void runtime.exports; // throws once the instance is disposed of
  return run(runtime, readCall(runtime, query, key, value, options));
}

/**
 * Computes a call that has just been read.
 * @param {Runtime} runtime
 * @param {AttentionCall} call
 * @returns {{ out: any, lse?: Tensor, scores?: Tensor }}
 */
export function run(runtime, call) {
  const shape = outShape(call);
  const out = readOut(runtime, call, shape, product('out', shape));
  settleAll(runtime, call);
  return compute(runtime, call, shape, out);
}

/**
 * Runs a call that has been checked.
 * @param {Runtime} runtime
 * @param {AttentionCall} call
 * @param {number[]} shape of out
 * @param {Out} out
 * @returns {{ out: any, lse?: Tensor, scores?: Tensor }}
 */
export function compute(runtime, call, shape, out) {
  const { exports } = runtime;
  const count = product('out', shape);
  const lseCount = call.returnLse ? product('lse', lseShape(call)) : 0;
  const scoresCount = call.scores ? product('scores', scoresShape(call)) : 0;
  if (count === 0 || call.seqlenKv === 0) return emptyResult(runtime, call, shape, count, out);

  const place = new Placement(call, out.pointer !== 0, count, lseCount, scoresCount);
  // The frame and the short arrays go first: the module checks them when it is asked for the workspace's size.
  const shortBytes = align64(arrayBytes(call));
  const shortInArena = shortBytes <= runtime.arenaBytes;
  // Beyond the address space there is no pointer to ask the module with.
  if (runtime.arena + shortBytes + place.bytes >= 2 ** 32) runtime.afford(shortBytes + place.bytes, 'attention');
  let short = 0;
  let base = 0;
  let allocated = 0;
  try {
    short = shortInArena ? runtime.arena : runtime.allocate(shortBytes, 'attention');
    const arena = shortInArena ? runtime.arena + shortBytes : runtime.arena;
    const room = runtime.arena + runtime.arenaBytes - arena;
    writeFrame(runtime, call, short);
    writePointers(runtime, call, out, place, arena);
    const workspace = exports.attentionWorkspaceBytes(runtime.frame);
    if (workspace < 0) runtime.check(workspace, 'attention');
    const needed = place.workspace + workspace;
    if (needed <= room) base = arena;
    else {
      base = runtime.allocate(needed, 'attention');
      allocated = needed;
      writePointers(runtime, call, out, place, base);
    }
    const frame = runtime.doubles;
    const f = runtime.frame / 8;
    frame[f + field.workspace] = base + place.workspace;
    frame[f + field.workspace_bytes] = workspace;

    putIn(runtime, call.query, base + place.query);
    putIn(runtime, call.key, base + place.key);
    putIn(runtime, call.value, base + place.value);
    putIn(runtime, call.mask, base + place.mask);
    putIn(runtime, call.bias, base + place.bias);

    const status = exports.attention(runtime.frame);
    if (status !== 0) runtime.check(status, 'attention');

    const lse = call.returnLse ? copyOut(runtime, base + place.lse, lseCount, lseShape(call)) : undefined;
    const scores = call.scores ? copyOut(runtime, base + place.scores, scoresCount, scoresShape(call)) : undefined;
    return result(receive(runtime, out, base + place.out, count, shape), lse, scores);
  } finally {
    if (allocated) runtime.release(base, allocated);
    if (!shortInArena && short) runtime.release(short, shortBytes);
  }
}

/**
 * @param {Runtime} runtime
 * @param {Operand | null} operand
 * @param {number} pointer
 */
function putIn(runtime, operand, pointer) {
  if (operand && operand.pointer === 0) copyIn(runtime, operand, pointer);
}

/**
 * The arrays' addresses in the frame.
 * @param {Runtime} runtime
 * @param {AttentionCall} call
 * @param {Out} out
 * @param {Placement} place
 * @param {number} base start of the block
 */
function writePointers(runtime, call, out, place, base) {
  const { storage } = call;
  const frame = runtime.doubles;
  const f = runtime.frame / 8;
  frame[f + field.query] = call.query.pointer || base + place.query;
  frame[f + field.key] = storage ? storage.keyPointer : call.key.pointer || base + place.key;
  frame[f + field.value] = storage ? storage.valuePointer : call.value.pointer || base + place.value;
  frame[f + field.out] = out.pointer || base + place.out;
  frame[f + field.lse] = call.returnLse ? base + place.lse : 0;
  frame[f + field.scores] = call.scores ? base + place.scores : 0;
  frame[f + field.mask] = call.mask ? call.mask.pointer || base + place.mask : 0;
  frame[f + field.bias] = call.bias ? call.bias.pointer || base + place.bias : 0;
}
