// Tensors and options of calls, right ones and anything at all: each call gives results of the right shapes, or an error of the package with
// nothing taken. What the checks in JavaScript let through the module must not refuse.

import { AttentionError, load } from 'sdpa';

/** @typedef {import('../draw.mjs').Draw} Draw */

const codes = ['type', 'shape', 'option', 'unknown-option', 'align-required', 'out-of-memory', 'unsupported'];

/** Values that no option expects, made anew. @param {Draw} draw @returns {any} */
function anything(draw) {
  return draw.pick([
    () => null,
    () => draw.edge(),
    () => -draw.edge(),
    () => draw.pick([NaN, Infinity, -Infinity, 1.5, -0, 1e-320, 1e300]),
    () => draw.pick(['', 'abc', 'lower-right', 'float16', '1', true, false, 10n]),
    () => Symbol('s'),
    () => () => 1,
    () => [],
    () => [draw.edge(), -1, 'x'],
    () => ({}),
    () => ({ data: new Float32Array(4), shape: [2, 2] }),
    () => ({ data: new Float32Array(4), shape: [draw.edge(), draw.edge()] }),
    () => ({ data: new Uint8Array(1), shape: [1] }),
    () => new Int32Array(draw.below(4)).fill(draw.pick([-1, 0, 1, 2 ** 31 - 1])),
    () => new Float32Array(draw.below(9)),
    () => Object.create(null),
    () => new Proxy({}, {}),
    () => new Map(),
    () => ({ length: draw.edge() }),
    () => ({ length: 2, 0: 1, 1: NaN }),
  ])();
}

/** What fits a call of these sizes. @type {Record<string, (draw: Draw, sizes: any) => any>} */
const fitting = {
  scale: (draw) => draw.pick([0, -1, 0.25]),
  softcap: (draw) => draw.pick([0, 1, 30]),
  mask: (draw, { B, H, L, S }) => {
    const shape = [B, H, L, S].map((size) => (draw.chance(0.3) ? 1 : size));
    return { data: Uint8Array.from({ length: count(shape) }, () => draw.below(2)), shape };
  },
  bias: (draw, { B, H, L, S }) => draw.tensor(...[B, H, L, S].map((size) => (draw.chance(0.3) ? 1 : size))),
  causal: () => true,
  window: (draw, { S }) => [draw.below(S + 3), draw.below(S + 3)],
  chunk: (draw, { S }) => 1 + draw.below(S + 3),
  globalKeys: (draw, { S }) => draw.below(S + 3),
  alibiSlopes: (draw, { H }) => Float32Array.from({ length: H }, draw.uniform),
  align: (draw) => draw.pick(['lower-right', 'upper-left']),
  queryOffset: (draw, { B }) =>
    draw.chance(0.5) ? draw.below(20) - 10 : Int32Array.from({ length: B }, () => draw.below(20) - 10),
  queryLengths: (draw, { B, L }) => Int32Array.from({ length: B }, () => draw.below(L + 1)),
  kvLengths: (draw, { B, S }) => Int32Array.from({ length: B }, () => draw.below(S + 1)),
  segmentIds: (draw, { B, L, S }) => ({
    query: Int32Array.from({ length: B * L }, () => draw.below(3)),
    key: Int32Array.from({ length: B * S }, () => draw.below(3)),
  }),
  cuSeqlens: (_draw, { L, S }) => ({ query: Int32Array.of(0, L >> 1, L), key: Int32Array.of(0, S >> 1, S) }),
  sinks: (draw, { H }) => Float32Array.from({ length: H }, draw.normal),
  smoothSoftmax: () => true,
  dropout: (draw) => ({ p: draw.pick([0, 0.5, 1]), seed: draw.below(100) }),
  returnLse: () => true,
  scores: (draw) => draw.pick(['scaled', 'capped', 'biased', 'weights']),
  layout: (draw) => draw.pick(['bhld', 'blhd']),
};

/** @param {number[]} shape */
const count = (shape) => shape.reduce((a, b) => a * b, 1);

/** @param {Draw} draw @param {any} sizes @returns {Record<string, any>} */
function drawOptions(draw, sizes) {
  /** @type {Record<string, any>} */
  const options = {};
  for (let left = draw.below(5); left > 0; left--) {
    const name = draw.pick(Object.keys(fitting));
    options[name] = draw.chance(0.75) ? fitting[name](draw, sizes) : anything(draw);
  }
  if (draw.chance(0.03)) options[draw.pick(['Causal', 'toString', 'signal', '__proto__', ''])] = anything(draw);
  return options;
}

