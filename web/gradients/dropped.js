// Which cells dropout drops: four keys a counter, as the kernels count.

import { philox } from '../masks/philox.js';

/**
 * @param {{ dropout: number, seedLow: number, seedHigh: number }} call
 * @param {number} b
 * @param {number} h
 * @param {number} i
 * @param {number} j
 */
export const dropped = ({ dropout, seedLow, seedHigh }, b, h, i, j) =>
  philox(seedLow, seedHigh, Math.floor(j / 4), i, h, b, j % 4) < Math.floor(dropout * 2 ** 32);
