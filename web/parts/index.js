// What the default entry has, and the slim one can be given.

export { caches } from './caches.js';
export { gradients } from './gradients.js';
export { layers } from './layers.js';
export { linear } from './linear.js';
export { weights } from './weights.js';
export { workers } from './workers.js';
