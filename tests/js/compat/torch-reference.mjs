// scaled_dot_product_attention as PyTorch's documentation spells it, in float64, over leading dimensions of any rank.

import { isDropped } from '../helpers/reference.mjs';

/**
 * @param {any} query { data, shape } with plain numbers
 * @param {any} key
 * @param {any} value
 * @param {any} [options] `attnMask` as { data, shape, bool }, isCausal, scale, enableGqa, and `dropout: { p, seed }`
 * @returns {{ data: Float64Array, shape: number[] }}
 */
export function torchReference(query, key, value, options = {}) {
  const { attnMask, isCausal = false, enableGqa = false, dropout = { p: 0 } } = options;
  const [L, E] = query.shape.slice(-2);
  const [S, Ev] = value.shape.slice(-2);
  const scale = options.scale ?? 1 / Math.sqrt(E);
  const repeat = enableGqa ? query.shape.at(-3) / key.shape.at(-3) : 1;
  /** The shape after repeat_interleave of the heads. @param {any} tensor */
  const repeated = ({ shape }) => [
    ...shape.slice(0, -3),
    ...shape
      .slice(0, -2)
      .slice(-1)
      .map((n) => n * repeat),
  ];
  const full = broadcast([query.shape.slice(0, -2), repeated(key), repeated(value)]);
  const heads = full.at(-1) ?? 1;

  const count = full.reduce((a, n) => a * n, 1);
  const out = new Float64Array(count * L * Ev);
  for (let flat = 0; flat < count; flat++) {
    const index = unravel(flat, full);
    const grouped = index.map((x, axis) => (axis === index.length - 1 ? Math.floor(x / repeat) : x));
    for (let i = 0; i < L; i++) {
      const logits = Array.from({ length: S }, (_, j) => {
        let dot = 0;
        for (let d = 0; d < E; d++) dot += at(query, [...index, i, d]) * at(key, [...grouped, j, d]);
        let logit = dot * scale;
        if (isCausal && j > i) return -Infinity;
        if (attnMask?.bool) return at(attnMask, [...index, i, j]) ? logit : -Infinity;
        if (attnMask) logit += at(attnMask, [...index, i, j]);
        return logit;
      });
      const top = Math.max(...logits);
      if (top === -Infinity) continue;
      const sum = logits.reduce((total, logit) => total + Math.exp(logit - top), 0);
      logits.forEach((logit, j) => {
        if (dropout.p > 0 && isDropped(dropout, Math.floor(flat / heads), flat % heads, i, j)) return;
        const weight = Math.exp(logit - top) / sum / (1 - dropout.p);
        for (let d = 0; d < Ev; d++) out[(flat * L + i) * Ev + d] += weight * at(value, [...grouped, j, d]);
      });
    }
  }
  return { data: out, shape: [...full, L, Ev] };
}

/** @param {number[][]} shapes */
function broadcast(shapes) {
  const rank = Math.max(...shapes.map((shape) => shape.length));
  return Array.from({ length: rank }, (_, axis) =>
    shapes.map((shape) => shape[axis - rank + shape.length] ?? 1).reduce((a, b) => (a === 1 ? b : a), 1),
  );
}

/** @param {number} flat @param {number[]} shape */
function unravel(flat, shape) {
  /** @type {number[]} */
  const index = [];
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    index.unshift(flat % shape[axis]);
    flat = Math.floor(flat / shape[axis]);
  }
  return index;
}

/** The element at an index that broadcasts from the right. @param {any} tensor @param {number[]} index */
function at({ data, shape }, index) {
  const own = index.slice(index.length - shape.length);
  return Number(data[shape.reduce((flat, size, axis) => flat * size + (size === 1 ? 0 : own[axis]), 0)]);
}
