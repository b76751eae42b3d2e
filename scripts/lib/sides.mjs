/**
 * What commands that run natively and in WebAssembly have in common: --only, --filter, and what is built first.
 */

import { bootstrap, whileLocked } from '../bootstrap.mjs';
import { UserError } from './exec.mjs';
import { buildPreset } from './native.mjs';
import { parseOnly } from './parts.mjs';

/**
 * @param {string[]} args
 * @param {readonly string[]} sides
 * @param {string} kind of them, for the message
 * @param {string} usage
 * @returns {{ only: readonly string[], filter: string | undefined }}
 */
export function readSides(args, sides, kind, usage) {
  const { only = sides, rest } = parseOnly(args);
  const unknown = only.filter((name) => !sides.includes(name));
  if (unknown.length > 0)
    throw new UserError(`no ${kind} is called ${unknown.join(', ')}; there are ${sides.join(', ')}`);
  const filter = rest[0] === '--filter' ? rest[1] : undefined;
  if (rest.length > 0 && (filter === undefined || rest.length > 2))
    throw new UserError(`unknown option ${rest.join(' ')}\n${usage}`);
  return { only, filter };
}

/**
 * @param {import('./log.mjs').Log} log
 * @param {string | undefined} target of the native build; undefined: none
 * @param {boolean} js whether the package is built
 * @returns {Promise<NodeJS.ProcessEnv>}
 */
export async function buildSides(log, target, js) {
  const { env } = await whileLocked('test', log, async () => {
    const toolchain = await bootstrap({ log });
    if (target !== undefined) {
      log(`building ${target}`);
      await buildPreset({ preset: 'native-release', env: toolchain.env, targets: [target] });
    }
    if (js) {
      const { build } = await import('../build.mjs');
      await build({ log, env: toolchain.env });
    }
    return toolchain;
  });
  return env;
}
