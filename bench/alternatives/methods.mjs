/**
 * The methods that the bench of alternatives compares, on one head of causal tokens. No package and nothing of Node: the page may use them
 * as well.
 */

import { HEAD_DIM } from './needle.mjs';

/** @typedef {import('sdpa').Sdpa} Sdpa */
/** @typedef {import('sdpa').SdpaTensor} SdpaTensor */
/** @typedef {{ query: SdpaTensor, key: SdpaTensor, value: SdpaTensor, out: SdpaTensor }} Tensors (length, HEAD_DIM), in wasm memory */
/** @typedef {{ data: ArrayLike<number> }} Out */

/**
 * @typedef {object} Prepared
 * @property {() => Out} call gives (length, HEAD_DIM)
 * @property {number} bytes of JavaScript memory that the method holds besides its inputs
 */

/**
 * @typedef {object} Method
 * @property {string} name
 * @property {string} what it is, in a few words
 * @property {boolean} isLinear whether its time should grow with the length
 * @property {string} needs name of the function of the instance
 * @property {(sdpa: any, tensors: Tensors, length: number) => Prepared} prepare
 */

/** Tokens before the own one that the window leaves. */
export const WINDOW_LEFT = 255;

/** @type {readonly Method[]} */
export const METHODS = [
  {
    name: 'exact',
    what: 'attention, causal',
    isLinear: false,
    needs: 'attention',
    prepare: (sdpa, { query, key, value, out }) => ({
      call: () => sdpa.attention(query, key, value, { causal: true, out }).out,
      bytes: 0,
    }),
  },
  {
    name: 'window',
    what: `the last ${WINDOW_LEFT + 1} tokens`,
    isLinear: true,
    needs: 'attention',
    prepare: (sdpa, { query, key, value, out }) => ({
      call: () => sdpa.attention(query, key, value, { window: [WINDOW_LEFT, 0], out }).out,
      bytes: 0,
    }),
  },
  {
    name: 'block-sparse',
    what: 'BigBird, causal: blocks of 64, a band of 3, 3 at random, the first and the last',
    isLinear: true,
    needs: 'attention',
    prepare: (sdpa, { query, key, value, out }, length) => {
      const { masks } = sdpa;
      // One global block at either end; the last sees all before it, as exact attention does.
      const blockMask = masks.and(masks.bigbird(length, { seed: 1 }), masks.causal(length));
      return {
        call: () => sdpa.attention(query, key, value, { blockMask, out }).out,
        bytes: blockMask.tiles.byteLength + blockMask.bits.byteLength,
      };
    },
  },
  {
    name: 'linear',
    what: 'linear attention, elu + 1, causal',
    isLinear: true,
    needs: 'linearAttention',
    prepare: (sdpa, { query, key, value }) => ({
      call: () => sdpa.linearAttention(query, key, value, { causal: true }).out,
      bytes: 0,
    }),
  },
  {
    name: 'ssd',
    what: "Mamba-2's state space: B = key, C = query, x = value, half of the first token left at the end",
    isLinear: true,
    needs: 'ssd',
    prepare: (sdpa, { query, key, value }, length) => {
      const heads = (/** @type {SdpaTensor} */ tensor) => ({ data: tensor.data, shape: [1, length, HEAD_DIM] });
      const dt = { data: new Float32Array(length).fill(Math.LN2 / length), shape: [1, length] };
      return {
        call: () => sdpa.ssd(heads(value), dt, [-1], heads(key), heads(query)).out,
        bytes: dt.data.byteLength,
      };
    },
  },
];

/** @param {Method} method @param {Sdpa} sdpa @returns {string | undefined} why it cannot run */
export const unavailable = (method, sdpa) =>
  typeof (/** @type {any} */ (sdpa)[method.needs]) === 'function' ? undefined : `this build has no ${method.needs}()`;
