// What load() of the slim entry can be given: each is a module of its own, so that a bundler leaves out what is not imported.

export { caches } from './parts/caches.js';
export { gradients } from './parts/gradients.js';
export { layers } from './parts/layers.js';
export { linear } from './parts/linear.js';
export { weights } from './parts/weights.js';
export { workers } from './parts/workers.js';

/** @typedef {import('./combine-parts.js').Part} Part */
