/** The task of the bench of alternatives, of numbers from a seed. */

import { randomSource } from '../../tests/js/helpers/reference.mjs';
import { CLASSES, HEAD_DIM, needleTask } from './needle.mjs';

/**
 * @param {number} length tokens; 16 or more
 * @param {number} [seed]
 * @returns {import('./needle.mjs').Task}
 */
export function makeTask(length, seed = 1) {
  // Multiplied, so that the sequences of neighbouring seeds lie apart.
  const { uniform, tensor } = randomSource(Math.imul(seed, 0x9e3779b1));
  const normals = (/** @type {number} */ rows) => tensor(rows, HEAD_DIM).data;
  const [codebook, query, key] = [normals(CLASSES), normals(length), normals(length)];
  // Not the last ones ask: patterns that let a last block see everything would have them for nothing.
  const work = needleTask({ codebook, query, key, uniform, behind: Math.min(64, length >> 3) });
  let step = work.next();
  while (!step.done) step = work.next();
  return step.value;
}
