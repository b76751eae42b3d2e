// What the makers of masks are given, read once and checked before anything is made.

import { rangeError, show, typeError } from '../errors.js';
import { readNamed } from '../named-options.js';
import { offset, oneOf } from '../option-values.js';
import { arrayKind } from '../tensor.js';
import { isBlockMask } from './block-mask.js';

/** @typedef {import('./block-mask.js').BlockMask} BlockMask */

/** Rows, columns and positions are 32-bit numbers in the kernel. */
export const mostCells = 2 ** 31 - 1;

/** What to multiply columns - rows by for the offset. */
const alignments = { 'lower-right': 1, 'upper-left': 0 };

/**
 * Where row 0 stands, as for attention(): the position of row i is i + offset, that of column j is j.
 * @typedef {object} MaskPosition
 * @property {'lower-right' | 'upper-left'} [align] offset = columns - rows, or 0. Required where rows ≠ columns,
 *   unless queryOffset is given
 * @property {number | Int32Array} [queryOffset] the offset itself, or one per batch row, which makes a mask of that batch
 */

/**
 * @param {string} name
 * @param {unknown} given
 * @param {number} least
 * @param {number} most
 * @returns {number}
 */
export function wholeNumber(name, given, least, most) {
  if (typeof given !== 'number') throw typeError('type', `${name} must be a number, got ${show(given)}`);
  if (!Number.isSafeInteger(given) || given < least || given > most) {
    const range = most >= Number.MAX_SAFE_INTEGER ? `${least} or more` : `between ${least} and ${most}`;
    throw rangeError('option', `${name} must be a whole number, ${range}, got ${given}`);
  }
  return given;
}

/**
 * A number of rows or columns.
 * @param {string} name
 * @param {unknown} given
 */
export const readSize = (name, given) => wholeNumber(name, given, 0, mostCells);

/**
 * A copy of a list of whole numbers.
 * @param {string} name
 * @param {any} given an array or Int32Array
 * @param {number} least
 * @param {number} most
 * @returns {Int32Array}
 */
export function wholeNumbers(name, given, least, most) {
  if (!Array.isArray(given) && arrayKind(given) !== 'Int32Array') {
    throw typeError('type', `${name} must be an array of whole numbers or an Int32Array, got ${show(given)}`);
  }
  return Int32Array.from(given, (number, i) => wholeNumber(`${name}[${i}]`, number, least, most));
}

/**
 * @param {string} name of the function
 * @param {unknown} given
 * @returns {BlockMask}
 */
export function readMask(name, given) {
  if (isBlockMask(given)) return given;
  throw typeError(
    'type',
    `${name} takes masks made by masks.*, got ${show(given)}; masks.fromDense makes one of booleans`,
  );
}

/**
 * @param {string} name of the mask
 * @param {number} rows
 * @param {number} columns
 * @param {unknown} given
 * @returns {ArrayLike<number>} the offset of each batch row; one where they are the same
 */
export function readOffsets(name, rows, columns, given) {
  const { align, queryOffset } = readNamed(name, given, ['align', 'queryOffset']);
  if (queryOffset !== undefined) {
    if (align !== undefined) {
      throw rangeError('option', `${name}: align and queryOffset both say where row 0 stands, give one of them`);
    }
    const offsets = offset(queryOffset);
    return typeof offsets === 'number' ? [offsets] : offsets;
  }
  if (align !== undefined) return [oneOf('align', align, alignments) * (columns - rows)];
  if (rows === columns || rows === 0) return [0];
  throw rangeError(
    'align-required',
    `${name} needs to know where row 0 stands, because there are ${rows} rows but ${columns} columns: ` +
      "give align: 'lower-right' (the last row stands at the last column), align: 'upper-left' (row 0 at column 0) or queryOffset",
  );
}
