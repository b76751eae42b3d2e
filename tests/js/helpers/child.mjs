// Runs a piece of a module in a process of its own, with engine flags.

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { childFlags } from './sdpa.mjs';

const folder = fileURLToPath(new URL('..', import.meta.url));

/**
 * @param {string} source an ES module; `import 'sdpa'` works in it
 * @param {{ flags?: string[], relaxed?: boolean, input?: string }} [options] `relaxed: false` leaves out what relaxed SIMD needs
 * @returns {{ status: number | null, stdout: string, stderr: string }}
 */
export function runModule(source, { flags = [], relaxed = true } = {}) {
  const args = [...(relaxed ? childFlags : []), ...flags, '--input-type=module', '--eval', source];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: folder,
    encoding: 'utf8',
    timeout: 120_000,
  });
  return { status, stdout, stderr };
}

/**
 * What the module wrote with console.log(JSON.stringify(…)).
 * @param {string} source
 * @param {Parameters<typeof runModule>[1]} [options]
 */
export function jsonOf(source, options) {
  const { status, stdout, stderr } = runModule(source, options);
  if (status !== 0) throw new Error(`ended with status ${status}: ${stderr}`);
  return JSON.parse(stdout);
}
