// The rules on options that depend on the sizes of a call, checked before anything is allocated. Options come out as the kernel wants
// them: per-head numbers with their batch, ids of every batch row, smoothSoftmax as a sink.

import { rangeError } from './errors.js';
import { alignCodes } from './frame.js';

/** @typedef {import('./options.js').AttentionCall} AttentionCall */

/** @template T @typedef {import('./option-arrays.js').Numbers<T>} Numbers */

/**
 * @param {AttentionCall} call with all sizes
 */
export function checkOptions(call) {
  if (Number.isNaN(call.scale)) call.scale = 1 / Math.sqrt(call.headDim);
  checkPosition(call);
  checkLengths('queryLengths', call.queryLengths, call.batch, 'query length', call.seqlenQ);
  checkLengths('kvLengths', call.kvLengths, call.batch, 'key length', call.seqlenKv);
  if (call.alibiSlopes) checkSlopes(call, call.alibiSlopes);
  if (call.sinks || call.smoothSoftmax) call.sinks = readSinks(call);
  if (call.querySegments && call.keySegments) {
    call.querySegments = everyRow('segmentIds.query', call.querySegments, call.batch, 'query length', call.seqlenQ);
    call.keySegments = everyRow('segmentIds.key', call.keySegments, call.batch, 'key length', call.seqlenKv);
  }
  if (call.queryStarts && call.keyStarts) {
    if (call.batch !== 1) {
      throw rangeError('shape', `cuSeqlens packs the sequences into one batch row, but the batch is ${call.batch}`);
    }
    checkEnd('cuSeqlens.query', call.queryStarts, 'query length', call.seqlenQ);
    checkEnd('cuSeqlens.key', call.keyStarts, 'key length', call.seqlenKv);
  }
  if (call.blockMask) checkBlocks(call, call.blockMask);
}

/** @param {AttentionCall} call */
function checkPosition(call) {
  if (call.offsetGiven) {
    if (call.align !== alignCodes.none) {
      throw rangeError('option', 'align and queryOffset both say where query 0 stands: give one of them');
    }
    call.align = alignCodes.offset;
    if (call.queryOffsets && call.queryOffsets.length !== call.batch) {
      throw rangeError('shape', `queryOffset has ${call.queryOffsets.length} numbers but the batch is ${call.batch}`);
    }
    return;
  }
  // Packed sequences are lower-right where nothing else is said, and a cache knows where its last token stands.
  if (call.align !== alignCodes.none || call.seqlenQ === call.seqlenKv || call.queryStarts || call.inCache) return;
  if (call.batch * call.numHeads * call.seqlenQ === 0) return; // no query, no question
  const option = positional(call);
  if (!option) return;
  throw rangeError(
    'align-required',
    `${option} needs to know where query 0 stands, because query length is ${call.seqlenQ} but key length is ${call.seqlenKv}: ` +
      "give align: 'lower-right' (the last query stands at the last key), align: 'upper-left' (query 0 at key 0) or queryOffset",
  );
}

/**
 * The first option in use that depends on where query 0 stands.
 * @param {AttentionCall} call
 */
function positional(call) {
  if (call.causal) return 'causal';
  if (call.windowLeft !== Infinity || call.windowRight !== Infinity) return 'window';
  if (call.chunk) return 'chunk';
  return call.alibiSlopes ? 'alibiSlopes' : undefined;
}

/**
 * @param {string} name
 * @param {Int32Array | null} lengths
 * @param {number} batch
 * @param {string} what
 * @param {number} most
 */
function checkLengths(name, lengths, batch, what, most) {
  if (!lengths) return;
  if (lengths.length !== batch) {
    throw rangeError('shape', `${name} has ${lengths.length} numbers but the batch is ${batch}`);
  }
  for (let b = 0; b < batch; b++) {
    if (lengths[b] < 0 || lengths[b] > most) {
      throw rangeError('option', `${name}[${b}] is ${lengths[b]} but must be between 0 and the ${what} ${most}`);
    }
  }
}

