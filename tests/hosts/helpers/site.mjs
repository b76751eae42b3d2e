// The package as pages have it without a bundler, and as one script: a folder to serve, the same for every browser.

import { buildSync } from 'esbuild';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { createApp } from './apps.mjs';
import { html } from './bundle.mjs';

const imports = `import { features, load } from 'sdpa'; import { check } from './check.mjs';`;
const wanted = 'JSON.parse(decodeURIComponent(location.hash.slice(1)))';
const leave = `.then((report) => { globalThis.report = report; }, (error) => { globalThis.report = { message: String(error && error.stack) }; })`;

/** Answers with a report whoever sends what is wanted. */
const answering = `
  globalThis.addEventListener('message', ({ data, ports: [port] }) => {
    check({ features, load }, data).catch((error) => ({ message: String(error && error.stack) })).then((report) => port.postMessage(report));
  });`;

/** Asks such a script. @param {string} target that has a postMessage() */
const asking = (target) => `
  new Promise((done) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = ({ data }) => done(data);
    ${target}.postMessage(${wanted}, [port2]);
  })${leave};`;

/** @param {string} script @param {string} [type] */
const registering = (script, type = 'classic') => `
  (async () => {
    await navigator.serviceWorker.register('${script}', { type: '${type}' });
    const { active } = await navigator.serviceWorker.ready;
    return active;
  })().then((worker) => ${asking('worker').trim().replace(/;$/, '')});`;

const map = '<script type="importmap">{ "imports": { "sdpa": "./sdpa/index.js" } }</script>';

/** @type {string | undefined} */
let made;

/**
 * modules.html has an import map and the package's files in sdpa/; bundle.html one classic script; worker-*.html ask a worker that the
 * page starts, and service-*.html a service worker, made of modules or of one script.
 * @returns {string}
 */
export function site() {
  if (made) return made;
  const scripts = {
    'page.js': `${imports} check({ features, load }, ${wanted})${leave};`,
    'answer.js': `${imports} ${answering}`,
  };
  made = createApp({
    ...scripts,
    // Import maps are for pages alone.
    'page-module.js': scripts['page.js'].replace("'sdpa'", "'./sdpa/index.js'"),
    'relative.html': html('type="module" src="page-module.js"'),
    'answer-module.js': scripts['answer.js'].replace("'sdpa'", "'./sdpa/index.js'"),
    'ask-worker-module.js': asking("new Worker('answer-module.js', { type: 'module' })"),
    'ask-worker-bundle.js': asking("new Worker('answer-bundle.js')"),
    'ask-service-module.js': registering('answer-module.js', 'module'),
    'ask-service-bundle.js': registering('answer-bundle.js'),
    // The folder is an extension, too.
    'manifest.json': JSON.stringify({
      manifest_version: 3,
      name: 'page',
      version: '1',
      background: { service_worker: 'answer-bundle.js' },
      content_security_policy: { extension_pages: "script-src 'self' 'wasm-unsafe-eval'; object-src 'self'" },
    }),
    'modules.html': html('type="module" src="page.js"').replace('<script', `${map}<script`),
    'bundle.html': html('defer src="page-bundle.js"'),
    'framed.html': html('defer src="frame.js"'),
    // Of no origin, so that it may not even reach its own address.
    'frame.js': `
      const frame = document.createElement('iframe');
      frame.sandbox = 'allow-scripts';
      frame.src = 'framed-bundle.html' + location.hash;
      addEventListener('message', ({ data }) => { globalThis.report = data; });
      addEventListener('DOMContentLoaded', () => document.body.append(frame));`,
    'framed-bundle.html': html('defer src="page-bundle.js"></script><script defer src="tell.js"'),
    'tell.js': `const timer = setInterval(() => { if (globalThis.report) { clearInterval(timer); parent.postMessage(report, '*'); } }, 20);`,
    ...Object.fromEntries(
      ['worker-module', 'worker-bundle', 'service-module', 'service-bundle'].map((name) => [
        `${name}.html`,
        html(`defer src="ask-${name}.js"`),
      ]),
    ),
  });
  cpSync(join(made, 'node_modules/sdpa/dist'), join(made, 'sdpa'), { recursive: true });
  for (const name of ['page', 'answer']) {
    const outfile = join(made, `${name}-bundle.js`);
    buildSync({ entryPoints: [join(made, `${name}.js`)], outfile, bundle: true, format: 'iife', logLevel: 'error' });
  }
  return made;
}
