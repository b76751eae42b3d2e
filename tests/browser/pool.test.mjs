// attentionAsync() in Chromium, under policies that allow module workers, blob workers or none.

import assert from 'node:assert/strict';
import { build } from 'esbuild';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { contentSecurityPolicy } from '../../scripts/serve.mjs';
import { browserTest, demoFolder, withDemo } from './helpers/demo.mjs';

/** What the page offers to the tests. */
const program = `
  import { load } from 'sdpa';
  const data = Float32Array.from({ length: 4 * 1500 * 64 }, (_, i) => Math.sin(i * i));
  const x = { data, shape: [4, 1500, 64] };
  const bits = ({ out, lse }) => [out, lse].map(({ data }) => [...new Uint32Array(data.buffer)].join()).join();
  const options = { causal: true, returnLse: true };
  globalThis.compare = async (threads, least) => {
    const sdpa = await load({ threads });
    const want = bits(sdpa.attention(x, x, x, options));
    let progress;
    let got;
    let calls = 0;
    Object.assign(globalThis.seen, { frames: 0, longTasks: [] });
    // Again, where a call was over before all workers had started, or before a frame was due.
    do {
      progress = [];
      got = await sdpa.attentionAsync(x, x, x, { ...options, onProgress: ({ done }) => progress.push(done) });
    } while (sdpa.threads < least || (globalThis.seen.frames === 0 && ++calls < 50));
    const { frames, longTasks } = globalThis.seen;
    const outcome = { same: bits(got) === want, threads: sdpa.threads, progress, frames, longTasks, variant: sdpa.variant };
    sdpa.dispose();
    return outcome;
  };
  globalThis.abort = async (threads) => {
    const sdpa = await load({ threads });
    const want = bits(sdpa.attention(x, x, x, options));
    const controller = new AbortController();
    let heard = 0;
    const onProgress = () => { heard++; controller.abort(); };
    let name;
    try { await sdpa.attentionAsync(x, x, x, { ...options, signal: controller.signal, onProgress }); } catch (error) { name = error.name; }
    const same = bits(await sdpa.attentionAsync(x, x, x, options)) === want;
    sdpa.dispose();
    return { name, heard, same };
  };
  globalThis.cache = async (threads) => {
    const sdpa = await load({ threads });
    const options = { batch: 1, numKvHeads: 4, headDim: 64, dtype: 'int8' };
    const [whole, sharded] = [sdpa.createKVCache(options), sdpa.createShardedKVCache(options)];
    whole.append(x, x);
    await sharded.append(x, x);
    const same = bits(await sharded.attend(x, { returnLse: true })) === bits(whole.attend(x, { returnLse: true }));
    const outcome = { same, shards: sharded.shards, threads: sharded.threads };
    sdpa.dispose();
    return outcome;
  };
  globalThis.isReady = true;`;

/** @type {string} */
let folder;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sdpa-pool-'));
  cpSync(join(demoFolder, 'sdpa'), join(folder, 'sdpa'), { recursive: true });
  writeFileSync(join(folder, 'program.js'), program);
  await build({
    stdin: { contents: program.replace("'sdpa'", "'./sdpa/index.js'"), resolveDir: folder },
    bundle: true,
    minify: true,
    format: 'iife',
    outfile: join(folder, 'bundled.js'),
    logLevel: 'error',
  });
  const head = '<!doctype html><meta charset="utf-8" /><title>page</title><link rel="icon" href="data:," />';
  const map = '<script type="importmap">{ "imports": { "sdpa": "./sdpa/index.js" } }</script>';
  writeFileSync(join(folder, 'modules.html'), `${head}${map}<script type="module" src="program.js"></script>`);
  writeFileSync(join(folder, 'bundled.html'), `${head}<script defer src="bundled.js"></script>`);
});

after(() => rmSync(folder, { recursive: true }));

/** In the page: notes how workers are started. */
function watchWorkers() {
  /** @type {string[]} */
  const started = [];
  const { Worker } = globalThis;
  Object.assign(globalThis, {
    started,
    Worker: class extends Worker {
      /** @param {string} url @param {WorkerOptions} options */
      constructor(url, options) {
        super(url, options);
        started.push(
          `${options.type ?? 'classic'} ${new URL(url).protocol}${new URL(url).pathname.replace(/^.*\/sdpa\//, '')}`,
        );
      }
    },
  });
}

/** @param {import('playwright-core').Page} page @returns {Promise<string[]>} */
const startedIn = (page) => page.evaluate(() => /** @type {any} */ (globalThis).started);

/**
 * @param {import('playwright-core').Page} page
 * @param {'compare' | 'abort' | 'cache'} name
 * @param {number | 'auto'} threads
 * @param {number} [least] workers that must have started in the end
 * @returns {Promise<any>}
 */
