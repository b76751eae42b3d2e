// The border of matrix products: c = a·b + bias, or c += a·b, of float32 matrices in wasm memory.

/** @typedef {import('../runtime.js').Runtime} Runtime */

/** How a matrix lies in memory; the codes are the module's. `columns`: the transpose of a matrix in rows. */
export const forms = /** @type {const} */ ({ rows: 0, columns: 1, packed: 2, packedColumns: 3 });

/**
 * @typedef {object} Matrix
 * @property {number} pointer
 * @property {number} stride elements from one row (or column) to the next; 0 where it is packed
 * @property {number} form of `forms`
 */

/**
 * @typedef {object} Product
 * @property {Matrix} a (rows, inner), in rows or columns
 * @property {Matrix} b (inner, columns), in any form
 * @property {number} [bias] pointer to `columns` numbers that are added to every row; not where c is added to
 * @property {number} c pointer, (rows, columns)
 * @property {number} [cStride] elements from one row of c to the next; `columns` where absent
 * @property {boolean} [accumulate] adds to c
 * @property {number} rows
 * @property {number} columns
 * @property {number} inner
 */

/** @param {number} pointer @param {number} stride @returns {Matrix} */
export const inRows = (pointer, stride) => ({ pointer, stride, form: forms.rows });

/** The transpose of a matrix in rows. @param {number} pointer @param {number} stride @returns {Matrix} */
export const inColumns = (pointer, stride) => ({ pointer, stride, form: forms.columns });

/**
 * Bytes of a packed matrix.
 * @param {Runtime} runtime
 * @param {number} inner
 * @param {number} columns
 */
export function packedBytes(runtime, inner, columns) {
  const bytes = runtime.exports.gemmPackedBytes(inner, columns);
  if (bytes < 0) runtime.check(bytes, 'packing a matrix');
  return bytes;
}

/**
 * @param {Runtime} runtime
 * @param {Matrix} b (inner, columns)
 * @param {number} inner
 * @param {number} columns
 * @param {number} to pointer
 */
export function pack(runtime, b, inner, columns, to) {
  const none = { pointer: 0, stride: 0, form: 0 };
  const bytes = packedBytes(runtime, inner, columns);
  writeFrame(runtime, { a: none, b, c: 0, rows: 0, columns, inner }, to, bytes);
  const status = runtime.exports.gemmPack(runtime.frame);
  if (status !== 0) runtime.check(status, 'packing a matrix');
}

/**
 * @param {Runtime} runtime
 * @param {Product} product
 * @throws RangeError `out-of-memory`, with nothing changed
 */
export function multiply(runtime, product) {
  const { exports } = runtime;
  writeFrame(runtime, product, 0, 0);
  const needed = exports.gemmWorkspaceBytes(runtime.frame);
  if (needed < 0) runtime.check(needed, 'a matrix product');
  const own = needed > runtime.arenaBytes;
  const workspace = own ? runtime.allocate(needed, 'a matrix product') : runtime.arena;
  try {
    writeFrame(runtime, product, workspace, needed);
    const status = exports.gemm(runtime.frame);
    if (status !== 0) runtime.check(status, 'a matrix product');
  } finally {
    if (own) runtime.release(workspace, needed);
  }
}

/**
 * In the order of GemmField in src/binding/gemm_frame.hpp.
 * @param {Runtime} runtime
 * @param {Product} product
 * @param {number} workspace
 * @param {number} bytes
 */
function writeFrame(runtime, { a, b, bias = 0, c, cStride, accumulate, rows, columns, inner }, workspace, bytes) {
  const frame = runtime.doubles;
  let at = runtime.frame / 8;
  frame[at++] = a.pointer;
  frame[at++] = a.stride;
  frame[at++] = a.form;
  frame[at++] = b.pointer;
  frame[at++] = b.stride;
  frame[at++] = b.form;
  frame[at++] = bias;
  frame[at++] = c;
  frame[at++] = cStride ?? columns;
  frame[at++] = accumulate ? 1 : 0;
  frame[at++] = rows;
  frame[at++] = columns;
  frame[at++] = inner;
  frame[at++] = workspace;
  frame[at] = bytes;
}
