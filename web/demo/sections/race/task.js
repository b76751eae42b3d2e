// The task of bench/alternatives with numbers of the page's own, made in slices: the last tokens ask.

import { CLASSES, HEAD_DIM, needleTask, recall } from '../../../../bench/alternatives/needle.mjs';
import { fillNormal, uniform } from '../../parts/data.js';

export { CLASSES as classes, HEAD_DIM as headDim, recall };

/**
 * @param {number} length tokens
 * @param {number} seed
 * @param {import('../../parts/pace.js').Pace} pace
 * @returns {Promise<import('../../../../bench/alternatives/needle.mjs').Task>}
 */
export async function makeTask(length, seed, pace) {
  const draw = async (/** @type {number} */ rows, /** @type {number} */ part) => {
    const data = new Float32Array(rows * HEAD_DIM);
    await fillNormal({ data }, 10 * seed + part, pace);
    return data;
  };
  const [codebook, query, key] = [await draw(CLASSES, 1), await draw(length, 2), await draw(length, 3)];
  return pace.follow(needleTask({ codebook, query, key, uniform: uniform(seed), behind: 0 }));
}