async function call(page, name, threads, least = 0) {
  await page.waitForFunction(() => /** @type {any} */ (globalThis).isReady);
  return page.evaluate(
    ([what, ...counts]) => /** @type {any} */ (globalThis)[what](...counts),
    /** @type {const} */ ([name, threads, least]),
  );
}

/** @param {any} outcome */
function assertRight({ same, progress }) {
  assert.ok(same, 'the bits differ from those of attention()');
  assert.equal(progress.at(-1), 6000);
  assert.ok(progress.every((/** @type {number} */ done, /** @type {number} */ i) => done > (progress[i - 1] ?? 0)));
}

const strict = "default-src 'self'; img-src data:; script-src 'self' 'wasm-unsafe-eval'";

browserTest('the files as they are start module workers under a strict policy', async (t) => {
  await withDemo({ folder, path: '/modules.html', before: watchWorkers }, async ({ page, go, problems }) => {
    await go();
    const outcome = await call(page, 'compare', 2, 2);
    assertRight(outcome);
    assert.equal(outcome.threads, 2);
    assert.ok(outcome.frames > 0, 'nothing was drawn meanwhile');
    assert.deepEqual(await startedIn(page), Array(2).fill('module http:pool/worker.js'));
    assert.deepEqual(await call(page, 'abort', 2), { name: 'AbortError', heard: 1, same: true });
    assert.deepEqual(await call(page, 'cache', 2), { same: true, shards: 2, threads: 2 });
    assert.deepEqual(problems, []);
    t.diagnostic(`${outcome.variant}: tasks above 50 ms: ${outcome.longTasks.join(', ') || 'none'}`);
  });
});

browserTest('a bundle starts workers from its own text where the policy has worker-src blob:', async () => {
  const headers = { 'content-security-policy': `${strict}; worker-src blob:` };
  await withDemo({ folder, path: '/bundled.html', headers, before: watchWorkers }, async ({ page, go, problems }) => {
    await go();
    const outcome = await call(page, 'compare', 2, 2);
    assertRight(outcome);
    assert.equal(outcome.threads, 2);
    const started = await startedIn(page);
    assert.equal(started.length, 2);
    for (const way of started) assert.match(way, /^classic blob:/);
    assert.deepEqual(await call(page, 'abort', 2), { name: 'AbortError', heard: 1, same: true });
    assert.deepEqual(await call(page, 'cache', 2), { same: true, shards: 2, threads: 2 });
    assert.deepEqual(
      problems.filter((problem) => !problem.startsWith('request: blob:')),
      [],
    );
  });
});

browserTest(
  'a bundle under a policy that allows no such worker computes on the page, which goes on drawing',
  async (t) => {
    const headers = { 'content-security-policy': strict };
    await withDemo({ folder, path: '/bundled.html', headers, before: watchWorkers }, async ({ page, go, problems }) => {
      await go();
      const outcome = await call(page, 'compare', 2);
      assertRight(outcome);
      assert.equal(outcome.threads, 0);
      assert.ok(outcome.frames > 0, 'nothing was drawn meanwhile');
      assert.ok(outcome.progress.length > 2);
      assert.deepEqual(await call(page, 'abort', 2), { name: 'AbortError', heard: 1, same: true });
      assert.deepEqual(await call(page, 'cache', 2), { same: true, shards: 2, threads: 0 });
      for (const problem of problems)
        assert.match(problem, /worker from 'blob:.* Content Security Policy|^request: blob:/);
      t.diagnostic(`${outcome.variant}: tasks above 50 ms: ${outcome.longTasks.join(', ') || 'none'}`);
    });
  },
);

browserTest('a page without Worker computes by itself', async () => {
  const lack = () => void Reflect.deleteProperty(globalThis, 'Worker');
  await withDemo({ folder, path: '/modules.html', before: lack }, async ({ page, go, problems }) => {
    await go();
    const outcome = await call(page, 'compare', 'auto');
    assertRight(outcome);
    assert.equal(outcome.threads, 0);
    assert.deepEqual(problems, []);
  });
});

browserTest('a module worker that is not found gives way to the next kind', async () => {
  const policy = contentSecurityPolicy(readFileSync(join(folder, 'modules.html'), 'utf8'));
  const headers = { 'content-security-policy': `${policy}; worker-src 'self' blob:` };
  await withDemo({ folder, path: '/modules.html', headers, before: watchWorkers }, async ({ page, go }) => {
    await page.route('**/pool/worker.js', (route) => route.fulfill({ status: 404 }));
    await go();
    const outcome = await call(page, 'compare', 1);
    assertRight(outcome);
    assert.equal(outcome.threads, 1);
    const started = await startedIn(page);
    assert.equal(started[0], 'module http:pool/worker.js');
    assert.match(started[1], /^classic blob:/);
  });
});
