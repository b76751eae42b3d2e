// Rotation of one row by its angles, the step that every rotary embedding shares:
//
//   (x1, x2) -> (x1 cos - x2 sin, x1 sin + x2 cos)
//
// for each pair of columns: k and k + pairs ("half": NeoX, Llama, ONNX's default), or 2k and 2k + 1 ("interleaved": GPT-J).
// Computed in float64 and rounded once, where it is stored. Columns behind the pairs are left alone.

/**
 * @param {Float32Array} array turned in place
 * @param {number} at index of the row's first element
 * @param {ArrayLike<number>} cos
 * @param {ArrayLike<number>} sin
 * @param {number} angles index of the row's first angle in cos and sin
 * @param {number} pairs number of angles
 * @param {boolean} interleaved
 */
export function rotateRow(array, at, cos, sin, angles, pairs, interleaved) {
  const step = interleaved ? 2 : 1;
  const apart = interleaved ? 1 : pairs;
  for (let k = 0; k < pairs; ++k) {
    const first = array[at + k * step];
    const second = array[at + k * step + apart];
    const c = cos[angles + k];
    const s = sin[angles + k];
    array[at + k * step] = first * c - second * s;
    array[at + k * step + apart] = first * s + second * c;
  }
}
