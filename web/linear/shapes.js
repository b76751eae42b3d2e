// Shapes of the tensors of linear attention: which of their dimensions are batch, heads, tokens and columns.

import { rangeError, show, typeError } from '../errors.js';
import { layoutCodes } from '../frame.js';
import { readOperand } from '../operand.js';
import { oneOf } from '../option-values.js';
import { rowsOf, shapeOf } from '../row-shape.js';
import { mismatch } from '../validate.js';

/**
 * @typedef {import('../operand.js').Operand} Operand
 * @typedef {import('../row-shape.js').Rows} Rows
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('../tensor.js').TensorLike | import('../tensor.js').SdpaTensor} Tensorish
 */

/**
 * @param {unknown} layout
 * @returns {boolean} whether tokens come before heads
 */
export const readBlhd = (layout) => layout !== undefined && oneOf('layout', layout, layoutCodes) === layoutCodes.blhd;

/**
 * A float tensor of a call with the sizes of its rows.
 * @param {Runtime} runtime
 * @param {string} name
 * @param {unknown} tensor
 * @param {boolean} blhd
 * @param {{ name: string, rank: number } | null} like a tensor whose number of dimensions it has; null: it says how many
 * @returns {{ operand: Operand } & Rows}
 */
export function readRows(runtime, name, tensor, blhd, like) {
  const operand = readOperand(name, tensor, false, runtime);
  const { shape } = operand;
  const rank = shape.length;
  if (like ? rank !== like.rank : rank < 2 || rank > 4) {
    const want = like ? `${like.rank} dimensions, as ${like.name} has` : '2, 3 or 4 dimensions';
    throw rangeError('shape', `${name} must have ${want}, got ${rank}: ${show(shape)}`);
  }
  return { operand, ...rowsOf(shape, blhd) };
}

/**
 * Numbers that go with the tokens of each head: (B, H, L) or (B, L, H), or with columns (…, D).
 * @param {Runtime} runtime
 * @param {string} name
 * @param {unknown} tensor
 * @param {{ rank: number, blhd: boolean, rows: Rows, columns: number, name: string, sharedHeads?: boolean }} like `columns`: D, or 0 where
 *   each token has one number; `sharedHeads`: one head may serve all
 * @returns {{ operand: Operand, columns: number, heads: number }} columns that there are, 1 where each token has one number
 */
export function readGate(runtime, name, tensor, { rank, blhd, rows, columns, name: other, sharedHeads = false }) {
  const operand = readOperand(name, tensor, false, runtime);
  const { shape } = operand;
  const forms = [rows.heads, ...(sharedHeads && rows.heads !== 1 ? [1] : [])].flatMap((heads) => {
    const full = shapeOf({ ...rows, heads, size: columns }, rank, blhd);
    return columns === 0 ? [full.slice(0, -1)] : [full.slice(0, -1), full];
  });
  const form = forms.find((sizes) => sizes.length === shape.length && sizes.every((size, i) => size === shape[i]));
  if (!form) {
    const wanted = forms.map((sizes) => show(sizes)).join(' or ');
    throw rangeError('shape', `${name} shape is ${show(shape)} but with this ${other} it must be ${wanted}`);
  }
  const wide = form.length === rank;
  const { heads } = rowsOf(wide ? form : [...form, 1], blhd);
  return { operand, columns: wide ? columns : 1, heads };
}

/**
 * A float32 tensor of exactly this shape.
 * @param {Runtime} runtime
 * @param {string} name
 * @param {unknown} tensor
 * @param {readonly number[]} want
 * @returns {Operand}
 */
export function readExact(runtime, name, tensor, want) {
  const operand = readOperand(name, tensor, false, runtime);
  const { shape, dtype } = operand;
  if (dtype !== 'float32') throw typeError('type', `${name} must be float32, got ${dtype}`);
  if (shape.length !== want.length || shape.some((size, i) => size !== want[i])) {
    throw rangeError('shape', `${name} shape is ${show(shape)} but must be ${show(want)}`);
  }
  return operand;
}

/**
 * @param {string} name
 * @param {string} what
 * @param {number} got
 * @param {string} other
 * @param {number} want
 */
export function same(name, what, got, other, want) {
  if (got !== want) throw mismatch(name, what, got, other, want);
}
