// Operations on KV caches of any kind, some of them impossible: what can be done does what plain arrays do, what cannot is an error of the
// package that changes nothing, and in the end all memory is given back.

import { AttentionError, load } from 'sdpa';
import { ModelCache } from '../../../js/api/kv-cache-model.mjs';
import { largestError, referenceAttention } from '../../../js/helpers/reference.mjs';

/** @typedef {import('../draw.mjs').Draw} Draw */
/** One cache and its model. @typedef {{ cache: any, model: ModelCache }} Pair */

const codes = ['type', 'shape', 'option', 'unknown-option', 'capacity', 'out-of-memory', 'unsupported'];
const longest = 40;

/** @param {Draw} draw @returns {any} */
function drawKind(draw) {
  const kind = {
    batch: 1 + draw.below(3),
    numKvHeads: 1 + draw.below(2),
    headDim: 1 + draw.below(6),
    headDimV: 1 + draw.below(6),
    dtype: draw.pick(['float32', 'float16', 'int8']),
  };
  if (draw.chance(0.3)) return { ...kind, window: 1 + draw.below(9), globalKeys: draw.below(4) };
  const capacity = 1 + draw.below(20);
  const pages = draw.chance(0.5) ? { pageSize: 1 + draw.below(6) } : {};
  return draw.chance(0.5) ? { ...kind, ...pages, capacity, fixed: draw.chance(0.5) } : { ...kind, ...pages };
}

/** @param {Draw} draw @returns {any} */
const anyLengths = (draw) =>
  draw.pick([
    () => draw.edge(),
    () => -1,
    () => NaN,
    () => '1',
    () => null,
    () => [draw.edge(), -1],
    () => [0.5],
    () => Int32Array.of(-(2 ** 31), 2 ** 31 - 1),
    () => ({ length: draw.edge() }),
    () => Array.from({ length: 3 }, () => draw.below(50)),
  ])();

/** @param {any} cache */
const stateOf = ({ lengths, length, capacity, byteLength }) => `${lengths} ${length} ${capacity} ${byteLength}`;

/**
 * Does something that may be impossible.
 * @param {any} sdpa @param {Pair} pair @param {() => void} action
 * @returns {boolean} whether it was done
 */
function attempt(sdpa, { cache }, action) {
  const before = `${stateOf(cache)} ${sdpa.memory().held}`;
  try {
    action();
    return true;
  } catch (error) {
    if (!AttentionError.is(error) || !codes.includes(error.code) || /was refused/.test(error.message)) throw error;
    const after = `${stateOf(cache)} ${sdpa.memory().held}`;
    if (before !== after)
      throw new Error(`an error (${error.message}) changed ${before} to ${after}`, { cause: error });
    return false;
  }
}

/** @param {Draw} draw @param {any} sdpa @param {Pair} pair */
function append(draw, sdpa, pair) {
  const { batch, numKvHeads, headDim, headDimV, dtype } = pair.model.options;
  const n = draw.below(6);
  const key = draw.tensor(batch, numKvHeads, n, headDim);
  const value = draw.tensor(batch, numKvHeads, n, headDimV);
  if (draw.chance(0.05) && value.data.length > 0) {
    value.data[draw.below(value.data.length)] = draw.pick([NaN, Infinity]);
    // An int8 cache refuses them; what another makes of them is another matter.
    if (dtype !== 'int8') return;
  }
  if (draw.chance(0.1)) key.shape[draw.below(4)] = draw.pick([0, draw.edge(), -1, 2]);
  const counts = Array.from({ length: batch }, () => (draw.chance(0.5) ? n : draw.below(n + 1)));
  const lengths = draw.chance(0.1) ? anyLengths(draw) : counts;
  const fits = lengths === counts && `${key.shape}` === `${[batch, numKvHeads, n, headDim]}`;
  if (!attempt(sdpa, pair, () => pair.cache.append(key, value, { lengths }))) return;
  if (!fits && !(lengths === counts)) {
    // Lengths that happen to fit.
    counts.splice(0, batch, ...lengths);
  } else if (!fits) throw new Error(`keys of shape ${key.shape} were appended`);
  const row =
    (/** @type {any} */ { data }, /** @type {number} */ dim) =>
    (/** @type {number} */ b, /** @type {number} */ h, /** @type {number} */ t) => {
      const at = ((b * numKvHeads + h) * n + t) * dim;
      return Array.from(data.subarray(at, at + dim));
    };
  pair.model.append(/** @type {any} */ (row(key, headDim)), /** @type {any} */ (row(value, headDimV)), counts);
}

