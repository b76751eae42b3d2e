// The benches' results as Markdown, and their way into a README.

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { replaceBlock } from '../markers.mjs';
import { describe, peersReport } from '../peers.mjs';
import { withResults } from '../write.mjs';

const pace = { rounds: 3, retries: 0, patienceMs: 0, turnMs: 0 };

test('what stands between the markers is replaced, the rest stays, and a marker that is missing or doubled is an error', () => {
  const readme = 'a\n<!-- x -->\nold\n<!-- /x -->\nb $& $1\n';
  const once = replaceBlock(readme, 'x', 'new $& $1\n');
  assert.equal(once, 'a\n<!-- x -->\n\nnew $& $1\n\n<!-- /x -->\nb $& $1\n');
  assert.equal(replaceBlock(once, 'x', 'new $& $1\n'), once);
  assert.throws(() => replaceBlock('<!-- x -->', 'x', ''), /\/x --> must stand there once, and stands there 0 times/);
  assert.throws(() => replaceBlock(`${readme}<!-- x -->`, 'x', ''), /2 times/);
  assert.throws(() => replaceBlock('<!-- /x --> <!-- x -->', 'x', ''), /before/);
});

/** @param {any[]} entries @returns {any} */
const results = (entries) => ({
  kind: 'peers',
  engine: 'Node 24.1.0',
  environment: {
    date: '2024-05-06T07:08:09.000Z',
    commit: '0123456789abcdef-dirty',
    command: 'npm run bench:peers',
    machine: { cpu: 'Some CPU', cores: 2, memory: 1, system: 'linux x64' },
    versions: { sdpa: '0.1.0', node: '24.1.0', '@jax-js/jax': '0.1.25' },
  },
  pace,
  shapes: [
    {
      name: 'attention/prefill/causal/B:1/H:32/Hkv:8/Sq:512/Skv:512/D:128',
      nickname: 'llama512',
      flops: 1,
      entries,
    },
  ],
});

/** @param {string} library @param {string} way @param {number} ms */
const timed = (library, way, ms) => ({ contestant: `${library} ${way}`, library, way, ms, gflops: 10, noisy: false });

test('the report shows each library’s fastest way, the winner in bold also where it is another, and the ratios', () => {
  const markdown = peersReport([
    results([
      timed('sdpa', 'simd', 4),
      timed('sdpa', 'relaxed', 2),
      timed('onnxruntime-web', 'mha', 3),
      timed('onnxruntime-web', 'gqa', 1),
      { ...timed('plain JavaScript', 'naive', 50), noisy: true },
    ]),
  ]);
  assert.match(markdown, /^\*\*Node 24\.1\.0\*\*/);
  assert.ok(
    markdown.includes(
      '| `llama512`: 32/8 heads, 512², D 128, causal | 4.00 (10.0) | 2.00 (10.0) | **1.00** (10.0) gqa | ~50.0 (10.0) | 0.25 | 0.50 |',
    ),
    markdown,
  );
  assert.match(markdown, /~ Other processes ran meanwhile/);
  assert.match(
    markdown,
    /Some CPU, 2 cores, linux x64; sdpa 0\.1\.0 at 0123456789 with changes, node 24\.1\.0, jax-js 0\.1\.25; .*2024-05-06; `npm run bench:peers`/,
  );
});

test('the report shows failing and wrong libraries with what they said', () => {
  const markdown = peersReport([
    results([
      timed('sdpa', 'simd', 4),
      { contestant: 'jax-js', library: '@jax-js/jax', way: 'x', failed: 'out of `memory`' },
      { contestant: 'tfjs', library: '@tensorflow/tfjs-backend-wasm', way: 'x', wrong: 0.25 },
    ]),
  ]);
  assert.match(markdown, /\| \*\*4\.00\*\* \(10\.0\) \| fails \| wrong \| – \|/);
  assert.ok(markdown.includes("- jax-js everywhere fails: `out of 'memory'`"), markdown);
  assert.ok(markdown.includes('- tfjs everywhere wrong: error 2.5e-1'), markdown);
});

test('a shape is described in words from its name', () => {
  const name = (/** @type {string} */ rest) => /** @type {any} */ ({ name: `attention/prefill/${rest}` });
  assert.equal(describe(name('dense/B:64/H:3/Hkv:3/Sq:49/Skv:49/D:32')), 'batch 64, 3 heads, 49², D 32');
  assert.equal(describe(name('causal/B:1/H:1/Hkv:1/Sq:1/Skv:2048/D:64')), '1 head, 1×2048, D 64, causal');
});

test('writing the results of all engines twice changes nothing, and a block without results stays', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'sdpa-report-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const one = results([timed('sdpa', 'simd', 4), timed('onnxruntime-web', 'mha', 3)]);
  await writeFile(join(folder, 'peers-node24.json'), JSON.stringify(one));
  await writeFile(join(folder, 'peers-chromium.json'), JSON.stringify({ ...one, engine: 'Chromium 140' }));
  const readme =
    '# Title\n\n<!-- bench:js -->\nas it is\n<!-- /bench:js -->\n\n<!-- bench:peers -->\n<!-- /bench:peers -->\n';
  const first = await withResults(readme, folder, {});
  assert.deepEqual(first.shown, ['peers-chromium.json', 'peers-node24.json']);
  assert.ok(first.text.includes('\nas it is\n'));
  assert.ok(first.text.indexOf('**Node 24.1.0**') < first.text.indexOf('**Chromium 140**'), first.text);
  const second = await withResults(first.text, folder, {});
  assert.equal(second.text, first.text);
  await assert.rejects(withResults('# Title\n', folder, {}), /bench:peers/);
});
