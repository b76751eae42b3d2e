// One file for a server, as it is put on machines that get nothing else.

import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { assertReport, fastestHere as variant, runIn } from '../helpers/apps.mjs';
import { bundlerApp, twoWorkers } from '../helpers/bundle.mjs';
import { lacks, toolFile } from '../helpers/tools.mjs';

for (const [format, name] of [
  ['cjs', 'server.cjs'],
  ['esm', 'server.mjs'],
]) {
  test(
    `esbuild for Node, ${name}: alone in a folder, with workers`,
    { skip: lacks('bundlers', 'esbuild') },
    async () => {
      const app = bundlerApp({
        'src/server.js': `
        import { features, load } from 'sdpa';
        import { check } from '../check.mjs';
        check({ features, load }, ${JSON.stringify(twoWorkers)}).then((report) => console.log(JSON.stringify(report)));`,
      });
      const { build } = createRequire(import.meta.url)(toolFile('bundlers', 'esbuild'));
      const outfile = join(app, name);
      const options = { absWorkingDir: app, entryPoints: ['src/server.js'], bundle: true, platform: 'node', format };
      const { warnings } = await build({ ...options, outfile, logLevel: 'silent' });
      assert.deepEqual(warnings, []);
      const alone = mkdtempSync(join(tmpdir(), 'sdpa-alone-'));
      try {
        copyFileSync(outfile, join(alone, name));
        assertReport(JSON.parse(runIn([process.execPath, name], alone)), { variant, threads: 2 });
      } finally {
        rmSync(alone, { recursive: true });
      }
    },
  );
}
