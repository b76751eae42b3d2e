import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { contentSecurityPolicy, parsePort, serve } from '../serve.mjs';

const MAP = '{"imports":{"sdpa":"./sdpa/index.js"}}';

const scratch = mkdtempSync(join(tmpdir(), 'sdpa serve-'));
const root = join(scratch, 'root');
/** @type {import('../serve.mjs').Served} */
let served;

before(async () => {
  mkdirSync(join(root, 'sub'), { recursive: true });
  writeFileSync(join(root, 'index.html'), `<!doctype html><script type="importmap">${MAP}</script>`);
  writeFileSync(join(root, 'sub/index.html'), 'sub');
  writeFileSync(join(root, 'a.wasm'), Buffer.from([0, 97, 115, 109]));
  writeFileSync(join(root, 'a.js'), 'export {};');
  writeFileSync(join(root, 'ä b.txt'), 'umlaut');
  writeFileSync(join(scratch, 'secret.txt'), 'secret');
  mkdirSync(join(scratch, 'root-sibling'));
  writeFileSync(join(scratch, 'root-sibling/x.txt'), 'secret');
  symlinkSync(join(scratch, 'secret.txt'), join(root, 'link.txt'));
  served = await serve(root);
});

after(async () => {
  await served.close();
  rmSync(scratch, { recursive: true });
});

/**
 * A request whose path is sent as it is (fetch would tidy it).
 *
 * @param {string} path
 * @param {string} [method]
 * @returns {Promise<{ status: number, headers: import('node:http').IncomingHttpHeaders, body: string }>}
 */
const raw = (path, method = 'GET') =>
  new Promise((done, failed) => {
    request({ host: '127.0.0.1', port: served.port, path, method }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk) => (body += chunk));
      response.on('end', () => done({ status: response.statusCode ?? 0, headers: response.headers, body }));
    })
      .on('error', failed)
      .end();
  });

describe('the static server', () => {
  test('sends files with the type that browsers insist on', async () => {
    for (const [path, type] of [
      ['/', 'text/html; charset=utf-8'],
      ['/a.js', 'text/javascript; charset=utf-8'],
      ['/a.wasm', 'application/wasm'],
      ['/sub/', 'text/html; charset=utf-8'],
      ['/%C3%A4%20b.txt?query', 'text/plain; charset=utf-8'],
    ]) {
      const { status, headers } = await raw(path);
      assert.deepEqual([status, headers['content-type']], [200, type], path);
    }
  });

  test('never leaves its folder', async () => {
    for (const path of [
      '/../secret.txt',
      '/%2e%2e/secret.txt',
      '/..%2fsecret.txt',
      '/sub/../../secret.txt',
      '/../root-sibling/x.txt',
      '/..%5csecret.txt',
      '/link.txt',
      `/${encodeURI(join(scratch, 'secret.txt'))}`,
      '//etc/passwd',
    ]) {
      const { status, body } = await raw(path);
      assert.ok(status === 404 || status === 400, `${path} gave ${status}`);
      assert.doesNotMatch(body, /^secret$|root:/m);
    }
  });

  test('answers what it cannot do with the right status', async () => {
    assert.equal((await raw('/missing')).status, 404);
    assert.equal((await raw('/%zz')).status, 400);
    assert.equal((await raw('/a%00.js')).status, 400);
    assert.equal((await raw('/', 'POST')).status, 405);
    const moved = await raw('/sub?x=1');
    assert.deepEqual([moved.status, moved.headers.location], [301, '/sub/?x=1']);
    const head = await raw('/a.js', 'HEAD');
    assert.deepEqual([head.status, head.headers['content-length'], head.body], [200, '10', '']);
  });

  test('sends a policy without inline scripts, but with the import map of the page', async () => {
    const { headers } = await raw('/');
    const hash = createHash('sha256').update(MAP).digest('base64');
    const policy = String(headers['content-security-policy']);
    assert.ok(policy.includes(`script-src 'self' 'wasm-unsafe-eval' 'sha256-${hash}'`), policy);
    assert.doesNotMatch(policy, /unsafe-inline|'unsafe-eval'/);
    assert.doesNotMatch(contentSecurityPolicy('<script>alert(1)</script>'), /sha256/);
  });

  test('sends no headers for cross-origin isolation', async () => {
    const { headers } = await raw('/');
    assert.equal(headers['cross-origin-opener-policy'], undefined);
    assert.equal(headers['cross-origin-embedder-policy'], undefined);
  });

  test('takes the next free port where the wanted one is in use', async () => {
    const second = await serve(root, { port: served.port });
    try {
      assert.ok(second.port > served.port && second.port <= served.port + 20);
      assert.equal((await fetch(`${second.url}/sub/`)).status, 200);
    } finally {
      await second.close();
    }
  });

  test('says so when there is nothing to serve', async () => {
    await assert.rejects(serve(join(scratch, 'nowhere')), /nowhere/);
  });
});

test('PORT is a port number or refused with its value', () => {
  assert.equal(parsePort(undefined), 8080);
  assert.equal(parsePort('0'), 0);
  assert.equal(parsePort('65535'), 65535);
  for (const text of ['65536', '-1', '80.5', 'http']) assert.throws(() => parsePort(text), new RegExp(`got ${text}`));
});
