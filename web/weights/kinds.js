// What can be wanted of weights, as the module knows it.

/** Kinds of results, as the module knows them. */
export const kinds = /** @type {const} */ ({ rows: 0, columns: 1, topK: 2, stats: 3, sum: 4, mean: 5, max: 6 });

/** Options that ask for a result, in the order of the results. */
export const requestNames = /** @type {const} */ (['rows', 'columns', 'columnSums', 'topK', 'stats', 'pool']);

/**
 * One result that is asked for: for each batch entry and head `lines` lines of `width` numbers.
 * @typedef {object} Request
 * @property {(typeof requestNames)[number]} name
 * @property {number} kind
 * @property {Int32Array | null} picks rows or columns, ascending
 * @property {Int32Array | null} order where each row or column that was asked for is in `picks`; null: as they stand
 * @property {number} topK
 * @property {Int32Array | null} rowCells starts of cells and the end; null: all rows are one cell
 * @property {Int32Array | null} columnCells null: each key is one
 * @property {number} lines
 * @property {number} width
 */

/**
 * Lines of numbers, (B, heads, lines, width), as the module gives them.
 * @typedef {{ values: Float32Array, indices: Int32Array | null, entropy: Float32Array | null }} Lines
 */

/** @param {Request} request */
export const hasIndices = ({ kind }) => kind === kinds.topK || kind === kinds.stats;

/** @param {Request} request */
export const hasEntropy = ({ kind }) => kind === kinds.stats;
