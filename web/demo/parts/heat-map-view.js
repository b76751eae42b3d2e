// Which part of a map is shown, and where its cells lie in the canvas.

/**
 * @typedef {object} View
 * @property {number} row first one shown
 * @property {number} column
 * @property {number} rows shown
 * @property {number} columns
 */

/** Side of a cell in CSS pixels, where there is room. */
const largestCell = 44;
/** Least side of a map, for which its cells are stretched. */
const leastSide = 120;

/**
 * Cells are squares where that leaves both sides of the map visible.
 * @param {View} view
 * @param {number} width that there is, in CSS pixels
 * @param {number} height
 * @returns {{ cellWidth: number, cellHeight: number }}
 */
export function cellSize({ rows, columns }, width, height) {
  const across = Math.min(largestCell, width / columns);
  const down = Math.min(largestCell, height / rows);
  const square = Math.min(across, down);
  return {
    cellWidth: Math.min(across, Math.max(square, leastSide / columns)),
    cellHeight: Math.min(down, Math.max(square, leastSide / rows)),
  };
}

/**
 * @param {View} view
 * @param {{ rows: number, columns: number }} map
 * @param {number} factor above 1 = closer
 * @param {{ row: number, column: number }} around stays where it is on the screen, as far as that is possible
 * @returns {View}
 */
export function zoom(view, map, factor, around) {
  const rows = Math.round(Math.min(map.rows, Math.max(Math.min(4, map.rows), view.rows / factor)));
  const columns = Math.round(Math.min(map.columns, Math.max(Math.min(4, map.columns), view.columns / factor)));
  const row = Math.round(around.row - ((around.row - view.row) * rows) / view.rows);
  const column = Math.round(around.column - ((around.column - view.column) * columns) / view.columns);
  // Rounded, the place may be beside the cell.
  return reveal({ row, column, rows, columns }, map, around);
}

/**
 * @param {View} view
 * @param {{ rows: number, columns: number }} map
 * @param {{ row: number, column: number }} cell
 * @returns {View} the nearest one that has the cell
 */
export function reveal(view, map, cell) {
  const row = Math.min(cell.row, Math.max(view.row, cell.row - view.rows + 1));
  const column = Math.min(cell.column, Math.max(view.column, cell.column - view.columns + 1));
  return { ...view, row: within(row, view.rows, map.rows), column: within(column, view.columns, map.columns) };
}

/**
 * @param {number} first
 * @param {number} count
 * @param {number} all
 */
const within = (first, count, all) => Math.min(all - count, Math.max(0, Math.round(first)));

/**
 * Distance between two numbers on an axis: 1, 2, 5, 10, 20 … cells.
 * @param {number} room cells that a number takes
 */
export function tickStep(room) {
  for (let ten = 1; ; ten *= 10) for (const step of [1, 2, 5]) if (step * ten >= room) return step * ten;
}
