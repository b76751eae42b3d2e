// The engines, bundlers and test runners that scripts/test-hosts.mjs has installed.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { toolsFolder } from '../../../scripts/hosts/tools.mjs';

export { toolsFolder as toolFolder };

/**
 * @param {import('../../../scripts/hosts/tools.mjs').Group} group
 * @param {string} path in its node_modules
 * @returns {string}
 */
export const toolFile = (group, path) => join(toolsFolder(group), 'node_modules', path);

/**
 * @param {import('../../../scripts/hosts/tools.mjs').Group} group
 * @param {string} path
 * @returns {string | false} the reason for skipping a test that needs it
 */
export const lacks = (group, path) =>
  existsSync(toolFile(group, path))
    ? false
    : `${path} is not installed: npm run test:hosts installs it where there is one`;
