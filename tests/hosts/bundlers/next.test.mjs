// Next.js with both of its bundlers: a page that computes in the browser, a route that computes on the server, and the standalone
// server, which takes along only what it has traced.

import assert from 'node:assert/strict';
import { cpSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { assertReport, fastestHere, runIn } from '../helpers/apps.mjs';
import { assertBundled, bundlerApp, startServer, twoWorkers } from '../helpers/bundle.mjs';
import { pageTest, visit } from '../helpers/chromium.mjs';
import { lacks, toolFile } from '../helpers/tools.mjs';

const files = {
  'app/layout.js': `
    export const metadata = { title: 'page', icons: 'data:,' };
    export default function Layout({ children }) { return <html lang="en"><body>{children}</body></html>; }`,
  // Its component is also run on the server, where the import must do nothing.
  'app/page.js': `
    'use client';
    import { useEffect, useState } from 'react';
    import { features, load } from 'sdpa';
    import { check } from '../check.mjs';
    export default function Page() {
      const [text, setText] = useState('');
      useEffect(() => {
        check({ features, load }, JSON.parse(decodeURIComponent(location.hash.slice(1))))
          .catch((error) => ({ message: String(error.stack) }))
          .then((report) => { globalThis.report ??= report; setText(JSON.stringify(report)); });
      }, []);
      return <p>{text}</p>;
    }`,
  'app/attention/route.js': `
    import { features, load } from 'sdpa';
    import { check } from '../../check.mjs';
    export const dynamic = 'force-dynamic';
    export async function GET() { return Response.json(await check({ features, load }, { threads: 2, least: 2 })); }`,
  'next.config.mjs': `export default { output: 'standalone' };`,
};

for (const bundler of ['turbopack', 'webpack']) {
  pageTest(`Next.js, ${bundler}: page, route and standalone server`, lacks('bundlers', 'next'), async (t) => {
    const app = bundlerApp(files);
    const said = runIn([process.execPath, toolFile('bundlers', 'next/dist/bin/next'), 'build', `--${bundler}`], app, {
      NEXT_TELEMETRY_DISABLED: '1',
    });
    assert.doesNotMatch(said, /module not found|can't resolve/i);
    t.diagnostic(said.split('\n').find((line) => /Next\.js/.test(line)) ?? '');
    // It lies as deep in there as the app lies in the folder that holds all packages.
    const built = join(app, '.next/standalone');
    const folder = dirname(
      join(
        built,
        readdirSync(built, { recursive: true, encoding: 'utf8' }).find(
          (name) => /(^|\/)server.js$/.test(name) && !name.includes('node_modules'),
        ) ?? '',
      ),
    );
    cpSync(join(app, '.next/static'), join(folder, '.next/static'), { recursive: true });
    const started = await startServer([process.execPath, 'server.js'], folder, { PORT: '0', HOSTNAME: '127.0.0.1' });
    try {
      const answer = await fetch(`${started.url}/attention`);
      assert.equal(answer.status, 200, started.output());
      assertReport(await answer.json(), { variant: fastestHere, threads: 2 });
      assertBundled(await visit(`${started.url}/`, twoWorkers));
    } finally {
      await started.close();
    }
  });
}
