// Broadcasting of leading dimensions, aligned on the right, each 1 or full.

/**
 * @param {readonly number[]} shape
 * @returns {number} its elements
 */
export const count = (shape) => shape.reduce((product, size) => product * size, 1);

/**
 * @param {readonly (readonly number[])[]} shapes
 * @returns {number[] | null} the shape that all of them broadcast to; null where there is none
 */
export function broadcastShapes(shapes) {
  const rank = Math.max(...shapes.map((shape) => shape.length));
  const full = /** @type {number[]} */ (Array(rank).fill(1));
  for (const shape of shapes) {
    const missing = rank - shape.length;
    for (let i = 0; i < shape.length; ++i) {
      if (shape[i] === 1 || shape[i] === full[missing + i]) continue;
      if (full[missing + i] !== 1) return null;
      full[missing + i] = shape[i];
    }
  }
  return full;
}

/**
 * Whole blocks repeated, so that leading dimensions of size 1 become full.
 * @param {any} data a typed array of count(lead) blocks
 * @param {readonly number[]} lead leading dimensions, at most as many as `wanted`
 * @param {readonly number[]} wanted
 * @param {number} block elements of a block
 * @returns {any} `data` itself where nothing is to be repeated, else a new array
 */
export function expandBlocks(data, lead, wanted, block) {
  const blocks = count(wanted);
  if (blocks === count(lead)) return data;
  const out = new data.constructor(blocks * block);
  const missing = wanted.length - lead.length;
  for (let to = 0; to < blocks; ++to) {
    let rest = to;
    let from = 0;
    let stride = 1;
    for (let i = wanted.length - 1; i >= missing; --i) {
      const size = lead[i - missing];
      if (size !== 1) from += (rest % wanted[i]) * stride;
      rest = Math.floor(rest / wanted[i]);
      stride *= size;
    }
    out.set(data.subarray(from * block, (from + 1) * block), to * block);
  }
  return out;
}
