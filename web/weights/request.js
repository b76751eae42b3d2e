// The options of attentionWeights() that say what is wanted, read once each and checked against the sizes of the call.

import { rangeError, show, typeError } from '../errors.js';
import { flag, oneOf, whole } from '../option-values.js';
import { arrayKind } from '../tensor.js';
import { kinds, requestNames } from './kinds.js';

/** @typedef {import('../options.js').AttentionCall} AttentionCall */

/** @typedef {import('./kinds.js').Request} Request */

/**
 * The query heads that are asked for.
 * @param {AttentionCall} call
 * @param {unknown} setting
 * @returns {Int32Array}
 */
export function readHeads({ numHeads }, setting) {
  if (setting === undefined) return Int32Array.from({ length: numHeads }, (_, h) => h);
  return indices('heads', setting, numHeads, 'query heads');
}

/**
 * @param {AttentionCall} call with all sizes
 * @param {Readonly<Record<string, any>>} settings by requestNames
 * @returns {Request[]} one or more
 */
export function readRequests(call, settings) {
  const requests = requestNames.flatMap((name) => {
    const setting = settings[name];
    if (setting === undefined) return [];
    const request = readers[name](call, setting);
    return request ? [{ ...nothing, ...request, name }] : [];
  });
  if (requests.length === 0) {
    throw typeError('type', `attentionWeights needs something to compute: one of ${requestNames.join(', ')}`);
  }
  return requests;
}

const nothing = { picks: null, order: null, topK: 0, rowCells: null, columnCells: null };

/** @type {Record<(typeof requestNames)[number], (call: AttentionCall, setting: any) => Omit<Request, 'name' | keyof typeof nothing> & Partial<Request> | null>} */
const readers = {
  rows: ({ seqlenQ, seqlenKv }, setting) => {
    const given = indices('rows', setting, seqlenQ, 'query length');
    const { picks, order } = ascending(given);
    return { kind: kinds.rows, picks, order, lines: picks.length, width: seqlenKv };
  },
  columns: ({ seqlenQ, seqlenKv }, setting) => {
    const given = indices('columns', setting, seqlenKv, 'key length');
    const { picks, order } = ascending(given);
    return { kind: kinds.columns, picks, order, lines: seqlenQ, width: picks.length };
  },
  columnSums: ({ seqlenKv }, setting) =>
    flag('columnSums', setting) ? { kind: kinds.sum, lines: 1, width: seqlenKv } : null,
  topK: ({ seqlenQ }, setting) => {
    const topK = whole('topK', setting, 1);
    return { kind: kinds.topK, topK, lines: seqlenQ, width: topK };
  },
  stats: ({ seqlenQ }, setting) => (flag('stats', setting) ? { kind: kinds.stats, lines: seqlenQ, width: 1 } : null),
  pool: ({ seqlenQ, seqlenKv }, setting) => {
    const { rows, columns, kind } = poolOf(setting);
    if (rows > seqlenQ || columns > seqlenKv) {
      throw rangeError(
        'option',
        `pool has ${rows} rows and ${columns} columns but the query length is ${seqlenQ} and the key length ${seqlenKv}: each cell needs a row and a key`,
      );
    }
    return {
      kind,
      rowCells: equalCells(rows, seqlenQ),
      columnCells: equalCells(columns, seqlenKv),
      lines: rows,
      width: columns,
    };
  },
};

/** @param {any} setting */
function poolOf(setting) {
  if (Object.prototype.toString.call(setting) !== '[object Object]') {
    throw typeError('type', `pool must be an object { rows, columns, kind }, got ${show(setting)}`);
  }
  for (const field in setting) {
    if (field !== 'rows' && field !== 'columns' && field !== 'kind') {
      throw typeError('unknown-option', `pool has no field '${field}'; its fields are rows, columns and kind`);
    }
  }
  const { rows, columns, kind = 'mean' } = setting;
  return {
    rows: whole('pool.rows', rows, 1),
    columns: whole('pool.columns', columns, 1),
    kind: oneOf('pool.kind', kind, { mean: kinds.mean, max: kinds.max }),
  };
}

/**
 * Starts of `count` cells of nearly equal size, and the end: cell r begins at floor(r·length / count).
 * @param {number} count
 * @param {number} length
 */
const equalCells = (count, length) =>
  Int32Array.from({ length: count + 1 }, (_, r) => Math.floor((r * length) / count));

/**
 * @param {string} name
 * @param {any} setting an array of whole numbers
 * @param {number} limit
 * @param {string} what the limit is
 * @returns {Int32Array} each element read once
 */
function indices(name, setting, limit, what) {
  const kind = arrayKind(setting);
  if (!Array.isArray(setting) && !(kind && /^(Ui|I)nt\d+(Clamped)?Array$/.test(kind))) {
    throw typeError('type', `${name} must be an array of whole numbers, got ${show(setting)}`);
  }
  const { length } = setting;
  return Int32Array.from({ length }, (_, i) => {
    const element = setting[i];
    if (typeof element !== 'number') throw typeError('type', `${name}[${i}] must be a number, got ${show(element)}`);
    if (Number.isInteger(element) && element >= 0 && element < limit) return element;
    throw rangeError(
      'option',
      `${name}[${i}] is ${element} but must be a whole number from 0 on, below the ${what} ${limit}`,
    );
  });
}

/**
 * The module takes ascending lists.
 * @param {Int32Array} given
 * @returns {{ picks: Int32Array, order: Int32Array | null }}
 */
function ascending(given) {
  if (given.every((n, i) => i === 0 || n > given[i - 1])) return { picks: given, order: null };
  const picks = Int32Array.from(new Set(given)).sort();
  const places = new Map(Array.from(picks, (n, i) => [n, i]));
  return { picks, order: given.map((n) => /** @type {number} */ (places.get(n))) };
}
