/** The shapes of the comparison: those rows of the benches' table that every peer can be asked for. */

import { CASES, MEMORY_CASE } from '../js/cases.mjs';

/** @typedef {import('../js/cases.mjs').Case} Case */

const NICKNAMES = [
  'bert128',
  'bert512',
  'vit197',
  'gpt2-1024',
  'llama512',
  'swin',
  'sd-d40',
  'long4k',
  'dec-llama',
  'dec-gpt2',
  'long16k',
];

/** From so many scores on (of all heads), peers that keep them cannot be held in memory side by side. */
const MANY_SCORES = 1e8;

/** @param {string} nickname @returns {Case} */
function found(nickname) {
  const c = CASES.find((one) => one.nickname === nickname);
  if (!c) throw new Error(`the benches' table has no case ${nickname}`);
  return c;
}

/** @type {readonly Case[]} */
export const SHAPES = [...NICKNAMES.map(found), MEMORY_CASE];

/** @param {string} nickname @returns {Case} */
export function shapeCalled(nickname) {
  const shape = SHAPES.find((one) => one.nickname === nickname);
  if (!shape) throw new Error(`there is no shape ${nickname}`);
  return shape;
}

/** @param {Case} c @returns {boolean} */
export const isHuge = ({ batch, numHeads, seqlenQ, seqlenKv }) => batch * numHeads * seqlenQ * seqlenKv > MANY_SCORES;
