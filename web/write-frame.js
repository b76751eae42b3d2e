// Writes the call frame, and the short arrays of a call that go into wasm memory with it: lengths, ids, slopes, tables. The module reads
// them already when it is asked for the workspace's size.

import { alignCodes, commonFields, dtypeCodes, field, frameFields } from './frame.js';

/**
 * @typedef {import('./operand.js').Operand} Operand
 * @typedef {import('./options.js').AttentionCall} AttentionCall
 * @typedef {import('./options.js').Storage} Storage
 * @typedef {import('./runtime.js').Runtime} Runtime
 */

/** The unlimited window bound in a frame. */
const unlimited = -1;

/** @param {{ length: number } | null | undefined} numbers */
const bytesOf = (numbers) => (numbers ? numbers.length * 4 : 0);

/**
 * Bytes of a call's short arrays.
 * @param {AttentionCall} call
 */
export function arrayBytes(call) {
  let bytes = bytesOf(call.queryLengths) + bytesOf(call.kvLengths) + bytesOf(call.queryOffsets);
  if (isPlain(call)) return bytes;
  const { blockMask, storage } = call;
  bytes += bytesOf(call.alibiSlopes?.data) + bytesOf(call.sinks?.data);
  bytes += bytesOf(call.querySegments?.data) + bytesOf(call.keySegments?.data);
  bytes += bytesOf(call.queryStarts) + bytesOf(call.keyStarts);
  if (blockMask && !blockMask.tilesPointer) bytes += bytesOf(blockMask.tiles) + bytesOf(blockMask.bits);
  return bytes + bytesOf(storage?.pages) + bytesOf(storage?.heldFrom);
}

/**
 * Whether all the rare fields are 0.
 * @param {AttentionCall} call
 */
const isPlain = (call) =>
  call.chunk === 0 &&
  call.globalKeys === 0 &&
  call.dropout === 0 &&
  !call.storage &&
  !call.alibiSlopes &&
  !call.sinks &&
  !call.querySegments &&
  !call.queryStarts &&
  !call.blockMask;

/**
 * Everything but the addresses of the operands and results.
 * @param {Runtime} runtime
 * @param {AttentionCall} call
 * @param {number} at where the short arrays go
 */
export function writeFrame(runtime, call, at) {
  const { mask, bias, storage } = call;
  const frame = runtime.doubles;
  const f = runtime.frame / 8;
  const { queryLengths, kvLengths, queryOffsets } = call;
  frame[f + field.query_lengths] = 0;
  frame[f + field.kv_lengths] = 0;
  frame[f + field.query_offsets] = 0;
  if (queryLengths) at = putArray(runtime, field.query_lengths, queryLengths, at);
  if (kvLengths) at = putArray(runtime, field.kv_lengths, kvLengths, at);
  if (queryOffsets) at = putArray(runtime, field.query_offsets, queryOffsets, at);
  frame[f + field.workspace] = 0;
  frame[f + field.workspace_bytes] = 0;

  frame[f + field.query_dtype] = floatCode(call.query);
  frame[f + field.key_dtype] = storage ? dtypeCodes[storage.keyDtype] : floatCode(call.key);
  frame[f + field.value_dtype] = storage ? dtypeCodes[storage.valueDtype] : floatCode(call.value);
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
  frame.fill(0, f + commonFields, f + frameFields.length);
  if (!isPlain(call)) writeRare(runtime, call, at);
}

/**
 * @param {Runtime} runtime
 * @param {AttentionCall} call
 * @param {number} at where the next short array goes
 */
function writeRare(runtime, call, at) {
  const { alibiSlopes, sinks, blockMask, storage } = call;
  const frame = runtime.doubles;
  const f = runtime.frame / 8;
  at = putArray(runtime, field.alibi_slopes, alibiSlopes?.data, at);
  frame[f + field.alibi_batch] = batchOf(alibiSlopes);
  at = putArray(runtime, field.sinks, sinks?.data, at);
  frame[f + field.sink_batch] = batchOf(sinks);
  at = putArray(runtime, field.query_segments, call.querySegments?.data, at);
  at = putArray(runtime, field.key_segments, call.keySegments?.data, at);
  at = putArray(runtime, field.query_starts, call.queryStarts, at);
  at = putArray(runtime, field.key_starts, call.keyStarts, at);
  frame[f + field.sequences] = call.queryStarts ? call.queryStarts.length - 1 : 0;
  if (blockMask) {
    if (blockMask.tilesPointer) {
      frame[f + field.block_tiles] = blockMask.tilesPointer;
      frame[f + field.block_bits] = blockMask.bitsPointer ?? 0;
    } else {
      at = putArray(runtime, field.block_tiles, blockMask.tiles, at);
      at = putArray(runtime, field.block_bits, blockMask.bits, at);
    }
    frame[f + field.block_batch] = blockMask.batch;
    frame[f + field.block_heads] = blockMask.heads;
    frame[f + field.block_rows] = blockMask.rows;
  }
  frame[f + field.chunk] = call.chunk;
  frame[f + field.global_keys] = call.globalKeys;
  frame[f + field.dropout] = call.dropout;
  frame[f + field.seed_low] = call.seedLow;
  frame[f + field.seed_high] = call.seedHigh;
  frame[f + field.cell_batch] = call.cellBatch;
  frame[f + field.cell_head] = call.cellHead;
  frame[f + field.cell_row] = call.cellRow;
  if (storage) writeStorage(runtime, storage, at);
}

/**
 * @param {Runtime} runtime
 * @param {Storage} storage
 * @param {number} at
 */
function writeStorage(runtime, storage, at) {
  const frame = runtime.doubles;
  const f = runtime.frame / 8;
  frame[f + field.key_scales] = storage.keyScales;
  frame[f + field.value_scales] = storage.valueScales;
  at = putArray(runtime, field.pages, storage.pages, at);
  putArray(runtime, field.held_from, storage.heldFrom, at);
  for (let i = 0; i < 3; i++) {
    frame[f + field.key_batch_stride + i] = storage.keyStrides[i];
    frame[f + field.value_batch_stride + i] = storage.valueStrides[i];
  }
  frame[f + field.page_size] = storage.pageSize;
  frame[f + field.pages_per_row] = storage.pagesPerRow;
  frame[f + field.ring_begin] = storage.ringBegin;
  frame[f + field.ring_size] = storage.ringSize;
}

/** @param {import('./option-arrays.js').Numbers<Float32Array> | null} perHead */
const batchOf = (perHead) => (!perHead ? 0 : perHead.shape.length === 2 ? perHead.shape[0] : 1);

/**
 * @param {Runtime} runtime
 * @param {number} index of the field that says where the numbers lie
 * @param {Int32Array | Uint32Array | Float32Array | null | undefined} numbers
 * @param {number} at
 * @returns {number} where the next ones go
 */
function putArray(runtime, index, numbers, at) {
  runtime.doubles[runtime.frame / 8 + index] = numbers ? at : 0;
  if (!numbers) return at;
  if (numbers instanceof Float32Array) runtime.floats.set(numbers, at / 4);
  // The same 32 bits, signed or not.
  else runtime.ints.set(new Int32Array(numbers.buffer, numbers.byteOffset, numbers.length), at / 4);
  return at + numbers.length * 4;
}

/** @param {Operand} operand */
const floatCode = ({ dtype }) => dtypeCodes[/** @type {keyof typeof dtypeCodes} */ (dtype)];
