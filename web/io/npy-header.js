// The header of a .npy file: the text of a Python dictionary, e.g. {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
// Only the literals that a header can hold are read: dictionary, tuple, list, string, integer, True, False, None.

import { failOption } from './fail.js';

/**
 * @param {string} text
 * @param {string} what how messages name the file
 * @returns {Map<string, unknown>} strings, booleans, null, numbers (integers of 2^53 and more come out as Infinity), arrays
 */
export function parseHeader(text, what) {
  const parser = { text, at: 0, depth: 0, what };
  const header = parseDictionary(parser);
  if (peek(parser) !== '') fail(parser, 'text after the dictionary');
  return header;
}

/** @typedef {{ text: string, at: number, depth: number, what: string }} Parser */

/**
 * @param {Parser} parser
 * @returns {Map<string, unknown>}
 */
function parseDictionary(parser) {
  const entries = new Map();
  expect(parser, '{');
  while (peek(parser) !== '}') {
    const key = parseValue(parser);
    if (typeof key !== 'string') return fail(parser, 'a key that is not a string');
    if (entries.has(key)) return fail(parser, `the key '${key}' twice`);
    expect(parser, ':');
    entries.set(key, parseValue(parser));
    if (peek(parser) !== ',') break;
    expect(parser, ',');
  }
  expect(parser, '}');
  return entries;
}

/**
 * @param {Parser} parser
 * @returns {unknown}
 */
function parseValue(parser) {
  const first = peek(parser);
  if (first === '(') return parseSequence(parser, '(', ')');
  if (first === '[') return parseSequence(parser, '[', ']');
  if (first === "'" || first === '"') return parseString(parser, first);
  const word = /[\w+-]*/y;
  word.lastIndex = parser.at;
  const [token] = /** @type {RegExpExecArray} */ (word.exec(parser.text));
  parser.at += token.length;
  if (token === 'True') return true;
  if (token === 'False') return false;
  if (token === 'None') return null;
  // Python 2 wrote long integers with an L
  if (!/^[+-]?\d+L?$/.test(token)) return fail(parser, `'${token || first}' where a value should be`);
  const number = Number(token.replace('L', ''));
  return Number.isSafeInteger(number) ? number : Infinity;
}

/**
 * @param {Parser} parser
 * @param {string} open
 * @param {string} close
 * @returns {unknown[]}
 */
function parseSequence(parser, open, close) {
  if (++parser.depth > 16) return fail(parser, 'brackets nested deeper than any array type');
  /** @type {unknown[]} */
  const values = [];
  expect(parser, open);
  while (peek(parser) !== close) {
    values.push(parseValue(parser));
    if (peek(parser) !== ',') break;
    expect(parser, ',');
  }
  expect(parser, close);
  parser.depth--;
  return values;
}

/**
 * @param {Parser} parser
 * @param {string} quote
 * @returns {string}
 */
function parseString(parser, quote) {
  const start = parser.at + 1;
  const end = parser.text.indexOf(quote, start);
  const value = parser.text.slice(start, end);
  if (end < 0 || value.includes('\\')) return fail(parser, 'a string that does not end or has escapes');
  parser.at = end + 1;
  return value;
}

/**
 * @param {Parser} parser
 * @returns {string} the next character that is not white space, '' at the end
 */
function peek(parser) {
  while (/\s/.test(parser.text.charAt(parser.at))) parser.at++;
  return parser.text.charAt(parser.at);
}

/**
 * @param {Parser} parser
 * @param {string} character
 */
function expect(parser, character) {
  const found = peek(parser);
  if (found !== character)
    fail(parser, found === '' ? `no '${character}'` : `'${found}' where '${character}' should be`);
  parser.at++;
}

/**
 * @param {Parser} parser
 * @param {string} problem
 * @returns {never}
 */
function fail(parser, problem) {
  return failOption(`${parser.what} has a damaged .npy header: ${problem}, at character ${parser.at}`);
}
