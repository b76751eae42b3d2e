/**
 * npm start: sets up what is missing, builds, and serves the demo page on localhost (port `$PORT`, or from 8080 on
 * the next free one).
 */

import { join } from 'node:path';
import { bootstrap, whileLocked } from './bootstrap.mjs';
import { isMain, runMain } from './lib/exec.mjs';
import { createLog } from './lib/log.mjs';
import { BUILD } from './lib/project.mjs';
import { parsePort, serve } from './serve.mjs';

async function main() {
  const port = parsePort(process.env.PORT);
  const log = createLog();
  await whileLocked('test', log, async () => {
    const { env } = await bootstrap({ log });
    const { build } = await import('./build.mjs');
    await build({ log, env });
  });
  const { url, close } = await serve(join(BUILD, 'demo'), { port });
  log('serving the demo page; Ctrl-C ends it');
  process.stdout.write(`${url}/\n`);
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM'])) process.once(signal, () => void close());
}

if (isMain(import.meta.url)) runMain(main);
