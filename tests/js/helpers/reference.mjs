// Attention by its definition: one query row at a time, in float64, for every option of attention(). Slow and plain on purpose; it
// shares no code with the package.

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
 * @param {any} [options] those of attention()
 * @returns {Reference}
 */
export function referenceAttention(query, key, value, options = {}) {
  const { layout = 'bhld', softcap = 0, causal = false, window = [Infinity, Infinity] } = options;
  const q = view(query, layout);
  const k = view(key, layout);
  const v = view(value, layout);
  const [B, Hq, L, D] = q.sizes;
  const [, Hkv, S] = k.sizes;
  const Dv = v.sizes[3];
  const scale = options.scale ?? 1 / Math.sqrt(D);
  const mask = options.mask && broadcast(options.mask, [B, Hq, L, S]);
  const bias = options.bias && broadcast(options.bias, [B, Hq, L, S]);

  const lse = new Float64Array(B * Hq * L);
  const stage = () => new Float64Array(B * Hq * L * S);
  const scores = { scaled: stage(), capped: stage(), biased: stage(), weights: stage() };
  const shape = [...query.shape];
  shape[shape.length - 1] = Dv;
  const out = new Float64Array(B * Hq * L * Dv);
  const outAt = view({ data: out, shape }, layout).at;

  for (let b = 0; b < B; b++) {
    const kvLength = options.kvLengths ? options.kvLengths[b] : S;
    const queryLength = options.queryLengths ? options.queryLengths[b] : L;
    const offset = offsetOf(options, b, L, kvLength);
    for (let h = 0; h < Hq; h++) {
      const g = Math.floor(h / (Hq / Hkv));
      for (let i = 0; i < L; i++) {
        const row = ((b * Hq + h) * L + i) * S;
        const p = i + offset;
        const allowed = new Array(S).fill(false);
        for (let j = 0; j < S; j++) {
          let r = 0;
          for (let d = 0; d < D; d++) r += q.get(b, h, i, d) * k.get(b, g, j, d);
          let t = scale * r;
          scores.scaled[row + j] = t;
          if (softcap > 0) t = softcap * Math.tanh(t / softcap);
          scores.capped[row + j] = t;
          allowed[j] =
            i < queryLength &&
            j < kvLength &&
            !(causal && j > p) &&
            j >= p - window[0] &&
            j <= p + window[1] &&
            !(mask && !mask(b, h, i, j));
          if (allowed[j] && bias) {
            const x = bias(b, h, i, j);
            if (x === -Infinity) allowed[j] = false;
            else t += x;
          }
          scores.biased[row + j] = allowed[j] ? t : -Infinity;
        }
        const seen = [...allowed.keys()].filter((j) => allowed[j]);
        const top = seen.reduce((most, j) => Math.max(most, scores.biased[row + j]), -Infinity);
        let sum = 0;
        for (const j of seen) sum += Math.exp(scores.biased[row + j] - top);
        lse[(b * Hq + h) * L + i] = seen.length ? top + Math.log(sum) : -Infinity;
        for (const j of seen) {
          const weight = Math.exp(scores.biased[row + j] - top) / sum;
          scores.weights[row + j] = weight;
          for (let d = 0; d < Dv; d++) out[outAt(b, h, i, d)] += weight * v.get(b, g, j, d);
        }
      }
    }
  }
  return { out, lse, scores, shape };
}

/**
 * @param {any} options
 * @param {number} b
 * @param {number} L
 * @param {number} kvLength
 */
function offsetOf(options, b, L, kvLength) {
  const { align, queryOffset } = options;
  if (queryOffset !== undefined) return typeof queryOffset === 'number' ? queryOffset : queryOffset[b];
  return align === 'lower-right' ? kvLength - L : 0;
}

/**
 * Indexed by (b, h, i, d) whatever rank and layout.
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
  const at = (/** @type {number} */ b, /** @type {number} */ h, /** @type {number} */ i, /** @type {number} */ d) =>
    blhd ? ((b * rows + i) * heads + h) * last + d : ((b * heads + h) * rows + i) * last + d;
  const get = (/** @type {number} */ b, /** @type {number} */ h, /** @type {number} */ i, /** @type {number} */ d) =>
    widen(data[at(b, h, i, d)], dtype);
  return { sizes: [batch, heads, rows, last], at, get };
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
function widen(x, dtype) {
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
