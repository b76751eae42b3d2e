// Angles per position of a rotary embedding, one per pair of columns, and how models stretch them to longer texts.
//
//   none    f_k = base^(-2k/r), k = 0 … r/2 - 1                                    (RoFormer, arXiv 2104.09864)
//   linear  f_k / factor                                                           (position interpolation, arXiv 2306.15595)
//   ntk     base·factor^(r/(r-2)) for base: the slowest pair turns factor times slower, the fastest as before
//   yarn    a blend of f_k and f_k/factor, linear in k between the pairs that turn betaFast and betaSlow times within
//           originalMaxPosition; results times attentionFactor                      (arXiv 2309.00071)
//   llama3  f_k for wavelengths below originalMaxPosition/highFreqFactor, f_k/factor above originalMaxPosition/lowFreqFactor, a
//           blend between them, linear in originalMaxPosition/wavelength            (Llama 3.1)
//
// Where the paper of YaRN leaves it open, this is what its authors' code and Hugging Face transformers do.

import { rangeError, show, typeError } from './errors.js';
import { readNamed } from './named-options.js';
import { finite, flag } from './option-values.js';

/**
 * @typedef {{ type: 'linear', factor: number }} LinearScaling positions divided by `factor`
 * @typedef {{ type: 'ntk', factor: number }} NtkScaling a larger base
 * @typedef {object} YarnScaling YaRN
 * @property {'yarn'} type
 * @property {number} factor at least 1
 * @property {number} originalMaxPosition tokens that the model was trained on
 * @property {number} [betaFast] turns within them from which on a pair stays as it is; 32
 * @property {number} [betaSlow] turns within them up to which a pair is interpolated; 1
 * @property {number} [attentionFactor] factor of the rotated columns; 0.1·ln(factor) + 1
 * @property {boolean} [truncate] whether the bounds between pairs are rounded outwards to whole pairs; true
 * @typedef {object} Llama3Scaling Llama 3.1
 * @property {'llama3'} type
 * @property {number} factor at least 1
 * @property {number} lowFreqFactor
 * @property {number} highFreqFactor above lowFreqFactor
 * @property {number} originalMaxPosition tokens that the model was trained on
 * @typedef {LinearScaling | NtkScaling | YarnScaling | Llama3Scaling} RopeScaling how rope() stretches to longer texts
 */

/** Fields of each type, the optional ones last. @type {Record<string, { needed: string[], optional?: string[] }>} */
const types = {
  linear: { needed: ['factor'] },
  ntk: { needed: ['factor'] },
  yarn: {
    needed: ['factor', 'originalMaxPosition'],
    optional: ['betaFast', 'betaSlow', 'attentionFactor', 'truncate'],
  },
  llama3: { needed: ['factor', 'lowFreqFactor', 'highFreqFactor', 'originalMaxPosition'] },
};

/**
 * @param {number} base
 * @param {number} rotaryDim r, even
 * @param {unknown} scaling
 * @returns {{ frequencies: Float64Array, amplitude: number }} radians per position of each pair, and the factor of the results
 * @throws TypeError or RangeError with a `code`
 */
export function ropeFrequencies(base, rotaryDim, scaling) {
  const given = readScaling(scaling);
  const { factor } = given;
  let stretched = base;
  // One pair alone has the frequency 1 for any base.
  if (given.type === 'ntk' && rotaryDim > 2) stretched = base * factor ** (rotaryDim / (rotaryDim - 2));
  const frequencies = Float64Array.from({ length: rotaryDim / 2 }, (_, k) => stretched ** ((-2 * k) / rotaryDim));
  if (given.type === 'linear') frequencies.forEach((f, k) => (frequencies[k] = f / factor));
  else if (given.type === 'llama3') blendByWavelength(frequencies, given);
  else if (given.type === 'yarn') {
    blendByPair(frequencies, given, base);
    return { frequencies, amplitude: given.attentionFactor ?? 0.1 * Math.log(factor) + 1 };
  }
  return { frequencies, amplitude: 1 };
}

/**
 * @param {unknown} scaling
 * @returns {Record<string, any>} the fields, checked; without a type where nothing is scaled
 */
