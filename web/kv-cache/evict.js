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
  const { spec, lengths } = rows;
  if (spec.window) {
    throw rangeError('option', 'a ring (a cache with a window) cannot evict: its tokens keep their positions for good');
  }
  if (spec.rope) {
    throw rangeError(
      'option',
      'a cache with rope cannot evict: keys are rotated by their positions, so no token may move',
    );
  }
  const gone = Array.from(new Set(readWhole('indices', indices))).sort((a, b) => a - b);
  check();
  const { longest } = rows;
  const has = longest === 0 ? 'the cache has no token' : `the longest row has the tokens 0 to ${longest - 1}`;
  for (const position of gone) {
    if (position < 0 || position >= longest) throw rangeError('option', `indices has ${position} but ${has}`);
  }
  if (gone.length === 0) return;
  const left = lengths.map((length) => length - gone.filter((position) => position < length).length);
  rows.own(gone[0], left);
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
}

/**
 * @param {Rows} rows
 * @param {unknown} length tokens that stay: of each row at most so many, or one number for each row
 * @param {() => void} check as for evict()
 */
export function truncate(rows, length, check) {
  const { spec, lengths, longest } = rows;
  if (typeof length === 'number') {
    if (!Number.isInteger(length) || length < 0 || length > longest) {
      const range = `a whole number from 0 to ${longest}, the tokens of the longest row`;
      throw rangeError('option', `truncate needs ${range}, got ${length}`);
    }
    for (let b = 0; b < spec.batch; b++) if (lengths[b] > length) rows.shorten(b, length);
    return;
  }
  if (!Array.isArray(length) && arrayKind(length) !== 'Int32Array') {
    throw typeError('type', `truncate needs a number, or an Int32Array or array of them, got ${show(length)}`);
  }
  const wanted = readWhole('length', length);
  check();
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
  for (let b = 0; b < spec.batch; b++) if (wanted[b] < lengths[b]) rows.shorten(b, wanted[b]);
}
