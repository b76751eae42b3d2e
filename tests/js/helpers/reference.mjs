// Attention by its definition: one query row at a time, in float64, for every option of attention(). Slow and plain on purpose; it
// shares no code with the package.

import { philox } from './philox.mjs';

/**
 * @typedef {object} Reference
 * @property {Float64Array} out in the query's shape with the value's head size
 * @property {Float64Array} lse (B, Hq, L)
 * @property {Record<'scaled' | 'capped' | 'biased' | 'weights', Float64Array>} scores (B, Hq, L, S) at each stage
 * @property {number[]} shape of out
 */

/**
 * @param {any} query
 * @param {any} key
 * @param {any} value
 * @param {any} [options] those of attention(); `blockMask` as a tensor of cells, non-zero = attend, that broadcasts to (B, Hq, L, S)
 * @returns {Reference}
 */
export function referenceAttention(query, key, value, options = {}) {
  const { layout = 'bhld', softcap = 0, dropout = { p: 0 } } = options;
  const q = view(query, layout);
  const k = view(key, layout);
  const v = view(value, layout);
  const [B, Hq, L, D] = q.sizes;
  const [, Hkv, S] = k.sizes;
  const Dv = v.sizes[3];
  const scale = options.scale ?? 1 / Math.sqrt(D);
  const bias = options.bias && broadcast(options.bias, [B, Hq, L, S]);
  const slopes = options.alibiSlopes && perHead(options.alibiSlopes, Hq);
  const sinks = sinksOf(options, Hq);
  const allows = makeRules(options, [B, Hq, L, S]);

  const lse = new Float64Array(B * Hq * L);
  const stage = () => new Float64Array(B * Hq * L * S);
  const scores = { scaled: stage(), capped: stage(), biased: stage(), weights: stage() };
  const shape = [...query.shape];
  shape[shape.length - 1] = Dv;
  const out = new Float64Array(B * Hq * L * Dv);
  const outAt = view({ data: out, shape }, layout).at;

  for (let b = 0; b < B; b++) {
    for (let h = 0; h < Hq; h++) {
      const g = Math.floor(h / (Hq / Hkv));
      for (let i = 0; i < L; i++) {
        const row = ((b * Hq + h) * L + i) * S;
        const { position, start, sees } = allows(b, i);
        /** @type {number[]} */
        const seen = [];
        const qRow = q.at(b, h, i);
        for (let j = 0; j < S; j++) {
          const kRow = k.at(b, g, j);
          let r = 0;
          for (let d = 0; d < D; d++) r += q.data[qRow + d] * k.data[kRow + d];
          let t = scale * r;
          scores.scaled[row + j] = t;
          if (softcap > 0) t = softcap * Math.tanh(t / softcap);
          scores.capped[row + j] = t;
          const added = bias ? bias(b, h, i, j) : 0;
          const allowed = sees(h, j) && added !== -Infinity;
          t += added;
          if (slopes) t -= slopes(b, h) * Math.abs(position - (j - start));
          scores.biased[row + j] = allowed ? t : -Infinity;
          if (allowed) seen.push(j);
        }
        const extra = sinks.map((sink) => sink(b, h)).filter((s) => s !== -Infinity);
        const outRow = outAt(b, h, i);
        const logits = [...seen.map((j) => scores.biased[row + j]), ...extra];
        const top = logits.reduce((most, s) => Math.max(most, s), -Infinity);
        const sum = logits.reduce((total, s) => total + Math.exp(s - top), 0);
        lse[(b * Hq + h) * L + i] = logits.length ? top + Math.log(sum) : -Infinity;
        for (const j of seen) {
          const weight = Math.exp(scores.biased[row + j] - top) / sum;
          scores.weights[row + j] = weight;
          if (dropout.p > 0 && isDropped(dropout, b, h, i, j)) continue;
          const kept = weight / (1 - dropout.p);
          const vRow = v.at(b, g, j);
          for (let d = 0; d < Dv; d++) out[outRow + d] += kept * v.data[vRow + d];
        }
      }
    }
  }
  return { out, lse, scores, shape };
}

