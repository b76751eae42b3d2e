// Two things that one head can learn: to look at the token before, and at the token with the same name.

import { uniform } from '../../parts/data.js';

/** Tokens of a sequence. */
export const length = 12;

/** Words of the first task. */
export const vocabulary = ['the', 'cat', 'sees', 'a', 'dog', 'and', 'it', 'runs', 'to', 'an', 'old', 'house'];

/** Names and their colours of the second task. */
export const letters = ['A', 'B', 'C', 'D', 'E', 'F', 'G', 'H'];
export const colours = ['red', 'blue', 'green', 'gold'];

/** Pairs of name and colour before the questions. */
export const pairs = 6;

/** Columns of the fixed embedding of positions. */
export const positionDim = 16;

/**
 * @typedef {'previous' | 'match'} TaskName
 * @typedef {object} Sequence
 * @property {string[]} words
 * @property {number[][]} features of each token: columns that are 1
 * @property {number[]} targets class that each token has to name; -1 where nothing is asked
 * @property {number[]} looks token that each has to look at; -1 where nothing is asked
 */

/**
 * @typedef {object} Task
 * @property {string} title
 * @property {string} words what is asked
 * @property {number} tokenDim columns of a token's features
 * @property {string[]} classes
 * @property {(next: () => number) => Sequence} draw
 */

/** @type {Record<TaskName, Task>} */
export const tasks = {
  previous: {
    title: 'Name the token before',
    words: 'Each word has to name the one before it.',
    tokenDim: vocabulary.length,
    classes: vocabulary,
    draw: (next) => {
      const ids = Array.from({ length }, () => Math.floor(next() * vocabulary.length));
      return {
        words: ids.map((id) => vocabulary[id]),
        features: ids.map((id) => [id]),
        targets: ids.map((_, i) => (i === 0 ? -1 : ids[i - 1])),
        looks: ids.map((_, i) => i - 1),
      };
    },
  },
  match: {
    title: 'Name a letter’s colour',
    words: 'Six letters with colours, “E=red”, then questions, “C?”: the answer is the colour of that letter.',
    tokenDim: letters.length + colours.length,
    classes: colours,
    draw: (next) => {
      const names = shuffled(letters.length, next).slice(0, pairs);
      const shades = names.map(() => Math.floor(next() * colours.length));
      const asked = Array.from({ length: length - pairs }, () => Math.floor(next() * pairs));
      return {
        words: [
          ...names.map((name, i) => `${letters[name]}=${colours[shades[i]]}`),
          ...asked.map((i) => `${letters[names[i]]}?`),
        ],
        features: [...names.map((name, i) => [name, letters.length + shades[i]]), ...asked.map((i) => [names[i]])],
        targets: [...names.map(() => -1), ...asked.map((i) => shades[i])],
        looks: [...names.map(() => -1), ...asked],
      };
    },
  },
};

/** @param {number} count @param {() => number} next */
function shuffled(count, next) {
  const order = Array.from({ length: count }, (_, i) => i);
  for (let i = count - 1; i > 0; i--) {
    const j = Math.floor(next() * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

/**
 * Sequences that are the same for the same seed.
 * @param {TaskName} name
 * @param {number} seed
 * @returns {() => Sequence}
 */
export function sequences(name, seed) {
  const next = uniform(seed);
  return () => tasks[name].draw(next);
}
