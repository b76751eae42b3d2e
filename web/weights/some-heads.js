// A call for weights as workers compute it: of the wanted heads alone, in their order, and without values.

import { layoutCodes } from '../frame.js';
import { Operand, viewOf } from '../operand.js';
import { AttentionCall } from '../options.js';
import { copyRectangle, rectangle } from '../pool/blocks.js';

/**
 * @typedef {import('../options.js').Blocks} Blocks
 * @typedef {import('../runtime.js').Runtime} Runtime
 */

/** @template T @typedef {import('../option-arrays.js').Numbers<T>} Numbers */

/**
 * @param {Runtime} runtime
 * @param {AttentionCall} call
 * @param {Operand | null} lse
 * @param {Int32Array} heads one or more
 * @returns {{ call: AttentionCall, lse: Operand | null }}
 * @throws RangeError where there is no memory
 */
export function ofHeads(runtime, call, lse, heads) {
  const { batch, numHeads, numKvHeads, seqlenKv } = call;
  const own = Object.assign(new AttentionCall(), call);
  own.value = new Operand(new Float32Array(0), 'float32', [batch, numKvHeads, seqlenKv, 0], 0, 0);
  own.headDimV = 0;
  if (heads.length === numHeads && heads.every((h, n) => h === n)) return { call: own, lse };

  const { query, key, mask, bias, seqlenQ, headDim, layout } = call;
  const group = numHeads / numKvHeads;
  const blhd = layout === layoutCodes.blhd;
  const gather = (/** @type {Operand} */ operand, /** @type {Places} */ places) =>
    gatherHeads(runtime, operand, places);
  own.numHeads = own.numKvHeads = heads.length;
  own.layout = layoutCodes.bhld;
  own.query = gather(query, { blhd, batch, from: numHeads, rows: seqlenQ, width: headDim, heads });
  own.key = gather(key, {
    blhd,
    batch,
    from: numKvHeads,
    rows: seqlenKv,
    width: headDim,
    heads: heads.map((h) => Math.floor(h / group)),
  });
  own.value.shape[1] = heads.length;
  const broadcast = (/** @type {Operand | null} */ operand) => {
    if (!operand || operand.shape[1] === 1) return operand;
    const [entries, from, rows, width] = operand.shape;
    return gather(operand, { blhd: false, batch: entries, from, rows, width, heads });
  };
  own.mask = broadcast(mask);
  own.bias = broadcast(bias);
  own.alibiSlopes = numbersOf(call.alibiSlopes, heads);
  own.sinks = numbersOf(call.sinks, heads);
  own.blockMask = blocksOf(call.blockMask, heads);
  return {
    call: own,
    lse: lse && gather(lse, { blhd: false, batch, from: numHeads, rows: seqlenQ, width: 1, heads }),
  };
}

/**
 * `from` heads of `rows` rows of `width` elements, of which `heads` are wanted.
 * @typedef {{ blhd: boolean, batch: number, from: number, rows: number, width: number, heads: Int32Array }} Places
 */

/**
 * @param {Runtime} runtime
 * @param {Operand} operand
 * @param {Places} places
 * @returns {Operand} (batch, heads, rows, width)
 */
function gatherHeads(runtime, operand, { blhd, batch, from, rows, width, heads }) {
  const data = viewOf(runtime, operand);
  const to = new data.constructor(batch * heads.length * rows * width);
  heads.forEach((h, n) => {
    copyRectangle(
      rectangle(data, blhd, [from, rows, width], [0, h, 0]),
      rectangle(to, false, [heads.length, rows, width], [0, n, 0]),
      [batch, 1, rows, width],
    );
  });
  return new Operand(to, operand.dtype, [batch, heads.length, rows, width], to.length, 0);
}

/**
 * @param {Numbers<Float32Array> | null} numbers (Hq) or (B, Hq)
 * @param {Int32Array} heads
 * @returns {Numbers<Float32Array> | null}
 */
function numbersOf(numbers, heads) {
  if (!numbers) return null;
  const { data, shape } = numbers;
  const from = shape[shape.length - 1];
  const entries = data.length / from;
  const chosen = Float32Array.from(
    { length: entries * heads.length },
    (_, i) => data[Math.floor(i / heads.length) * from + heads[i % heads.length]],
  );
  return { data: chosen, shape: [...shape.slice(0, -1), heads.length] };
}

/**
 * @param {Blocks | null} mask
 * @param {Int32Array} heads
 * @returns {Blocks | null}
 */
function blocksOf(mask, heads) {
  if (!mask || mask.heads === 1) return mask;
  const { rows, columns, batch, tiles, bits } = mask;
  const plane = tiles.length / (batch * mask.heads);
  const chosen = new Uint32Array(batch * heads.length * plane);
  for (let b = 0; b < batch; b++) {
    heads.forEach((h, n) => {
      const at = (b * mask.heads + h) * plane;
      chosen.set(tiles.subarray(at, at + plane), (b * heads.length + n) * plane);
    });
  }
  return { rows, columns, batch, heads: heads.length, tiles: chosen, bits };
}
