// attend(): a call of attention() whose keys and values lie in the cache, and which knows where its queries stand.

import { compute } from '../attention.js';
import { alignCodes, layoutCodes, scoresCodes } from '../frame.js';
import { Operand, settleAll } from '../operand.js';
import { readOut } from '../output.js';
import { product } from '../tensor.js';
import { outShape, readQueryCall } from '../validate.js';
import { widened } from './stage.js';

/**
 * @typedef {import('../options.js').AttentionCall} AttentionCall
 * @typedef {import('./cache-options.js').Rope} Rope
 * @typedef {import('./rows.js').Rows} Rows
 */

/**
 * @param {Rows} rows
 * @param {unknown} query
 * @param {unknown} options
 * @param {() => void} checkUnchanged throws where the caller's getters have changed the cache meanwhile
 */
export function attend(rows, query, options, checkUnchanged) {
  const { runtime, spec } = rows;
  const { batch, numKvHeads, headDim, headDimV } = spec;
  const sizes = { batch, numKvHeads, headDim, headDimV, seqlenKv: rows.longest };
  const call = readQueryCall(runtime, query, sizes, options);
  const shape = outShape(call);
  const out = readOut(runtime, call, shape, product('out', shape));
  settleAll(runtime, call);
  checkUnchanged();
  return attendCall(rows, call, shape, out);
}

/**
 * Runs a call of readQueryCall() that has been checked.
 * @param {Rows} rows
 * @param {AttentionCall} call of as many keys as the longest row has now; where it has `queryOffsets`, its queries stand there, and
 *   else the last of each row at its last token
 * @param {number[]} shape of out
 * @param {import('../output.js').Out} out
 */
export function attendCall(rows, call, shape, out) {
  const { runtime, spec, storage, lengths } = rows;
  const offsets = call.queryOffsets ?? lastOffsets(call, lengths);
  call.align = alignCodes.offset;
  call.queryOffsets = offsets;
  call.kvLengths = lengths;
  call.storage = {
    keyPointer: storage.key.pointer,
    valuePointer: storage.value.pointer,
    keyStrides: storage.key.strides,
    valueStrides: storage.value.strides,
    keyScales: storage.key.scales,
    valueScales: storage.value.scales,
    keyDtype: spec.dtype,
    valueDtype: spec.dtype,
    ...rows.map,
  };
  if (spec.rope) call.query = rotated(rows, call, spec.rope, offsets);
  const all = compute(runtime, call, shape, out);
  if (all.scores && (call.scores === scoresCodes.scaled || call.scores === scoresCodes.capped)) {
    blankMissing(all.scores.data, call, rows.map);
  }
  return all;
}

/**
 * Where query 0 of each row stands, so that the last one stands at the row's last token.
 * @param {AttentionCall} call
 * @param {Int32Array} lengths tokens of each row
 */
export const lastOffsets = ({ queryLengths, seqlenQ }, lengths) =>
  lengths.map((length, b) => length - (queryLengths ? queryLengths[b] : seqlenQ));

/**
 * The stages before the masks have scores of every key there is: of those that a row does not have, or no more, they are -Infinity.
 * @param {Float32Array} scores (B, Hq, L, S)
 * @param {AttentionCall} call
 * @param {import('./rows.js').KeyMap} map
 */
function blankMissing(scores, { batch, numHeads, seqlenQ, seqlenKv, kvLengths }, { ringBegin, heldFrom }) {
  for (let b = 0; b < batch; b++) {
    const length = kvLengths ? kvLengths[b] : seqlenKv;
    const lost = heldFrom ? Math.min(heldFrom[b], length) : 0;
    for (let row = b * numHeads * seqlenQ; row < (b + 1) * numHeads * seqlenQ; row++) {
      const at = row * seqlenKv;
      if (lost > ringBegin) scores.fill(-Infinity, at + ringBegin, at + lost);
      scores.fill(-Infinity, at + length, at + seqlenKv);
    }
  }
}

/**
 * A copy of the queries, each rotated by its position.
 * @param {Rows} rows
 * @param {AttentionCall} call
 * @param {Rope} rope
 * @param {Int32Array} offsets position of query 0 of each batch row
 */
function rotated({ runtime }, call, rope, offsets) {
  const { query, batch, numHeads, seqlenQ, headDim } = call;
  const values = widened(runtime, query).slice();
  const blhd = call.layout === layoutCodes.blhd;
  for (let b = 0; b < batch; b++) {
    for (let i = 0; i < seqlenQ; i++) {
      for (let h = 0; h < numHeads; h++) {
        const row = blhd ? (b * seqlenQ + i) * numHeads + h : (b * numHeads + h) * seqlenQ + i;
        rope.rotate(values, row * headDim, offsets[b] + i);
      }
    }
  }
  return new Operand(values, 'float32', query.shape, query.count, 0);
}