/**
 * Which keys take part, biases apart.
 * @param {any} options
 * @param {number[]} sizes
 * @returns {(b: number, i: number) => { position: number, start: number, sees: (h: number, j: number) => boolean }} `position` of row i
 *   among the keys of its sequence, which begin at `start`
 */
function makeRules(options, [B, Hq, L, S]) {
  const { causal = false, window = [Infinity, Infinity], chunk = 0, globalKeys = 0, cuSeqlens, segmentIds } = options;
  const mask = options.mask && broadcast(options.mask, [B, Hq, L, S]);
  const blocks = options.blockMask && broadcast(options.blockMask, [B, Hq, L, S]);
  const idOf = (/** @type {any} */ ids, /** @type {number} */ length) => {
    const data = ids.data ?? ids;
    return (/** @type {number} */ b, /** @type {number} */ x) => data[data.length === length ? x : b * length + x];
  };
  const queryId = segmentIds && idOf(segmentIds.query, L);
  const keyId = segmentIds && idOf(segmentIds.key, S);
  return (b, i) => {
    const queryLength = options.queryLengths ? options.queryLengths[b] : L;
    const kvLength = options.kvLengths ? options.kvLengths[b] : S;
    let [start, end] = [0, S];
    let position = i + offsetOf(options, b, kvLength - L);
    if (cuSeqlens) {
      const { query, key } = cuSeqlens;
      [start, end] = [0, 0];
      for (let s = 0; s + 1 < query.length; s++) {
        if (i < query[s] || i >= query[s + 1]) continue;
        [start, end] = [key[s], key[s + 1]];
        const said = options.align !== undefined || options.queryOffset !== undefined;
        const lowerRight = end - start - (query[s + 1] - query[s]);
        position = i - query[s] + (said ? offsetOf(options, b, lowerRight) : lowerRight);
      }
    }
    const sees = (/** @type {number} */ h, /** @type {number} */ j) => {
      const own = j - start;
      const near =
        own < globalKeys ||
        (own >= position - window[0] && (!chunk || Math.floor(own / chunk) === Math.floor(position / chunk)));
      return (
        i < queryLength &&
        j < kvLength &&
        j >= start &&
        j < end &&
        near &&
        own <= position + window[1] &&
        !(causal && own > position) &&
        !(mask && !mask(b, h, i, j)) &&
        !(blocks && !blocks(b, h, i, j)) &&
        !(segmentIds && queryId(b, i) !== keyId(b, j))
      );
    };
    return { position, start, sees };
  };
}

/**
 * @param {any} options
 * @param {number} b
 * @param {number} lowerRight
 */
function offsetOf({ align, queryOffset }, b, lowerRight) {
  if (queryOffset !== undefined) return typeof queryOffset === 'number' ? queryOffset : queryOffset[b];
  return align === 'lower-right' ? lowerRight : 0;
}

/**
 * @param {any} numbers (Hq) or (B, Hq)
 * @param {number} Hq
 * @returns {(b: number, h: number) => number}
 */
function perHead(numbers, Hq) {
  const data = numbers.data ?? numbers;
  return (b, h) => data[data.length === Hq ? h : b * Hq + h];
}

/**
 * @param {any} options
 * @param {number} Hq
 */
function sinksOf({ sinks, smoothSoftmax }, Hq) {
  return [...(sinks ? [perHead(sinks, Hq)] : []), ...(smoothSoftmax ? [() => 0] : [])];
}

/**
 * @param {{ p: number, seed: number }} dropout
 * @param {number} b
 * @param {number} h
 * @param {number} i
 * @param {number} j
 */
export function isDropped({ p, seed }, b, h, i, j) {
  const counter = [j >> 2, i, h, b];
  const name = `${counter} ${seed}`;
  // Four neighbours share a counter.
  if (name !== drawn.name) drawn = { name, words: philox(counter, [seed % 2 ** 32, Math.floor(seed / 2 ** 32)]) };
  return drawn.words[j & 3] < Math.floor(p * 2 ** 32);
}

