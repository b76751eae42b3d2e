// Masks from and to one byte a cell.

import { rangeError } from '../errors.js';
import { elementsOf, readOperand } from '../operand.js';
import { product } from '../tensor.js';
import { readMask } from './arguments.js';
import { emptyTile, firstPartial, fullTile, tileSize, tileWords } from './block-mask.js';
import { allocate, TileStore } from './tile-store.js';

/** Tensors of every instance are read through their `data` here. */
const noRuntime = /** @type {import('../runtime.js').Runtime} */ (/** @type {unknown} */ ({ buffer: null }));

/**
 * The mask of a boolean tensor. It looks at every cell.
 * @param {import('../tensor.js').MaskLike | import('../tensor.js').SdpaTensor} mask (L, S), (heads, L, S) or (batch,
 *   heads, L, S), non-zero = attend
 * @returns {import('./block-mask.js').BlockMask}
 * @throws TypeError or RangeError with a `code`
 */
export function fromDense(mask) {
  const operand = readOperand('mask', mask, true, noRuntime);
  const rank = operand.shape.length;
  if (rank < 2 || rank > 4) {
    throw rangeError('shape', `mask must have 2, 3 or 4 dimensions, got ${rank}: [${operand.shape.join(', ')}]`);
  }
  const [batch, heads, rows, columns] = [1, 1, 1, 1].slice(rank).concat(operand.shape);
  const cells = elementsOf(operand);
  const store = new TileStore({ rows, columns, batch, heads });
  const words = new Uint32Array(tileWords);
  forEachCut(store, (at, first, height, width) => {
    words.fill(0);
    for (let r = 0; r < height; r++) {
      const from = first + r * columns;
      for (let c = 0; c < width; c++) if (cells[from + c] !== 0) words[2 * r + (c >> 5)] |= 1 << (c & 31);
    }
    store.tiles[at] = store.code(words, height, width);
  });
  return store.finish();
}

/**
 * One byte for each cell, 1 = attend: the tensor that the option `mask` takes. For small masks: it is as large as the
 * matrix of scores.
 * @param {import('./block-mask.js').BlockMask} mask
 * @returns {{ data: Uint8Array, shape: number[] }} shape (batch, heads, L, S), batch and heads those of the mask
 * @throws TypeError `type`, RangeError `out-of-memory`
 */
export function toDense(mask) {
  const { rows, columns, batch, heads, tiles, bits } = readMask('toDense', mask);
  const shape = [batch, heads, rows, columns];
  const data = allocate(Uint8Array, product('mask', shape), `a dense mask of shape [${shape.join(', ')}]`);
  forEachCut({ sizes: mask, tiles }, (at, first, height, width) => {
    const tile = tiles[at];
    if (tile === emptyTile) return;
    const begin = (tile - firstPartial) * tileWords;
    for (let r = 0; r < height; r++) {
      const from = first + r * columns;
      if (tile === fullTile) data.fill(1, from, from + width);
      else for (let c = 0; c < width; c++) data[from + c] = (bits[begin + 2 * r + (c >> 5)] >>> (c & 31)) & 1;
    }
  });
  return { data, shape };
}

/**
 * @param {{ sizes: import('./block-mask.js').MaskSizes, tiles: Uint32Array }} mask
 * @param {(at: number, first: number, height: number, width: number) => void} action for each tile, its place, the
 *   place of its first cell in the dense mask, and the rows and columns of it that exist
 */
function forEachCut({ sizes: { rows, columns, batch, heads }, tiles }, action) {
  let at = 0;
  for (let plane = 0; tiles.length > 0 && plane < batch * heads; plane++) {
    for (let i = 0; i < rows; i += tileSize) {
      for (let j = 0; j < columns; j += tileSize) {
        action(at++, (plane * rows + i) * columns + j, Math.min(tileSize, rows - i), Math.min(tileSize, columns - j));
      }
    }
  }
}
