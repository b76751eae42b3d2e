// An object of options, read by name.

import { show, typeError } from './errors.js';

/**
 * The settings of an options object, each property read once, wherever the object keeps it.
 * @param {string} what whose options they are
 * @param {unknown} options
 * @param {readonly string[]} known
 * @returns {Record<string, any>} those that are not undefined
 */
export function readNamed(what, options, known) {
  /** @type {Record<string, any>} */
  const settings = {};
  if (options === undefined) return settings;
  if (Object.prototype.toString.call(options) !== '[object Object]') {
    throw typeError('type', `the options of ${what} must be an object, got ${show(options)}`);
  }
  const given = /** @type {any} */ (options);
  for (const name in given) if (!known.includes(name)) throw unknownName(what, name, known);
  for (const name of known) {
    const setting = given[name];
    if (setting !== undefined) settings[name] = setting;
  }
  return settings;
}

/**
 * @param {string} what whose options they are
 * @param {string} name
 * @param {readonly string[]} known
 */
export function unknownName(what, name, known) {
  /** @param {string} text */
  const plain = (text) => text.replace(/[_-]/g, '').toLowerCase();
  const close = known.find((other) => plain(other) === plain(name));
  const hint = close ? `did you mean '${close}'?` : `the options are ${known.join(', ')}`;
  return typeError('unknown-option', `${what} has no option '${name}'; ${hint}`);
}
