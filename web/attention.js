// attention(): places one call's arrays in wasm memory, runs it, and hands the results back.

import { alignCodes, dtypeCodes, field } from './frame.js';
import { copyIn, settleAll } from './operand.js';
import { copyOut, emptyResult, readOut, receive, result } from './output.js';
import { product } from './tensor.js';
import { lseShape, outShape, readCall, scoresShape } from './validate.js';

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
 * @template {AttentionOptions} [O={}]
 * @typedef {{
 *   out: O extends { out: SdpaTensor } ? SdpaTensor : Tensor,
 *   lse: O extends { returnLse: true } ? Tensor : Tensor | undefined,
 *   scores: O extends { scores: string } ? Tensor : Tensor | undefined,
 * }} AttentionResult
 */

/** @param {number} bytes */
const align64 = (bytes) => Math.ceil(bytes / 64) * 64;

/** The unlimited window bound in a frame. */
const unlimited = -1;

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
  const call = readCall(runtime, query, key, value, options);
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
  // The frame and the per-batch numbers go first: the module checks them when it is asked for the workspace's size.
  const intBytes = align64(4 * (lengthOf(call.queryLengths) + lengthOf(call.kvLengths) + lengthOf(call.queryOffsets)));
  const intsInArena = intBytes <= runtime.arenaBytes;
  // Beyond the address space there is no pointer to ask the module with.
  if (runtime.arena + intBytes + place.bytes >= 2 ** 32) runtime.afford(intBytes + place.bytes, 'attention');
  let ints = 0;
  let base = 0;
  let allocated = 0;
  try {
    ints = intsInArena ? runtime.arena : runtime.allocate(intBytes, 'attention');
    const arena = intsInArena ? runtime.arena + intBytes : runtime.arena;
    const room = runtime.arena + runtime.arenaBytes - arena;
    writeFrame(runtime, call, ints);
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

    if (call.query.pointer === 0) copyIn(runtime, call.query, base + place.query);
    if (call.key.pointer === 0) copyIn(runtime, call.key, base + place.key);
    if (call.value.pointer === 0) copyIn(runtime, call.value, base + place.value);
    if (call.mask && call.mask.pointer === 0) copyIn(runtime, call.mask, base + place.mask);
    if (call.bias && call.bias.pointer === 0) copyIn(runtime, call.bias, base + place.bias);

    const status = exports.attention(runtime.frame);
    if (status !== 0) runtime.check(status, 'attention');

    const lse = call.returnLse ? copyOut(runtime, base + place.lse, lseCount, lseShape(call)) : undefined;
    const scores = call.scores ? copyOut(runtime, base + place.scores, scoresCount, scoresShape(call)) : undefined;
    return result(receive(runtime, out, base + place.out, count, shape), lse, scores);
  } finally {
    if (allocated) runtime.release(base, allocated);
    if (!intsInArena && ints) runtime.release(ints, intBytes);
  }
}

/** @param {Int32Array | null} numbers */
const lengthOf = (numbers) => (numbers ? numbers.length : 0);

/**
 * The arrays' addresses in the frame.
 * @param {Runtime} runtime
 * @param {AttentionCall} call
 * @param {Out} out
 * @param {Placement} place
 * @param {number} base start of the block
 */
function writePointers(runtime, call, out, place, base) {
  const frame = runtime.doubles;
  const f = runtime.frame / 8;
  frame[f + field.query] = call.query.pointer || base + place.query;
  frame[f + field.key] = call.key.pointer || base + place.key;
  frame[f + field.value] = call.value.pointer || base + place.value;
  frame[f + field.out] = out.pointer || base + place.out;
  frame[f + field.lse] = call.returnLse ? base + place.lse : 0;
  frame[f + field.scores] = call.scores ? base + place.scores : 0;
  frame[f + field.mask] = call.mask ? call.mask.pointer || base + place.mask : 0;
  frame[f + field.bias] = call.bias ? call.bias.pointer || base + place.bias : 0;
}

/**
 * Everything but the arrays' addresses.
 * @param {Runtime} runtime
 * @param {AttentionCall} call
 * @param {number} intBase where the per-batch numbers go
 */
function writeFrame(runtime, call, intBase) {
  const { mask, bias, queryLengths, kvLengths, queryOffsets } = call;
  const frame = runtime.doubles;
  const f = runtime.frame / 8;
  const ints = runtime.ints;
  let at = intBase;
  frame[f + field.query_lengths] = queryLengths ? at : 0;
  if (queryLengths) {
    ints.set(queryLengths, at / 4);
    at += queryLengths.length * 4;
  }
  frame[f + field.kv_lengths] = kvLengths ? at : 0;
  if (kvLengths) {
    ints.set(kvLengths, at / 4);
    at += kvLengths.length * 4;
  }
  frame[f + field.query_offsets] = queryOffsets ? at : 0;
  if (queryOffsets) ints.set(queryOffsets, at / 4);
  frame[f + field.workspace] = 0;
  frame[f + field.workspace_bytes] = 0;

  frame[f + field.query_dtype] = floatCode(call.query);
  frame[f + field.key_dtype] = floatCode(call.key);
  frame[f + field.value_dtype] = floatCode(call.value);
  frame[f + field.bias_dtype] = bias ? floatCode(bias) : 0;

  frame[f + field.batch] = call.batch;
  frame[f + field.num_heads] = call.numHeads;
  frame[f + field.num_kv_heads] = call.numKvHeads;
  frame[f + field.seqlen_q] = call.seqlenQ;
  frame[f + field.seqlen_kv] = call.seqlenKv;
  frame[f + field.head_dim] = call.headDim;
  frame[f + field.head_dim_v] = call.headDimV;
  frame[f + field.layout] = call.layout;
  for (let i = 0; i < 4; i++) {
    frame[f + field.mask_batch + i] = mask ? mask.shape[i] : 0;
    frame[f + field.bias_batch + i] = bias ? bias.shape[i] : 0;
  }

  frame[f + field.scale] = call.scale;
  frame[f + field.softcap] = call.softcap;
  frame[f + field.causal] = call.causal ? 1 : 0;
  frame[f + field.window_left] = call.windowLeft === Infinity ? unlimited : call.windowLeft;
  frame[f + field.window_right] = call.windowRight === Infinity ? unlimited : call.windowRight;
  frame[f + field.align] = call.align;
  frame[f + field.query_offset] = call.align === alignCodes.offset ? call.queryOffset : 0;
  frame[f + field.scores_stage] = call.scores;
}

/** @param {Operand} operand */
const floatCode = ({ dtype }) => dtypeCodes[/** @type {keyof typeof dtypeCodes} */ (dtype)];
