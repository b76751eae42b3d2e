// Tokens as tensors, cut into pieces and turned, for the tests of KV caches.

/**
 * Tokens `from` up to `to` of a (B, H, L, D) tensor.
 * @param {any} tensor
 * @param {number} from
 * @param {number} to
 */
export function tokens({ data, shape, dtype }, from, to) {
  const [B, H, L, D] = shape;
  const part = new data.constructor(B * H * (to - from) * D);
  for (let r = 0; r < B * H; r++) {
    part.set(data.subarray((r * L + from) * D, (r * L + to) * D), r * (to - from) * D);
  }
  return { data: part, shape: [B, H, to - from, D], ...(dtype && { dtype }) };
}

/** The same numbers as (B, L, H, D). @param {any} tensor */
export function blhd({ data, shape: [B, H, L, D], dtype }) {
  const turned = new data.constructor(data.length);
  for (let b = 0; b < B; b++)
    for (let h = 0; h < H; h++)
      for (let i = 0; i < L; i++) {
        const from = ((b * H + h) * L + i) * D;
        turned.set(data.subarray(from, from + D), ((b * L + i) * H + h) * D);
      }
  return { data: turned, shape: [B, L, H, D], ...(dtype && { dtype }) };
}

/**
 * Pieces of sizes that repeat.
 * @param {number} length
 * @param {number[]} sizes
 * @returns {[number, number][]}
 */
export function pieces(length, sizes) {
  /** @type {[number, number][]} */
  const cuts = [];
  for (let from = 0, n = 0; from < length; n++) {
    const to = Math.min(length, from + sizes[n % sizes.length]);
    cuts.push([from, to]);
    from = to;
  }
  return cuts;
}
