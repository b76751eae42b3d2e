// keyPadding: which tokens of the keys are there, and a mask beside it.

import { rangeError, show } from '../errors.js';
import { readOperand, viewOf } from '../operand.js';

/** @typedef {import('../runtime.js').Runtime} Runtime */

/**
 * The mask of a call with keyPadding: non-zero where both are.
 * @param {Runtime} runtime
 * @param {unknown} keyPadding (B, S), (1, S) or (S)
 * @param {unknown} mask what the caller gave; undefined = none
 * @param {number} batch
 * @param {number} seqlenKv
 * @returns {import('../tensor.js').MaskLike}
 */
export function maskWithPadding(runtime, keyPadding, mask, batch, seqlenKv) {
  const padding = readOperand('keyPadding', keyPadding, true, runtime);
  const { shape } = padding;
  const rows = shape.length === 1 ? 1 : shape[0];
  const fits = (shape.length === 1 || shape.length === 2) && (rows === 1 || rows === batch);
  if (!fits || shape[shape.length - 1] !== seqlenKv) {
    throw rangeError(
      'shape',
      `keyPadding has shape ${show(shape)} but must have [${batch}, ${seqlenKv}] (batch, key length), non-zero = there`,
    );
  }
  const there = viewOf(runtime, padding);
  if (mask === undefined) return { data: there.slice(), shape: [rows, 1, 1, seqlenKv], dtype: 'bool' };

  const operand = readOperand('mask', mask, true, runtime);
  const given = [1, 1, 1, 1].concat(operand.shape).slice(-4);
  const [mB, mH, mL, mS] = given;
  if (operand.shape.length > 4 || (mB !== 1 && mB !== batch) || (mS !== 1 && mS !== seqlenKv)) {
    throw rangeError(
      'shape',
      `mask shape ${show(operand.shape)} does not broadcast to a batch of ${batch} and a key length of ${seqlenKv}`,
    );
  }
  const cells = viewOf(runtime, operand);
  const all = mB === 1 ? rows : mB;
  const data = new Uint8Array(all * mH * mL * seqlenKv);
  let at = 0;
  for (let b = 0; b < all; b++) {
    const row = (rows === 1 ? 0 : b) * seqlenKv;
    for (let n = 0; n < mH * mL; n++) {
      const cell = ((mB === 1 ? 0 : b) * mH * mL + n) * mS;
      for (let j = 0; j < seqlenKv; j++) {
        data[at++] = there[row + j] !== 0 && cells[cell + (mS === 1 ? 0 : j)] !== 0 ? 1 : 0;
      }
    }
  }
  return { data, shape: [all, mH, mL, seqlenKv], dtype: 'bool' };
}
