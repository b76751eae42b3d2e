/**
 * Long use and hard luck: fuzzers for 20 seconds a target, a hundred thousand calls, aborts, workers that die, memory that is refused.
 *
 *   npm run test:soak                    everything
 *   npm run test:soak -- --only soak     some parts (and what they need)
 */

import { join } from 'node:path';
import { buildPart, fuzzParts } from './fuzz/parts.mjs';
import { isMain, runMain } from './lib/exec.mjs';
import { runNodeTests } from './lib/node-tests.mjs';
import { partsCommand } from './lib/parts-command.mjs';
import { ROOT } from './lib/project.mjs';

const SECONDS = 20;

/** The same for every run, so that a change alone makes a difference; test:fuzz takes others. */
const SEED = 1;

/**
 * @param {import('./lib/log.mjs').Log} log
 * @returns {import('./lib/parts.mjs').Part[]}
 */
function soakParts(log) {
  return [
    buildPart(log),
    ...fuzzParts(log, SECONDS, SEED),
    {
      name: 'soak',
      title: 'long runs in Node',
      after: ['build'],
      run: () => runNodeTests({ name: 'soak', folder: join(ROOT, 'tests/soak') }),
    },
  ];
}

if (isMain(import.meta.url))
  runMain(() =>
    partsCommand(process.argv.slice(2), { name: 'npm run test:soak', parts: soakParts, lock: 'test-soak' }),
  );
