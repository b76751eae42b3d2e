// What load() of the slim entry can be given: each is a module of its own, so that a bundler leaves out what is not imported.

import * as of from './parts/index.js';

/** @typedef {import('./combine-parts.js').Part} Part */

/** `createKVCache` and `createShardedKVCache`. @type {Part} */
export const caches = of.caches;

/** `attentionBackward`, `attentionBackwardAsync` and `gradientCheck`. @type {Part} */
export const gradients = of.gradients;

/** `multiHeadAttention`, `windowAttention2d` and `windowAttention2dAsync`. @type {Part} */
export const layers = of.layers;

/** `linearAttention`, `gatedLinearAttention` and `ssd`, and the backward pass of each. @type {Part} */
export const linear = of.linear;

/** `attentionWeights` and `attentionWeightsAsync`. @type {Part} */
export const weights = of.weights;

/**
 * The workers' program as a text, so that asynchronous calls find it on every page and in Node. Without it they run on workers only where
 * a page takes the package's files as they are, and else on the caller's thread, with rests in between.
 * @type {Part}
 */
export const workers = of.workers;
