// One head of a tensor, and whether two tensors can be a query and its key.

/**
 * @typedef {import('./tensor-store.js').NamedTensor} NamedTensor
 * @typedef {'bhld' | 'blhd'} Layout
 * @typedef {{ batch: number, heads: number, length: number, size: number }} Sizes
 * @typedef {{ data: Float32Array | Uint16Array, shape: [number, number], dtype: NamedTensor['dtype'] }} Rows
 */

/**
 * @param {Pick<NamedTensor, 'shape'>} tensor (L, D), (H, L, D) or (B, H, L, D); with layout 'blhd' (L, H, D) or (B, L, H, D)
 * @param {Layout} layout
 * @returns {Sizes}
 */
export function sizesOf({ shape }, layout) {
  const size = shape[shape.length - 1];
  if (shape.length === 2) return { batch: 1, heads: 1, length: shape[0], size };
  const [first, second] = shape.slice(-3);
  const [heads, length] = layout === 'bhld' ? [first, second] : [second, first];
  return { batch: shape.length === 4 ? shape[0] : 1, heads, length, size };
}

/**
 * @param {NamedTensor} query
 * @param {NamedTensor} key
 * @param {Layout} layout
 * @returns {string} why they do not fit, with both counts; nothing where they do
 */
export function mismatch(query, key, layout) {
  const [q, k] = [sizesOf(query, layout), sizesOf(key, layout)];
  const pair = (/** @type {string} */ what, /** @type {number} */ a, /** @type {number} */ b) =>
    `${query.name} has ${what} ${a}, but ${key.name} has ${b}`;
  if (q.size !== k.size) return pair('head size', q.size, k.size);
  if (q.batch !== k.batch) return pair('batch size', q.batch, k.batch);
  if (q.heads % k.heads !== 0) return `${pair('heads:', q.heads, k.heads)}, which does not divide it`;
  return '';
}

/**
 * @param {NamedTensor} tensor
 * @param {Layout} layout
 * @param {number} batch
 * @param {number} head
 * @returns {Rows} a view where the rows lie one after the other, a copy otherwise
 */
export function oneHead(tensor, layout, batch, head) {
  const { heads, length, size } = sizesOf(tensor, layout);
  const { data, dtype } = tensor;
  if (layout === 'bhld' || heads === 1) {
    const from = (batch * heads + head) * length * size;
    return { data: data.subarray(from, from + length * size), shape: [length, size], dtype };
  }
  const rows = new /** @type {any} */ (data.constructor)(length * size);
  for (let i = 0; i < length; i++) {
    const from = ((batch * length + i) * heads + head) * size;
    rows.set(data.subarray(from, from + size), i * size);
  }
  return { data: rows, shape: [length, size], dtype };
}

/**
 * @param {Rows} rows
 * @param {number} from
 * @param {number} count
 * @returns {Rows} a view
 */
export const rowsFrom = ({ data, shape: [, size], dtype }, from, count) => ({
  data: data.subarray(from * size, (from + count) * size),
  shape: [count, size],
  dtype,
});
