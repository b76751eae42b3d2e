// Everything that takes wasm memory, large enough that the block of small calls does not do.

import { randomSource } from './reference.mjs';

/** @typedef {import('sdpa').Sdpa} Sdpa */

/**
 * @typedef {object} User
 * @property {() => any} act gives results; succeeds once
 * @property {() => any} [after] gives further results when it has
 * @property {() => string} [state] of what a refusal must leave as it was
 * @property {() => void} [dispose]
 */

const random = randomSource(5);
const [B, H, L, D] = [1, 2, 400, 48];
const query = random.tensor(B, H, L, D);
const key = random.tensor(B, H, L, D);
const value = random.tensor(B, H, L, D);
const bias = random.tensor(B, 1, L, L);
const mask = { data: Uint8Array.from({ length: L * L }, () => Number(random.uniform() < 0.7)), shape: [L, L] };
const ungated = random.tensor(B, H, L);
const gate = { data: ungated.data.map((x) => -Math.abs(x) / 4), shape: ungated.shape };

/** @param {any} cache */
const stateOf = ({ lengths, capacity, byteLength }) => `${lengths} ${capacity} ${byteLength}`;

/** @param {any} options of createKVCache @param {(cache: any) => any} act gives results, or another cache @returns {(sdpa: Sdpa) => User} */
const cached = (options, act) => (sdpa) => {
  const cache = /** @type {any} */ (sdpa).createKVCache({ batch: 1, numKvHeads: H, headDim: D, ...options });
  const first = (/** @type {any} */ x) => ({ data: x.data.subarray(0, H * 100 * D), shape: [1, H, 100, D] });
  cache.append(first(key), first(value));
  let other = cache;
  return {
    act: () => {
      const result = act(cache);
      if (result?.dispose) other = result;
      return result?.dispose ? {} : (result ?? {});
    },
    after: () => other.attend(query),
    state: () => stateOf(cache),
    dispose: () => {
      other.dispose();
      cache.dispose();
    },
  };
};

/** @param {(fork: any) => void} act @returns {(cache: any) => any} */
const forked = (act) => (cache) => {
  const fork = cache.fork();
  try {
    act(fork);
  } catch (error) {
    fork.dispose();
    throw error;
  }
  return fork;
};

const E = 96;
const weights = {
  in_proj_weight: random.tensor(3 * E, E),
  in_proj_bias: random.tensor(3 * E),
  'out_proj.weight': random.tensor(E, E),
  'out_proj.bias': random.tensor(E),
};
const x = random.tensor(1, 300, E);

/** @param {(layer: any) => any} act */
const layered = (act) => (/** @type {Sdpa} */ sdpa) => {
  const layer = /** @type {any} */ (sdpa).multiHeadAttention({ numHeads: 4, weights });
  return { act: () => act(layer), dispose: () => layer.dispose() };
};

/** @param {(sdpa: any) => any} act @returns {(sdpa: Sdpa) => User} */
const called = (act) => (sdpa) => ({ act: () => act(sdpa) });

/** @param {any} what of attentionWeights() */
const weighed = (what) => called((sdpa) => sdpa.attentionWeights(query, key, { causal: true, ...what }));

/** @type {Record<string, (sdpa: Sdpa) => User>} */
export const memoryUsers = {
  attention: called((sdpa) => sdpa.attention(query, key, value, { causal: true, bias, mask, returnLse: true })),
  'attention with scores': called((sdpa) => sdpa.attention(query, key, value, { scores: 'weights' })),
  'weights of rows': weighed({ rows: [0, 7, 399] }),
  'weights of columns': weighed({ columns: [3, 4] }),
  'sums of columns': weighed({ columnSums: true }),
  'the largest weights': weighed({ topK: 5 }),
  statistics: weighed({ stats: true, bias, mask }),
  'a pooled map': weighed({ pool: { rows: 10, columns: 10, kind: 'mean' } }),
  backward: (sdpa) => {
    const forward = /** @type {any} */ (sdpa.attention(query, key, value, { causal: true, bias, returnLse: true }));
    return {
      act: () => sdpa.attentionBackward(query, key, value, { ...forward, dOut: value }, { causal: true, bias }),
    };
  },
  'a tensor': called((sdpa) => {
    const tensor = sdpa.tensor([3000]);
    tensor.dispose();
    return {};
  }),
  'a cache': called((sdpa) => {
    const cache = sdpa.createKVCache({ batch: 2, numKvHeads: 4, headDim: 64, dtype: 'int8' });
    cache.dispose();
    return {};
  }),
  'append to a cache that grows': cached({ capacity: 100 }, (cache) => void cache.append(key, value)),
  'append to a cache of int8 that grows': cached(
    { capacity: 100, dtype: 'int8' },
    (cache) => void cache.append(key, value),
  ),
  'append to a ring': cached({ window: 150, dtype: 'float16' }, (cache) => void cache.append(key, value)),
  'append to pages that grow': cached({ capacity: 100, pageSize: 16 }, (cache) => void cache.append(key, value)),
  'append of tensors in wasm memory': (sdpa) => {
    const tensor = sdpa.tensor(key.shape);
    tensor.data.set(key.data);
    const user = cached({ capacity: 100 }, (cache) => void cache.append(tensor, tensor))(sdpa);
    return { ...user, dispose: () => (user.dispose?.(), tensor.dispose()) };
  },
  'attend to a cache': cached({ dtype: 'float16' }, (cache) => cache.attend(query, { returnLse: true })),
  'attend to pages': cached({ pageSize: 8, dtype: 'int8' }, (cache) => cache.attend(query)),
  'attend to a rotated cache': cached({ rope: {} }, (cache) => cache.attend(query)),
  'append to shared pages': cached(
    { capacity: 100, pageSize: 16 },
    forked((fork) => fork.append(key, value)),
  ),
  'evict from shared pages': cached(
    { capacity: 112, pageSize: 16 },
    forked((fork) => fork.evict([1, 50])),
  ),
  'a layer': called((sdpa) => {
    const layer = sdpa.multiHeadAttention({ numHeads: 4, weights });
    layer.dispose();
    return {};
  }),
  'a layer forward': layered((layer) => layer.forward(x, null, { causal: true })),
  'a layer backward': layered((layer) => layer.backward(x, null, { dOut: x }, { causal: true })),
  'windows of an image': called((sdpa) =>
    sdpa.windowAttention2d(query, key, value, { height: 20, width: 20, windowSize: 7, shift: 3 }),
  ),
  'linear attention': called((sdpa) => sdpa.linearAttention(query, key, value, { returnState: true })),
  'gated linear attention': called((sdpa) =>
    sdpa.gatedLinearAttention(query, key, value, { decay: gate, returnState: true }),
  ),
  'linear attention backward': called((sdpa) => sdpa.linearAttentionBackward(query, key, value, { dOut: value })),
  'rotated positions': called((sdpa) => ({ out: sdpa.rope(query) })),
  'merged parts': called((sdpa) => {
    const part = { out: query, lse: { data: new Float32Array(H * L), shape: [1, H, L] } };
    return sdpa.merge([part, part]);
  }),
};
