// Block masks: made from positions, documents, published patterns or booleans, combined, counted.

import { and, not, or } from './algebra.js';
import { bigbird } from './bigbird.js';
import { fromDense, toDense } from './dense.js';
import { documents } from './documents.js';
import { longformer } from './longformer.js';
import { neighborhood } from './neighborhood.js';
import { causal, chunk, dilated, prefix, window } from './positional.js';
import { stats } from './stats.js';
import { swin } from './swin.js';

/**
 * @typedef {import('./arguments.js').MaskPosition} MaskPosition
 * @typedef {import('./bigbird.js').BigbirdOptions} BigbirdOptions
 * @typedef {import('./block-mask.js').BlockMask} BlockMask
 * @typedef {import('./longformer.js').LongformerOptions} LongformerOptions
 * @typedef {import('./neighborhood.js').NeighborhoodOptions} NeighborhoodOptions
 * @typedef {import('./stats.js').MaskStats} MaskStats
 * @typedef {import('./swin.js').SwinOptions} SwinOptions
 */

/** Makers of masks for the option `blockMask` of attention(), and what can be done with masks. Needs no loaded instance. */
export const masks = /* @__PURE__ */ Object.freeze({
  causal,
  window,
  dilated,
  chunk,
  prefix,
  documents,
  longformer,
  bigbird,
  neighborhood,
  swin,
  and,
  or,
  not,
  fromDense,
  toDense,
  stats,
});
