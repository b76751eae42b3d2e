// What the default entry has, and the slim one can be given.

import { caches } from './caches.js';
import { gradients } from './gradients.js';
import { layers } from './layers.js';
import { linear } from './linear.js';
import { weights } from './weights.js';
import { workers } from './workers.js';

export const every = [caches, gradients, layers, linear, weights, workers];
