/** @typedef {import('../../js/cases.mjs').Case} Case */

/** @param {Partial<Case>} [part] @returns {Case} */
export const shape = (part) => ({
  nickname: 'small',
  option: 'dense',
  batch: 2,
  numHeads: 4,
  numKvHeads: 2,
  seqlenQ: 37,
  seqlenKv: 37,
  headDim: 8,
  ...part,
});
