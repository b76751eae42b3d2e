// Copies between arrays of four dimensions (batch, head, row, element) in either layout: a rectangle of one is a whole
// array, or a rectangle, of the other.

/**
 * A rectangle of an array: where it starts, and how far apart its batch entries, heads and rows are. The elements of a
 * row lie together.
 * @typedef {object} Rectangle
 * @property {any} data a typed array
 * @property {number} at its first element
 * @property {number} batch elements from one batch entry to the next
 * @property {number} head
 * @property {number} row
 */

/** Shorter runs are copied element by element: making a view takes as long as copying this many. */
const shortRun = 96;

/**
 * @param {any} data
 * @param {boolean} blhd whether rows come before heads
 * @param {readonly [number, number, number]} sizes heads, rows, elements of a row
 * @param {readonly [number, number, number]} [first] batch entry, head and row where the rectangle starts
 * @returns {Rectangle}
 */
export function rectangle(data, blhd, [heads, rows, width], [b, h, i] = [0, 0, 0]) {
  const batch = heads * rows * width;
  const head = blhd ? width : rows * width;
  const row = blhd ? heads * width : width;
  return { data, at: b * batch + h * head + i * row, batch, head, row };
}

/**
 * @param {Rectangle} from
 * @param {Rectangle} to of the same type
 * @param {readonly [number, number, number, number]} sizes batch entries, heads, rows, elements of a row
 */
export function copyRectangle(from, to, [batch, heads, rows, width]) {
  // What lies together in both arrays is copied as one run.
  let run = width;
  let steps = rows;
  if (from.row === width && to.row === width) {
    run *= rows;
    steps = 1;
  }
  for (let b = 0; b < batch; b++) {
    for (let h = 0; h < heads; h++) {
      let source = from.at + b * from.batch + h * from.head;
      let target = to.at + b * to.batch + h * to.head;
      for (let i = 0; i < steps; i++) {
        copyRun(from.data, source, to.data, target, run);
        source += from.row;
        target += to.row;
      }
    }
  }
}

/**
 * @param {any} from
 * @param {number} source
 * @param {any} to
 * @param {number} target
 * @param {number} count
 */
function copyRun(from, source, to, target, count) {
  if (count > shortRun) {
    to.set(from.subarray(source, source + count), target);
    return;
  }
  for (let i = 0; i < count; i++) to[target + i] = from[source + i];
}

/**
 * A rectangle as an array (batch, head, row, element).
 * @param {Rectangle} from
 * @param {readonly [number, number, number, number]} sizes
 * @param {import('./buffers.js').Buffers | null} buffers where an array of its own comes from; null: a view will do, where its
 *   elements lie together
 * @returns {any} a typed array of the same type
 */
export function cutOut(from, sizes, buffers) {
  const [batch, heads, rows, width] = sizes;
  const { data, at } = from;
  const count = batch * heads * rows * width;
  const together =
    (rows === 1 || from.row === width) &&
    (heads === 1 || from.head === rows * width) &&
    (batch === 1 || from.batch === heads * rows * width);
  if (together && !buffers) return data.subarray(at, at + count);
  const copy = buffers ? buffers.take(data.constructor, count) : new data.constructor(count);
  copyRectangle(from, rectangle(copy, false, [heads, rows, width]), sizes);
  return copy;
}
