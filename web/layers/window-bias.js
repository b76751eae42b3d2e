// The relative position bias of one size of windows, out of its table.

/**
 * The bias of query (yi, xi) and key (yj, xj) of head h is table[(yi - yj + ws - 1)·(2·ww - 1) + (xi - xj + ww - 1)][h], for windows of
 * ws rows and ww columns; a window that an edge cuts uses the part of the table that it needs.
 * @param {Float32Array} table ((2·ws - 1)·(2·ww - 1), heads)
 * @param {number} heads
 * @param {readonly number[]} windowSize [ws, ww], of the table
 * @param {{ height: number, width: number }} size of the windows at hand
 * @param {Float32Array} bias receives (heads, height·width, height·width)
 */
export function expandBias(table, heads, [ws, ww], { height, width }, bias) {
  const line = (2 * ww - 1) * heads;
  let at = 0;
  for (let h = 0; h < heads; h++) {
    for (let yi = 0; yi < height; yi++) {
      for (let xi = 0; xi < width; xi++) {
        for (let yj = 0; yj < height; yj++) {
          let from = (yi - yj + ws - 1) * line + (xi + ww - 1) * heads + h;
          for (let xj = 0; xj < width; xj++, from -= heads) bias[at++] = table[from];
        }
      }
    }
  }
}
