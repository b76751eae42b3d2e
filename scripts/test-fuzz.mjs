/**
 * Fuzzes shapes, options, caches and file readers (tests/fuzz), five minutes a target, every time with another seed.
 *
 *   npm run test:fuzz                           everything
 *   npm run test:fuzz -- --only fuzz:js         some parts (and what they need)
 *   npm run test:fuzz -- --seconds 60 --seed 7
 */

import { buildPart, fuzzParts } from './fuzz/parts.mjs';
import { isMain, runMain, UserError } from './lib/exec.mjs';
import { partsCommand } from './lib/parts-command.mjs';

const MINUTES = 5;

/**
 * Takes `--name N` out of a command line.
 *
 * @param {string[]} args changed
 * @param {string} name
 * @param {number} otherwise
 * @returns {number}
 */
function takeNumber(args, name, otherwise) {
  const at = args.indexOf(`--${name}`);
  if (at < 0) return otherwise;
  const [, text] = args.splice(at, 2);
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0) throw new UserError(`--${name} needs a whole number, got ${text}`);
  return value;
}

if (isMain(import.meta.url))
  runMain(async () => {
    const args = process.argv.slice(2);
    const seconds = takeNumber(args, 'seconds', 60 * MINUTES);
    const seed = takeNumber(args, 'seed', (Date.now() % 1_000_000) + 1);
    return partsCommand(args, {
      name: 'npm run test:fuzz',
      parts: (log) => [buildPart(log), ...fuzzParts(log, seconds, seed)],
      lock: 'test-fuzz',
    });
  });
