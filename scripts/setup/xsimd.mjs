/** xsimd where Emscripten is the user's own: named by $XSIMD_INCLUDE_DIR, or among the system's headers. */

import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { UserError } from '../lib/exec.mjs';
import { versionAtLeast } from './emscripten.mjs';

export const XSIMD_MINIMUM_VERSION = '14.0.0';

/**
 * @param {string} include folder that holds `xsimd/xsimd.hpp`
 * @returns {string | undefined} its version
 */
export function xsimdVersion(include) {
  const file = join(include, 'xsimd/config/xsimd_config.hpp');
  if (!existsSync(file)) return undefined;
  const text = readFileSync(file, 'utf8');
  return ['MAJOR', 'MINOR', 'PATCH']
    .map((part) => new RegExp(`XSIMD_VERSION_${part} +(\\d+)`).exec(text)?.[1] ?? '0')
    .join('.');
}

/**
 * @param {NodeJS.ProcessEnv} env
 * @returns {string | undefined} `$XSIMD_INCLUDE_DIR`, checked
 */
export function xsimdFromEnvironment(env) {
  const include = env.XSIMD_INCLUDE_DIR;
  if (!include) return undefined;
  const version = xsimdVersion(include);
  if (!version || !versionAtLeast(version, XSIMD_MINIMUM_VERSION)) {
    throw new UserError(
      `XSIMD_INCLUDE_DIR is ${include}, which holds ${version ? `xsimd ${version}` : 'no xsimd/xsimd.hpp'}; ` +
        `needed is xsimd ${XSIMD_MINIMUM_VERSION} or newer`,
    );
  }
  return include;
}

/**
 * Looks among the system's headers. The folder returned holds xsimd alone: a wasm compiler must not see the system's
 * other headers.
 *
 * @param {string} dir toolchain folder, which receives the link
 * @param {string[]} [folders]
 * @returns {string | undefined} include folder
 */
export function linkSystemXsimd(dir, folders = ['/usr/local/include', '/opt/homebrew/include', '/usr/include']) {
  const found = folders.find((folder) => versionAtLeast(xsimdVersion(folder) ?? '0', XSIMD_MINIMUM_VERSION));
  if (!found) return undefined;
  const include = join(dir, 'xsimd', 'include');
  mkdirSync(include, { recursive: true });
  rmSync(join(include, 'xsimd'), { force: true });
  symlinkSync(join(found, 'xsimd'), join(include, 'xsimd'));
  return include;
}