let drawn = { name: '', words: [0] };

/**
 * The elements as float64, and where row (b, h, i) begins, whatever rank and layout.
 * @param {any} tensor
 * @param {string} layout
 */
function view({ data, shape, dtype }, layout) {
  const rank = shape.length;
  const blhd = layout === 'blhd';
  const last = shape[rank - 1];
  const [rows, heads] =
    rank === 2 ? [shape[0], 1] : blhd ? [shape[rank - 3], shape[rank - 2]] : [shape[rank - 2], shape[rank - 3]];
  const batch = rank === 4 ? shape[0] : 1;
  const at = (/** @type {number} */ b, /** @type {number} */ h, /** @type {number} */ i) =>
    (blhd ? (b * rows + i) * heads + h : (b * heads + h) * rows + i) * last;
  return { sizes: [batch, heads, rows, last], at, data: Float64Array.from(data, (x) => widen(x, dtype)) };
}

/**
 * @param {any} tensor
 * @param {number[]} full
 */
function broadcast({ data, shape, dtype }, full) {
  const padded = [...Array(4 - shape.length).fill(1), ...shape];
  padded.forEach((size, r) => {
    if (size !== 1 && size !== full[r]) throw new Error(`[${shape}] does not broadcast to [${full}]`);
  });
  return (/** @type {number[]} */ ...index) => {
    let at = 0;
    for (let r = 0; r < 4; r++) at = at * padded[r] + (padded[r] === 1 ? 0 : index[r]);
    return widen(data[at], dtype);
  };
}

/**
 * @param {number | boolean} x
 * @param {string} [dtype]
 * @returns {number}
 */
export function widen(x, dtype) {
  if (dtype === 'float16') return halfToNumber(Number(x));
  if (dtype === 'bfloat16') return new Float32Array(new Uint32Array([Number(x) << 16]).buffer)[0];
  return Number(x);
}

/**
 * The number that 16 bits of binary16 stand for.
 * @param {number} bits
 */
export function halfToNumber(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return exponent ? sign * 2 ** (exponent - 15) * (1 + fraction / 1024) : sign * 2 ** -24 * fraction;
}

/**
 * Random bits of a 16-bit type that stand for numbers between -2 and 2.
 * @param {number} count
 * @param {'float16' | 'bfloat16'} dtype
 * @param {() => number} random
 */
export function random16(count, dtype, random) {
  // Any sign and fraction, an exponent of 2^-3 ... 2^0.
  const [bias, bits] = dtype === 'float16' ? [15, 10] : [127, 7];
  return Uint16Array.from({ length: count }, () => {
    const sign = random() < 0.5 ? 0x8000 : 0;
    const exponent = bias - Math.floor(random() * 4);
    return sign | (exponent << bits) | Math.floor(random() * (1 << bits));
  });
}

/**
 * Numbers that look normally distributed, the same for the same seed.
 * @param {number} seed
 */
export function randomSource(seed) {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
  const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  /** @param {number[]} shape */
  const tensor = (...shape) => ({
    data: Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, normal),
    shape,
  });
  return { uniform, normal, tensor };
}

/**
 * The largest difference, as a share of 1 + |want|; positions where both are the same infinity or both NaN agree.
 * @param {ArrayLike<number>} got
 * @param {ArrayLike<number>} want
 */
export function largestError(got, want) {
  if (got.length !== want.length) return Infinity;
  let worst = 0;
  for (let i = 0; i < got.length; i++) {
    if (Object.is(got[i], want[i]) || got[i] === want[i]) continue;
    const error = Math.abs(got[i] - want[i]) / (1 + Math.abs(want[i]));
    if (!(error <= worst)) worst = Number.isNaN(error) ? Infinity : error;
  }
  return worst;
}