/**
 * @param {AttentionCall} call
 * @param {string} name
 * @param {number[]} shape
 */
function checkPerHead({ batch, numHeads }, name, shape) {
  const fits = shape.length === 1 || (shape.length === 2 && (shape[0] === 1 || shape[0] === batch));
  if (fits && shape[shape.length - 1] === numHeads) return;
  throw rangeError(
    'shape',
    `${name} has shape [${shape.join(', ')}] but must have [${numHeads}] or [${batch}, ${numHeads}] (batch, query heads)`,
  );
}

/**
 * @param {AttentionCall} call
 * @param {Numbers<Float32Array>} slopes
 */
function checkSlopes(call, { data, shape }) {
  checkPerHead(call, 'alibiSlopes', shape);
  for (let i = 0; i < data.length; i++) {
    if (!Number.isFinite(data[i])) throw rangeError('option', `alibiSlopes[${i}] must be finite, got ${data[i]}`);
  }
}

/**
 * The sink of each head, smoothSoftmax included.
 * @param {AttentionCall} call
 * @returns {Numbers<Float32Array>}
 */
function readSinks(call) {
  const { sinks, smoothSoftmax } = call;
  if (!sinks) return { data: new Float32Array(call.numHeads), shape: [call.numHeads] };
  checkPerHead(call, 'sinks', sinks.shape);
  const { data } = sinks;
  for (let i = 0; i < data.length; i++) {
    if (!(data[i] < Infinity)) {
      throw rangeError('option', `sinks[${i}] must be a number or -Infinity (none), got ${data[i]}`);
    }
  }
  // Two sinks, s and 0, are one: ln(e^s + 1), without overflow.
  const both = (/** @type {number} */ s) => Math.max(s, 0) + Math.log1p(Math.exp(-Math.abs(s)));
  return smoothSoftmax ? { data: data.map(both), shape: sinks.shape } : sinks;
}

/**
 * @param {string} name
 * @param {Numbers<Int32Array>} ids
 * @param {number} batch
 * @param {string} what
 * @param {number} length
 * @returns {Numbers<Int32Array>} (batch, length)
 */
function everyRow(name, { data, shape }, batch, what, length) {
  const full = [batch, length];
  const bare = shape.length === 1;
  if (bare ? data.length === batch * length : shape.length === 2 && shape[0] === batch && shape[1] === length) {
    return { data, shape: full };
  }
  const row = bare || (shape.length === 2 && shape[0] === 1);
  if (!row || data.length !== length) {
    throw rangeError(
      'shape',
      `${name} has ${bare ? `${data.length} ids` : `shape [${shape.join(', ')}]`} but the ${what} is ${length} and the batch ${batch}`,
    );
  }
  const all = new Int32Array(batch * length);
  for (let b = 0; b < batch; b++) all.set(data, b * length);
  return { data: all, shape: full };
}

/**
 * @param {string} name
 * @param {Int32Array} starts
 * @param {string} what
 * @param {number} most
 */
function checkEnd(name, starts, what, most) {
  const end = starts[starts.length - 1];
  if (end > most) throw rangeError('option', `${name} ends at ${end} but the ${what} is ${most}`);
}

/**
 * @param {AttentionCall} call
 * @param {import('./options.js').Blocks} mask
 */
function checkBlocks({ batch, numHeads, seqlenQ, seqlenKv }, mask) {
  const { rows, columns } = mask;
  if (rows !== seqlenQ || columns !== seqlenKv) {
    throw rangeError(
      'shape',
      `blockMask has ${rows} rows and ${columns} columns but the query length is ${seqlenQ} and the key length ${seqlenKv}`,
    );
  }
  if ((mask.batch !== 1 && mask.batch !== batch) || (mask.heads !== 1 && mask.heads !== numHeads)) {
    throw rangeError(
      'shape',
      `blockMask is for a batch of ${mask.batch} and ${mask.heads} heads but the call has a batch of ${batch} and ${numHeads} query heads; 1 fits any`,
    );
  }
}
