// evict(): tokens leave every batch row, and the later ones move down. truncate(): the last tokens leave.

import { rangeError, show, typeError } from '../errors.js';
import { arrayKind } from '../tensor.js';
import { readWhole } from './append.js';

/** @typedef {import('./rows.js').Rows} Rows */

/**
 * @param {Rows} rows
 * @param {unknown} indices positions
 * @param {() => void} check throws where the cache has been disposed of while indices were read
 */
export function evict(rows, indices, check) {
  const gone = readIndices(rows.spec, indices);
  check();
  checkIndices(gone, rows.longest);
  if (gone.length > 0) beginEvict(rows, gone).settle();
}

/**
 * @param {import('./cache-options.js').CacheSpec} spec
 * @param {unknown} indices positions
 * @returns {number[]} each once, in order
 */
export function readIndices(spec, indices) {
  if (spec.window) {
    throw rangeError('option', 'a ring (a cache with a window) cannot evict: its tokens keep their positions for good');
  }
  if (spec.rope) {
    throw rangeError(
      'option',
      'a cache with rope cannot evict: keys are rotated by their positions, so no token may move',
    );
  }
  return Array.from(new Set(readWhole('indices', indices))).sort((a, b) => a - b);
}

/**
 * @param {number[]} gone
 * @param {number} longest tokens of the longest row
 */
export function checkIndices(gone, longest) {
  const has = longest === 0 ? 'the cache has no token' : `the longest row has the tokens 0 to ${longest - 1}`;
  for (const position of gone) {
    if (position < 0 || position >= longest) throw rangeError('option', `indices has ${position} but ${has}`);
  }
}

/**
 * @param {Int32Array} lengths of the rows
 * @param {number[]} gone
 * @returns {Int32Array} afterwards
 */
export const lengthsWithout = (lengths, gone) =>
  lengths.map((length) => length - gone.filter((position) => position < length).length);

/**
 * Makes the pages its own that change; settle() then moves the tokens.
 * @param {Rows} rows
 * @param {number[]} gone one or more positions, in order
 * @returns {import('./rows.js').Step}
 * @throws RangeError `capacity` or `out-of-memory`, with nothing changed
 */
export function beginEvict(rows, gone) {
  const { lengths } = rows;
  const left = lengthsWithout(lengths, gone);
  const room = rows.own(gone[0], left);
  const settle = () => {
    for (let b = 0; b < left.length; b++) {
      const end = lengths[b];
      let to = gone[0];
      for (let g = 0; g < gone.length && gone[g] < end; g++) {
        const from = gone[g] + 1;
        const count = Math.min(end, gone[g + 1] ?? end) - from;
        if (count > 0) rows.move(b, from, to, count);
        to += count;
      }
      rows.shorten(b, left[b]);
    }
    room.settle();
  };
  return { settle, undo: room.undo };
}

/**
 * @param {Rows} rows
 * @param {unknown} length tokens that stay: of each row at most so many, or one number for each row
 * @param {() => void} check as for evict()
 */
export function truncate(rows, length, check) {
  const wanted = readLength(length);
  check();
  shortenTo(rows, lengthsAfter(rows, wanted));
}

/**
 * @param {Rows} rows
 * @param {Int32Array} wanted lengths, none of them longer than the row
 */
export function shortenTo(rows, wanted) {
  for (let b = 0; b < wanted.length; b++) if (wanted[b] < rows.lengths[b]) rows.shorten(b, wanted[b]);
}

/**
 * @param {unknown} length as truncate() takes it
 * @returns {number | Int32Array} read once
 */
export function readLength(length) {
  if (typeof length === 'number') return length;
  if (!Array.isArray(length) && arrayKind(length) !== 'Int32Array') {
    throw typeError('type', `truncate needs a number, or an Int32Array or array of them, got ${show(length)}`);
  }
  return readWhole('length', length);
}

/**
 * @param {Pick<Rows, 'spec' | 'lengths' | 'longest'>} rows
 * @param {number | Int32Array} wanted
 * @returns {Int32Array} lengths of the rows once they are cut
 */
export function lengthsAfter({ spec, lengths, longest }, wanted) {
  if (typeof wanted === 'number') {
    if (!Number.isInteger(wanted) || wanted < 0 || wanted > longest) {
      const range = `a whole number from 0 to ${longest}, the tokens of the longest row`;
      throw rangeError('option', `truncate needs ${range}, got ${wanted}`);
    }
    return lengths.map((length) => Math.min(length, wanted));
  }
  if (wanted.length !== spec.batch) {
    throw rangeError(
      'shape',
      `truncate has ${show(Array.from(wanted))}, ${wanted.length} numbers, but the batch is ${spec.batch}`,
    );
  }
  for (const [b, n] of wanted.entries()) {
    if (n < 0 || n > lengths[b]) {
      throw rangeError('option', `truncate to ${n} tokens of batch row ${b}, which has ${lengths[b]}`);
    }
  }
  return wanted;
}