function readScaling(scaling) {
  if (scaling === undefined || scaling === null) return {};
  const every = Object.values(types).flatMap(({ needed, optional = [] }) => [...needed, ...optional]);
  const given = readNamed('scaling', scaling, ['type', ...new Set(every)]);
  const { type } = given;
  const message = `scaling.type must be '${Object.keys(types).join("', '")}', got ${show(type)}`;
  if (typeof type !== 'string') throw typeError('type', message);
  if (!Object.hasOwn(types, type)) throw rangeError('option', message);
  const { needed, optional = [] } = types[type];
  const fields = [...needed, ...optional];
  for (const name of Object.keys(given)) {
    if (name !== 'type' && !fields.includes(name)) {
      throw typeError(
        'unknown-option',
        `scaling of type '${type}' has no field '${name}'; it has ${fields.join(', ')}`,
      );
    }
  }
  for (const name of fields) {
    const setting = given[name];
    if (setting === undefined) {
      if (needed.includes(name)) throw typeError('type', `scaling of type '${type}' needs ${name}, which is missing`);
    } else if (name === 'truncate') flag('scaling.truncate', setting);
    else if (finite(`scaling.${name}`, setting) <= 0) {
      throw rangeError('option', `scaling.${name} must be more than 0, got ${setting}`);
    }
  }
  if (fields.length > 1 && given.factor < 1) {
    throw rangeError('option', `scaling.factor must be 1 or more with type '${type}', got ${given.factor}`);
  }
  if (type === 'llama3') ordered(given, 'lowFreqFactor', given.lowFreqFactor, 'highFreqFactor', given.highFreqFactor);
  if (type === 'yarn') ordered(given, 'betaSlow', given.betaSlow ?? 1, 'betaFast', given.betaFast ?? 32);
  return given;
}

/**
 * @param {Record<string, any>} given
 * @param {string} lowName
 * @param {number} low
 * @param {string} highName
 * @param {number} high
 */
function ordered(given, lowName, low, highName, high) {
  if (low < high) return;
  throw rangeError(
    'option',
    `scaling.${lowName} must be less than scaling.${highName}, got ${low} and ${high} (type '${given.type}')`,
  );
}

/**
 * @param {Float64Array} frequencies receives the blend
 * @param {Record<string, any>} scaling of type llama3
 */
function blendByWavelength(frequencies, { factor, lowFreqFactor, highFreqFactor, originalMaxPosition }) {
  frequencies.forEach((f, k) => {
    const turns = (originalMaxPosition * f) / (2 * Math.PI); // originalMaxPosition / wavelength
    const kept = clamp((turns - lowFreqFactor) / (highFreqFactor - lowFreqFactor));
    frequencies[k] = kept * f + ((1 - kept) * f) / factor;
  });
}

/**
 * @param {Float64Array} frequencies receives the blend
 * @param {Record<string, any>} scaling of type yarn
 * @param {number} base
 */
function blendByPair(frequencies, { factor, originalMaxPosition, betaFast = 32, betaSlow = 1, truncate = true }, base) {
  if (base <= 1) throw rangeError('option', `base must be more than 1 with scaling of type 'yarn', got ${base}`);
  const rotaryDim = 2 * frequencies.length;
  // The pair, as a real number, that turns so many times within originalMaxPosition.
  /** @param {number} turns */
  const pairOf = (turns) => (rotaryDim * Math.log(originalMaxPosition / (turns * 2 * Math.PI))) / (2 * Math.log(base));
  const [fast, slow] = [pairOf(betaFast), pairOf(betaSlow)];
  const low = Math.max(truncate ? Math.floor(fast) : fast, 0);
  let high = Math.min(truncate ? Math.ceil(slow) : slow, rotaryDim - 1);
  if (high === low) high += 0.001;
  frequencies.forEach((f, k) => {
    const interpolated = clamp((k - low) / (high - low));
    frequencies[k] = (interpolated * f) / factor + (1 - interpolated) * f;
  });
}

/** @param {number} share */
const clamp = (share) => Math.min(1, Math.max(0, share));
