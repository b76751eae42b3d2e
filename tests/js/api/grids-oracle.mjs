// Rows of attention in float64, and in plain float32 arithmetic: what a kernel's error is measured with.

const round = Math.fround;

/**
 * @typedef {object} Sizes
 * @property {number} B
 * @property {number} Hq
 * @property {number} Hkv
 * @property {number} L
 * @property {number} S
 * @property {number} D
 * @property {number} Dv
 */

/**
 * One call, all tensors (B, H, L or S, D or Dv). The numbers of query and key may differ between the two computations, where they
 * come out of another one.
 * @typedef {object} Call
 * @property {Sizes} sizes
 * @property {{ query: ArrayLike<number>, key: ArrayLike<number> }} exact
 * @property {{ query: ArrayLike<number>, key: ArrayLike<number> }} plain
 * @property {ArrayLike<number>} value
 * @property {(b: number, h: number, i: number, j: number) => boolean} [sees]
 * @property {(b: number, i: number, j: number) => number} [distance] times the slope it is taken from the score
 * @property {ArrayLike<number>} [slopes] (Hq)
 * @property {ArrayLike<number>} [bias] (L, S)
 * @property {number} [scale]
 * @property {number} [softcap]
 * @property {(b: number, h: number, i: number, j: number) => boolean} [dropped]
 * @property {number} [dropout]
 */

/** @typedef {{ out: Float64Array, lse: Float64Array }} Rows (B, Hq, picks, Dv) and (B, Hq, picks) */

/**
 * @param {Call} call
 * @param {number[]} picks query rows
 * @returns {{ exact: Rows, plain: Rows }}
 */
export function chosenRows(call, picks) {
  const { B, Hq, Dv } = call.sizes;
  const empty = () => ({
    out: new Float64Array(B * Hq * picks.length * Dv),
    lse: new Float64Array(B * Hq * picks.length).fill(-Infinity),
  });
  const rows = { exact: empty(), plain: empty() };
  for (let head = 0; head < B * Hq; head++) {
    picks.forEach((i, n) => {
      const at = head * picks.length + n;
      const seen = seenBy(call, head, i);
      exactRow(call, head, i, seen, rows.exact, at);
      plainRow(call, head, i, seen, rows.plain, at);
    });
  }
  return rows;
}

/** @param {Call} call @param {number} head @param {number} i */
function seenBy({ sizes, sees, bias }, head, i) {
  const { Hq, S } = sizes;
  const seen = [];
  for (let j = 0; j < S; j++) {
    if (bias && bias[i * S + j] === -Infinity) continue;
    if (!sees || sees(Math.floor(head / Hq), head % Hq, i, j)) seen.push(j);
  }
  return seen;
}

/** First element of a head's keys or values. @param {Sizes} sizes @param {number} head @param {number} width */
const headOf = ({ Hq, Hkv, S }, head, width) => {
  const b = Math.floor(head / Hq);
  return (b * Hkv + Math.floor((head % Hq) / (Hq / Hkv))) * S * width;
};

/**
 * @param {Call} call
 * @param {number} head
 * @param {number} i
 * @param {number[]} seen
 * @param {Rows} rows
 * @param {number} at
 */
function exactRow(call, head, i, seen, rows, at) {
  const { sizes, exact, value, distance, slopes, bias, softcap = 0, dropped, dropout = 0 } = call;
  const { Hq, L, S, D, Dv } = sizes;
  const { scale = 1 / Math.sqrt(D) } = call;
  const [b, h] = [Math.floor(head / Hq), head % Hq];
  const { query, key } = exact;
  const q = (head * L + i) * D;
  const weights = new Float64Array(seen.length);
  let top = -Infinity;
  for (let n = 0; n < seen.length; n++) {
    const k = headOf(sizes, head, D) + seen[n] * D;
    let s = 0;
    for (let d = 0; d < D; d++) s += query[q + d] * key[k + d];
    s *= scale;
    if (softcap > 0) s = softcap * Math.tanh(s / softcap);
    if (bias) s += bias[i * S + seen[n]];
    if (distance && slopes) s -= slopes[h] * distance(b, i, seen[n]);
    weights[n] = s;
    top = Math.max(top, s);
  }
  if (seen.length === 0) return;
  let sum = 0;
  for (let n = 0; n < weights.length; n++) sum += weights[n] = Math.exp(weights[n] - top);
  rows.lse[at] = top + Math.log(sum);
  for (let n = 0; n < weights.length; n++) {
    if (dropped && dropped(b, h, i, seen[n])) continue;
    const weight = weights[n] / sum / (1 - dropout);
    const v = headOf(sizes, head, Dv) + seen[n] * Dv;
    for (let d = 0; d < Dv; d++) rows.out[at * Dv + d] += weight * value[v + d];
  }
}

/**
 * The same with every operation rounded to float32.
 * @param {Call} call
 * @param {number} head
 * @param {number} i
 * @param {number[]} seen
 * @param {Rows} rows
 * @param {number} at
 */
function plainRow(call, head, i, seen, rows, at) {
  const { sizes, plain, value, distance, slopes, bias, dropped, dropout = 0 } = call;
  const { Hq, L, S, D, Dv } = sizes;
  const scale = round(call.scale ?? round(1 / round(Math.sqrt(D))));
  const softcap = round(call.softcap ?? 0);
  const kept = round(1 / round(1 - round(dropout)));
  const [b, h] = [Math.floor(head / Hq), head % Hq];
  const { query, key } = plain;
  const q = (head * L + i) * D;
  const weights = new Float32Array(seen.length);
  let top = -Infinity;
  for (let n = 0; n < seen.length; n++) {
    const k = headOf(sizes, head, D) + seen[n] * D;
    let s = 0;
    for (let d = 0; d < D; d++) s = round(s + round(query[q + d] * key[k + d]));
    s = round(scale * s);
    if (softcap > 0) s = round(softcap * round(Math.tanh(round(s / softcap))));
    if (bias) s = round(s + bias[i * S + seen[n]]);
    if (distance && slopes) s = round(s - round(round(slopes[h]) * distance(b, i, seen[n])));
    weights[n] = s;
    top = Math.max(top, s);
  }
  if (seen.length === 0) return;
  let sum = 0;
  for (let n = 0; n < weights.length; n++) {
    weights[n] = Math.exp(round(weights[n] - top));
    sum = round(sum + weights[n]);
  }
  rows.lse[at] = round(top + round(Math.log(sum)));
  const out = new Float32Array(Dv);
  for (let n = 0; n < weights.length; n++) {
    if (dropped && dropped(b, h, i, seen[n])) continue;
    const weight = round(round(weights[n] / sum) * kept);
    const v = headOf(sizes, head, Dv) + seen[n] * Dv;
    for (let d = 0; d < Dv; d++) out[d] = round(out[d] + round(weight * value[v + d]));
  }
  rows.out.set(out, at * Dv);
}
