// Which build to take: a pure function over a table.

import { rangeError, show, typeError } from './errors.js';

/** A build: relaxed SIMD, SIMD, or neither. @typedef {'relaxed' | 'simd' | 'scalar'} Variant */

/**
 * The builds, the fastest first: what each cannot run without, and what it must have besides to be worth choosing.
 * @type {readonly { name: Variant, needs: readonly (keyof import('./features.js').Features)[], wants: readonly (keyof import('./features.js').Features)[] }[]}
 */
const table = [
  // Without fusing, relaxed multiply-add is no faster and its last bits differ from the simd build's.
  { name: 'relaxed', needs: ['simd', 'relaxed'], wants: ['relaxedFused'] },
  { name: 'simd', needs: ['simd'], wants: [] },
  { name: 'scalar', needs: [], wants: [] },
];

/**
 * The builds to try, in order.
 * @param {Partial<import('./features.js').Features>} features
 * @param {{ variant?: 'auto' | Variant }} [options]
 * @returns {Variant[]} one name where a variant is asked for
 * @throws RangeError `option` for an unknown name; `unsupported` where this engine cannot run what is asked for
 */
export function variantOrder(features, options = {}) {
  const { variant = 'auto' } = options;
  if (typeof variant !== 'string') {
    throw typeError('type', `variant must be 'auto', 'relaxed', 'simd' or 'scalar', got ${show(variant)}`);
  }
  if (features.webAssembly === false)
    throw rangeError('unsupported', 'this engine has no WebAssembly, which sdpa needs');
  if (variant === 'auto') {
    return table
      .filter(({ needs, wants }) => [...needs, ...wants].every((name) => features[name]))
      .map(({ name }) => name);
  }
  const row = table.find(({ name }) => name === variant);
  if (!row) throw rangeError('option', `variant must be 'auto', 'relaxed', 'simd' or 'scalar', got ${show(variant)}`);
  const missing = row.needs.filter((name) => !features[name]);
  if (missing.length) {
    throw rangeError(
      'unsupported',
      `variant '${variant}' needs ${missing.join(' and ')}, which this engine does not have`,
    );
  }
  return [row.name];
}

/**
 * The build that `load` takes for these features: the fastest that the engine runs and gains from, or the one asked for.
 * @param {Partial<import('./features.js').Features>} features as features() gives them; what is left out (WebAssembly itself apart) counts as missing
 * @param {{ variant?: 'auto' | Variant }} [options]
 * @returns {Variant}
 * @throws RangeError `option` for an unknown name; `unsupported` where this engine cannot run what is asked for
 */
export function chooseVariant(features, options) {
  return variantOrder(features, options)[0];
}