/** @param {Draw} draw @param {any} tensor */
function broken(draw, tensor) {
  const kind = draw.below(6);
  if (kind === 0) return anything(draw);
  if (kind === 1) return { ...tensor, shape: anything(draw) };
  if (kind === 2) return { ...tensor, data: anything(draw) };
  if (kind === 3) return { ...tensor, dtype: anything(draw) };
  const shape = [...tensor.shape];
  if (kind === 4) shape[draw.below(shape.length)] = draw.pick([draw.edge(), -1, 0.5, shape[0] + 1]);
  else shape.splice(draw.below(shape.length), 1, ...(draw.chance(0.5) ? [1, 1] : []));
  return { data: tensor.data, shape };
}

/** @param {any} result @param {Draw} draw @param {any} sizes @param {any} options */
function checkResult(result, sizes, options) {
  const { B, H, L, S, Dv } = sizes;
  const want = options.layout === 'blhd' ? [B, L, H, Dv] : [B, H, L, Dv];
  if (`${result.out.shape}` !== `${want}`) throw new Error(`out of shape ${result.out.shape}, not ${want}`);
  if (result.out.data.length !== count(want)) throw new Error('out has another length than its shape says');
  if (options.returnLse === true && result.lse.data.length !== B * H * L) throw new Error('lse of another length');
  if (options.scores && result.scores.data.length !== B * H * L * S) throw new Error('scores of another length');
  // Scores beyond float32 are infinite, and have no softmax.
  if (Math.abs(options.scale ?? 0) > 1e30) return;
  if (result.out.data.some(Number.isNaN)) throw new Error('NaN from finite numbers');
}

export async function create() {
  const sdpa = await load({ maxMemory: 2 ** 26 });
  const control = { data: Float32Array.from({ length: 48 }, (_, i) => Math.sin(i)), shape: [1, 2, 6, 4] };
  const wanted = sdpa.attention(control, control, control).out.data;
  const { held } = sdpa.memory();
  return (/** @type {Draw} */ draw) => {
    const sizes = {
      B: draw.below(3),
      H: 2 * draw.below(3),
      L: draw.below(12),
      S: draw.below(20),
      D: 1 + draw.below(6),
      Dv: 1 + draw.below(6),
    };
    if (draw.chance(0.3)) sizes.S = sizes.L;
    const options = drawOptions(draw, sizes);
    // Without elements no data bounds the other sizes.
    if (draw.chance(0.03)) {
      sizes.B = 0;
      const name = draw.pick(/** @type {const} */ (['H', 'L', 'S', 'D', 'Dv']));
      sizes[name] = draw.edge();
    }
    const { B, H, L, S, D, Dv } = sizes;
    const order = (/** @type {number[]} */ [b, h, l, d]) => (options.layout === 'blhd' ? [b, l, h, d] : [b, h, l, d]);
    const G = draw.chance(0.5) ? H : H / 2;
    const tensors = [
      draw.tensor(...order([B, H, L, D])),
      draw.tensor(...order([B, G, S, D])),
      draw.tensor(...order([B, G, S, Dv])),
    ];
    const wrong = draw.chance(0.15);
    if (wrong) {
      const which = draw.below(3);
      tensors[which] = broken(draw, tensors[which]);
    }
    const [query, key, value] = /** @type {any[]} */ (tensors);
    let outcome = 'passed';
    try {
      if (draw.chance(0.6)) {
        const result = sdpa.attention(query, key, value, options);
        if (!wrong) checkResult(result, sizes, options);
      } else if (draw.chance(0.5)) {
        const what = draw.pick([
          { stats: true },
          { columnSums: true },
          { topK: 1 + draw.below(4) },
          { rows: [0] },
          { topK: anything(draw) },
          { rows: anything(draw) },
          { pool: anything(draw) },
          { heads: anything(draw), stats: true },
        ]);
        sdpa.attentionWeights(query, key, /** @type {any} */ ({ ...options, ...what }));
      } else {
        const forward = sdpa.attention(query, key, value, /** @type {any} */ ({ ...options, returnLse: true }));
        const dOut = draw.chance(0.9) ? { data: forward.out.data.slice(), shape: forward.out.shape } : anything(draw);
        const given = draw.chance(0.95) ? { out: forward.out, lse: forward.lse, dOut } : anything(draw);
        sdpa.attentionBackward(query, key, value, given, options);
      }
    } catch (error) {
      if (!AttentionError.is(error) || !codes.includes(error.code)) throw error;
      // But for sizes that the module's memory alone knows to be too large.
      if (/was refused: (?!size_overflow)/.test(error.message)) throw error;
      outcome = error.code;
    }
    if (sdpa.memory().held !== held) throw new Error(`${sdpa.memory().held - held} bytes more are held`);
    if (draw.chance(0.02)) {
      const { data } = sdpa.attention(control, control, control).out;
      if (data.some((x, i) => x !== wanted[i])) throw new Error('the next call gives other bits');
    }
    return outcome;
  };
}
