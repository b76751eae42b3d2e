// Which tensor of a file with several is the query, the key, …

import { suggest } from './suggest.js';
import { UsageError } from './usage-error.js';

/** @typedef {'query' | 'key' | 'value' | 'mask' | 'bias' | 'lse'} Role */

/** Names that are taken without being asked for, the first one present wins. */
/** @type {Record<Role, readonly string[]>} */
const kRoleNames = {
  query: ['query', 'q', 'Q'],
  key: ['key', 'k', 'K'],
  value: ['value', 'v', 'V'],
  mask: ['mask'],
  bias: ['bias'],
  lse: ['lse'],
};

/**
 * @param {string} text "role=name"
 * @param {string} flag
 * @returns {[Role, string]}
 */
export function parseAssignment(text, flag) {
  const split = text.indexOf('=');
  const role = text.slice(0, split);
  const name = text.slice(split + 1);
  const roles = Object.keys(kRoleNames);
  if (split < 0 || name === '') throw new UsageError(`${flag} must be ROLE=NAME, e.g. query=attn.q, got '${text}'`);
  if (!roles.includes(role))
    throw new UsageError(`${flag}: no role '${role}' (${roles.join(', ')})${suggest(role, roles)}`);
  return [/** @type {Role} */ (role), name];
}

/**
 * @param {Role} role
 * @param {readonly string[]} present names in the file
 * @param {object} how
 * @param {string | undefined} how.asked the name the user gave for this role
 * @param {boolean} how.only the file was given for this role alone, so that a single tensor needs no name
 * @param {string} how.where how messages name the file
 * @returns {string | undefined} undefined where the file has none
 */
export function chooseTensor(role, present, { asked, only, where }) {
  if (asked !== undefined) {
    if (present.includes(asked)) return asked;
    throw new UsageError(`${where} has no tensor '${asked}'${suggest(asked, present) || listNames(present)}`);
  }
  return (
    kRoleNames[role].find((name) => present.includes(name)) ?? (only && present.length === 1 ? present[0] : undefined)
  );
}

/**
 * @param {readonly string[]} names
 * @returns {string}
 */
export function listNames(names) {
  if (names.length === 0) return '; it is empty';
  return `; it has ${names.slice(0, 8).join(', ')}${names.length > 8 ? ` and ${names.length - 8} more` : ''}`;
}
