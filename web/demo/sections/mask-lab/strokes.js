// What has been drawn: squares that hide cells or show them again, the later ones on top.

/** @typedef {{ row: number, column: number, side: number, hides: boolean }} Stroke */

/** Most strokes that are kept in the address: about 3 KB. */
export const mostStrokes = 400;

/**
 * @param {readonly Stroke[]} strokes
 * @returns {string} `1a.2b.3` hides, `1a.2b.3s` shows; numbers to the base 36
 */
export const strokesText = (strokes) =>
  strokes
    .slice(-mostStrokes)
    .map(
      ({ row, column, side, hides }) =>
        `${[row, column, side].map((n) => n.toString(36)).join('.')}${hides ? '' : '_'}`,
    )
    .join('-');

/**
 * @param {string | undefined} text
 * @returns {Stroke[]} those that make sense
 */
export function readStrokes(text = '') {
  return text
    .split('-')
    .slice(0, mostStrokes)
    .flatMap((part) => {
      const found = /^([0-9a-z]{1,3})\.([0-9a-z]{1,3})\.([0-9a-z]{1,2})(_?)$/.exec(part);
      if (!found) return [];
      const [row, column, side] = found.slice(1, 4).map((digits) => parseInt(digits, 36));
      return [{ row, column, side, hides: found[4] === '' }];
    });
}

/**
 * Adds a stroke, unless it does what the last one did.
 * @param {Stroke[]} strokes
 * @param {Stroke} stroke
 */
export function addStroke(strokes, stroke) {
  const last = strokes[strokes.length - 1];
  const isSame =
    last && Object.entries(stroke).every(([name, setting]) => last[/** @type {keyof Stroke} */ (name)] === setting);
  if (!isSame) strokes.push(stroke);
}

/**
 * @param {readonly Stroke[]} strokes
 * @param {number} rows
 * @param {number} columns
 * @returns {Uint8Array} (rows, columns), 1 = attend
 */
export function paint(strokes, rows, columns) {
  const cells = new Uint8Array(rows * columns).fill(1);
  for (const { row, column, side, hides } of strokes) {
    const to = Math.min(columns, column + side);
    for (let i = row; i < Math.min(rows, row + side) && column < to; i++)
      cells.fill(hides ? 0 : 1, i * columns + column, i * columns + to);
  }
  return cells;
}
