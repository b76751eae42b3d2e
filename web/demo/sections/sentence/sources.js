// Where words with queries and keys come from: the head that is trained in the page, or a visitor's tensors.

import { Pace } from '../../parts/pace.js';
import { rowsFrom } from '../../parts/one-head.js';
import { tensorNamed } from '../../parts/tensor-store.js';
import { headDim, Model } from '../train/model.js';
import { length, pairs, sequences } from '../train/tasks.js';

/** Steps and learning rate where the head was not trained in its own section. */
const course = { steps: 150, rate: 0.02 };

/** Seed of the sentence. */
const seed = 7;

/** Questions of the example of cross-attention: fewer than there are keys. */
export const questions = 4;

/**
 * @typedef {import('../../parts/one-head.js').Rows} Rows
 * @typedef {object} Sentence
 * @property {Rows} query (L, D)
 * @property {Rows} key (S, D)
 * @property {readonly string[]} queryWords (L)
 * @property {readonly string[]} keyWords (S)
 * @property {boolean} causal
 * @property {number} offset key at which query 0 stands
 */

/** What there is to see, by where the words come from. @type {Record<string, string>} */
export const sourceWords = {
  self: 'Each “E=red” tells the colour of a letter, each “C?” asks for one. Nobody told the head where to look: it has learned that a question must look at its letter.',
  cross:
    'The questions are the queries and the statements the keys: two sequences of two lengths, of which nothing is masked.',
  decode:
    'Another head, which has learned to look at the word before. Each new word adds one row and one column; the rows above never change.',
  file: 'Words for your own tensors are written below; without them there are numbers.',
};

/** Those that were trained here. @type {Map<string, Model>} */
const trained = new Map();

/**
 * @param {import('sdpa').Sdpa} sdpa
 * @param {import('../train/tasks.js').TaskName} task
 * @param {AbortSignal} signal
 * @returns {Promise<Model>}
 */
async function trainedModel(sdpa, task, signal) {
  const known = trained.get(task);
  if (known) return known;
  const pace = new Pace(signal);
  const model = new Model(sdpa, task, 1);
  while (model.steps < course.steps) {
    model.step(course.rate);
    if (pace.left <= 3) await pace.rest();
  }
  trained.set(task, model);
  return model;
}

/**
 * A sentence in the eyes of a trained head, which sees itself.
 * @param {import('sdpa').Sdpa} sdpa
 * @param {import('../train/tasks.js').TaskName} task
 * @param {AbortSignal} signal
 * @returns {Promise<Sentence>}
 */
export async function ownSentence(sdpa, task, signal) {
  const sequence = sequences(task, seed)();
  const { query, key } = (await trainedModel(sdpa, task, signal)).look(sequence);
  const { words } = sequence;
  return { query: rows(query), key: rows(key), queryWords: words, keyWords: words, causal: true, offset: 0 };
}

/** @param {Float32Array} data @returns {Rows} */
const rows = (data) => ({ data, shape: [length, headDim], dtype: 'float32' });

/** What the section before handed over. @returns {Sentence | null} */
export function handedOver() {
  const [query, key] = [tensorNamed('trained query'), tensorNamed('trained key')];
  if (!query?.labels || !key?.labels) return null;
  return {
    query: rows(/** @type {Float32Array} */ (query.data)),
    key: rows(/** @type {Float32Array} */ (key.data)),
    queryWords: query.labels,
    keyWords: key.labels,
    causal: true,
    offset: 0,
  };
}

/**
 * Questions to the pairs before them alone: fewer queries than keys.
 * @param {Sentence} whole of the task 'match'
 * @returns {Sentence}
 */
export const crossed = ({ query, key, queryWords, keyWords }) => ({
  query: rowsFrom(query, pairs, questions),
  key: rowsFrom(key, 0, pairs),
  queryWords: queryWords.slice(pairs, pairs + questions),
  keyWords: keyWords.slice(0, pairs),
  causal: false,
  offset: 0,
});

/**
 * Words out of a text.
 * @param {string} text separated by blanks or lines; empty: numbers
 * @param {number} count
 * @param {string} what they are for: 'queries'
 * @param {readonly string[]} [known] where there is no text
 * @returns {readonly string[]}
 * @throws an error that names both counts
 */
export function wordsOf(text, count, what, known) {
  const words = text.split(/\s+/).filter(Boolean);
  const given = words.length > 0 ? words : known?.length ? known : null;
  if (!given) return Array.from({ length: count }, (_, i) => String(i));
  if (given.length === count) return given;
  throw new Error(`There are ${given.length} words for ${count} ${what}: each needs one.`);
}
