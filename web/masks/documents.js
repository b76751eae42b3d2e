// Tokens that see only their own document. An index from each document to the tiles of keys that hold some of it
// leads from a tile row straight to the tiles that are not empty.
//
// Time: O(tiles + 64 · partial tiles).

import { rangeError, show, typeError } from '../errors.js';
import { readNamed } from '../named-options.js';
import { arrayKind } from '../tensor.js';
import { readSize, wholeNumbers } from './arguments.js';
import { fullTile, tilesAlong, tileSize, tileWords } from './block-mask.js';
import { allocate, TileStore } from './tile-store.js';

/** @typedef {import('./block-mask.js').BlockMask} BlockMask */

/**
 * Query i sees key j where both have the same id, as `segmentIds` of attention(). Packed documents: each query sees
 * the tokens of its own document, before and behind itself; and(causal(L), documents(ids)) leaves those before.
 * @param {Int32Array | { query: Int32Array, key: Int32Array } | { lengths: readonly number[] | Int32Array }} ids of
 *   the tokens (L), with L = S; or of the queries (L) and of the keys (S); or the lengths of documents that lie one
 *   behind the other, in tokens
 * @returns {BlockMask}
 * @throws TypeError or RangeError with a `code`
 */
export function documents(ids) {
  if (arrayKind(ids) === 'Int32Array') {
    const copy = readIds('documents', ids);
    return fromIds(copy.length, copy.length, 1, () => [copy, copy]);
  }
  if (Object.prototype.toString.call(ids) !== '[object Object]') {
    const message = `documents takes an Int32Array of ids, { query, key } or { lengths }, got ${show(ids)}`;
    throw typeError('type', message);
  }
  const { query, key, lengths } = readNamed('documents', ids, ['query', 'key', 'lengths']);
  if (lengths === undefined) {
    const queryIds = readIds('documents query', query);
    const keyIds = readIds('documents key', key);
    return fromIds(queryIds.length, keyIds.length, 1, () => [queryIds, keyIds]);
  }
  if (query !== undefined || key !== undefined) {
    throw rangeError('option', 'documents takes lengths, or the ids of query and key, not both');
  }
  const copy = idsOf(wholeNumbers('documents lengths', lengths, 0, 2 ** 31 - 1));
  return fromIds(copy.length, copy.length, 1, () => [copy, copy]);
}

/**
 * @param {string} name
 * @param {any} given
 */
function readIds(name, given) {
  if (arrayKind(given) !== 'Int32Array') {
    throw typeError('type', `${name} must be an Int32Array with the id of each token, got ${show(given)}`);
  }
  return new Int32Array(given);
}

/** @param {Int32Array} lengths */
function idsOf(lengths) {
  const total = lengths.reduce((sum, length) => sum + length, 0);
  const ids = allocate(Int32Array, readSize('documents total length', total), 'documents');
  let at = 0;
  lengths.forEach((length, document) => {
    ids.fill(document, at, at + length);
    at += length;
  });
  return ids;
}

/**
 * @param {number} rows
 * @param {number} columns
 * @param {number} batch
 * @param {(b: number) => [Int32Array, Int32Array]} idsOfRow ids of the rows and of the columns of one batch row
 * @returns {BlockMask}
 */
export function fromIds(rows, columns, batch, idsOfRow) {
  const store = new TileStore({ rows, columns, batch, heads: 1 });
  for (let b = 0; store.tiles.length > 0 && b < batch; b++) fillPlane(store, b, ...idsOfRow(b));
  return store.finish();
}

/**
 * The tiles of one batch row.
 * @param {TileStore} store
 * @param {number} b
 * @param {Int32Array} queryIds
 * @param {Int32Array} keyIds
 */
function fillPlane(store, b, queryIds, keyIds) {
  const { tiles, tileRows, tileColumns } = store;
  const columns = columnsById(keyIds);
  const tilesById = invert(columns);
  const words = new Uint32Array(tileWords);
  for (let tileRow = 0; tileRow < tileRows; tileRow++) {
    const ids = queryIds.subarray(tileRow * tileSize, (tileRow + 1) * tileSize);
    const different = new Set(ids);
    /** @type {Set<number>} */
    const touched = new Set();
    for (const id of different) for (const tileColumn of tilesById.get(id) ?? []) touched.add(tileColumn);
    for (const tileColumn of touched) {
      const at = (b * tileRows + tileRow) * tileColumns + tileColumn;
      const byId = columns[tileColumn];
      if (different.size === 1 && byId.size === 1) {
        tiles[at] = fullTile;
        continue;
      }
      words.fill(0);
      ids.forEach((id, r) => {
        const bits = byId.get(id);
        if (bits) words.set(bits, 2 * r);
      });
      tiles[at] = store.partial(words, 0);
    }
  }
}

/**
 * @param {Int32Array} keyIds
 * @returns {Map<number, Uint32Array>[]} for each tile of columns, the two words of the columns with each id
 */
function columnsById(keyIds) {
  return Array.from({ length: tilesAlong(keyIds.length) }, (_, tileColumn) => {
    /** @type {Map<number, Uint32Array>} */
    const byId = new Map();
    keyIds.subarray(tileColumn * tileSize, (tileColumn + 1) * tileSize).forEach((id, c) => {
      let bits = byId.get(id);
      if (!bits) byId.set(id, (bits = new Uint32Array(2)));
      bits[c >> 5] |= 1 << (c & 31);
    });
    return byId;
  });
}

/**
 * @param {Map<number, Uint32Array>[]} columns
 * @returns {Map<number, number[]>} for each id, the tiles of columns that have it
 */
function invert(columns) {
  /** @type {Map<number, number[]>} */
  const tilesById = new Map();
  columns.forEach((byId, tileColumn) => {
    for (const id of byId.keys()) {
      const tiles = tilesById.get(id);
      if (tiles) tiles.push(tileColumn);
      else tilesById.set(id, [tileColumn]);
    }
  });
  return tilesById;
}