/** @param {Draw} draw @param {any} sdpa @param {Pair} pair */
function attend(draw, sdpa, pair) {
  const { cache, model } = pair;
  const { batch, numKvHeads, headDim } = model.options;
  const L = 1 + draw.below(4);
  const query = draw.tensor(batch, numKvHeads * (1 + draw.below(2)), L, headDim);
  if (draw.chance(0.1)) {
    const wrong = draw.pick([
      { queryLengths: anyLengths(draw) },
      { kvLengths: [1] },
      { window: anyLengths(draw) },
      { softcap: NaN },
    ]);
    attempt(sdpa, pair, () => cache.attend(query, wrong));
    return;
  }
  /** @type {any} */
  const options = { returnLse: true };
  if (draw.chance(0.3)) options.causal = false;
  if (draw.chance(0.3)) options.window = [draw.below(6), draw.below(6)];
  if (draw.chance(0.3)) options.queryLengths = Int32Array.from({ length: batch }, () => draw.below(L + 1));
  const { key, value } = model.tensors();
  const want = referenceAttention(query, key, value, model.spelt(L, options));
  const got = cache.attend(query, options);
  const error = Math.max(largestError(got.out.data, want.out), largestError(got.lse.data, want.lse));
  if (!(error <= 1e-5)) throw new Error(`attend is off by ${error}`);
}

/** @param {Draw} draw @param {any} sdpa @param {Pair} pair */
function shorten(draw, sdpa, pair) {
  const { cache, model } = pair;
  const each = model.lengths.map((length) => Math.max(0, length - draw.below(4)));
  const given = draw.chance(0.3) ? anyLengths(draw) : draw.chance(0.5) ? each : draw.below(model.length + 1);
  if (!attempt(sdpa, pair, () => cache.truncate(given))) return;
  model.truncate(given);
}

/** @param {Draw} draw @param {any} sdpa @param {Pair} pair */
function evict(draw, sdpa, pair) {
  const { cache, model } = pair;
  const some = Array.from({ length: model.length }, (_, j) => j).filter(() => draw.chance(0.2));
  const given = draw.chance(0.3) ? anyLengths(draw) : draw.chance(0.2) ? [...some, ...some] : some;
  if (attempt(sdpa, pair, () => cache.evict(given))) model.evict(Array.from(given));
}

/** @param {Draw} draw @param {any} sdpa @param {Pair} pair @param {Pair[]} pairs */
function fork(draw, sdpa, pair, pairs) {
  /** @type {any} */
  let cache;
  if (attempt(sdpa, pair, () => (cache = pair.cache.fork()))) pairs.push({ cache, model: pair.model.fork() });
}

/** @param {Pair} pair */
function checkState({ cache, model }) {
  if (`${cache.lengths}` !== `${model.lengths}`) throw new Error(`lengths ${cache.lengths}, not ${model.lengths}`);
}

export async function create() {
  const sdpa = await load({ maxMemory: 2 ** 24 });
  const { held } = sdpa.memory();
  return (/** @type {Draw} */ draw) => {
    const kind = drawKind(draw);
    if (draw.chance(0.1)) kind[draw.pick(Object.keys(kind))] = draw.pick([0, -1, NaN, '1', null, 2 ** 40, 1.5]);
    /** @type {Pair[]} */
    let pairs = [];
    try {
      pairs.push({ cache: sdpa.createKVCache(kind), model: new ModelCache(kind) });
    } catch (error) {
      if (!AttentionError.is(error) || !codes.includes(error.code)) throw error;
      if (sdpa.memory().held !== held) throw new Error('a cache that was refused holds memory', { cause: error });
      return error.code;
    }
    for (let left = draw.below(40); left > 0 && pairs.length > 0; left--) {
      const pair = draw.pick(pairs);
      const x = draw.uniform();
      if (pair.model.length > longest || x < 0.03) {
        pair.cache.reset();
        pair.model.truncate(0);
      } else if (x < 0.45) append(draw, sdpa, pair);
      else if (x < 0.7) attend(draw, sdpa, pair);
      else if (x < 0.8) shorten(draw, sdpa, pair);
      else if (x < 0.88) evict(draw, sdpa, pair);
      else if (x < 0.94 && pairs.length < 5) fork(draw, sdpa, pair, pairs);
      else if (x > 0.97) {
        pair.cache.dispose();
        pairs = pairs.filter((other) => other !== pair);
      }
      pairs.forEach(checkState);
    }
    for (const { cache } of pairs) cache.dispose();
    if (sdpa.memory().held !== held) throw new Error(`${sdpa.memory().held - held} bytes are held by nobody`);
    return 'passed';
  };
}
