// load(): options, sources of the binary, choice of the build, errors.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { chooseVariant, features, load, version } from 'sdpa';
import * as slim from 'sdpa/slim';
import { assertRejects, assertThrows } from '../helpers/errors.mjs';
import { randomSource } from '../helpers/reference.mjs';
import { allowRelaxedSimd, loadVariant, VARIANT } from '../helpers/sdpa.mjs';

if (VARIANT === 'relaxed') allowRelaxedSimd();

const file = fileURLToPath(import.meta.resolve(`sdpa/wasm/sdpa.${VARIANT}.wasm`));
const bytes = new Uint8Array(await readFile(file));
const x = randomSource(5).tensor(2, 3, 7, 5);
const want = (await loadVariant()).attention(x, x, x);

/** @param {any} sdpa */
function works(sdpa) {
  assert.equal(sdpa.variant, VARIANT);
  assert.deepEqual(sdpa.attention(x, x, x), want);
}

/** @type {import('node:http').Server} */
let server;
let origin = '';
/** @type {string[]} */
const asked = [];

before(async () => {
  server = createServer((request, response) => {
    asked.push(String(request.url));
    const [status, type, body] = /** @type {[number, string, any]} */ (
      {
        '/sdpa.wasm': [200, 'application/wasm', bytes],
        '/octets': [200, 'application/octet-stream', bytes],
        '/text': [200, 'text/plain', bytes],
        '/html': [200, 'text/html', '<!doctype html><title>app</title>'],
        '/empty': [200, 'application/wasm', ''],
      }[String(request.url)] ?? [404, 'text/plain', 'no such file']
    );
    response.writeHead(status, { 'content-type': type });
    response.end(body);
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', () => done(undefined)));
  origin = `http://127.0.0.1:${/** @type {any} */ (server.address()).port}`;
});

after(() => {
  server.closeAllConnections();
  server.close();
});

test('an instance says what it is', async () => {
  const sdpa = await loadVariant();
  const manifest = JSON.parse(await readFile(fileURLToPath(import.meta.resolve('sdpa/package.json')), 'utf8'));
  assert.equal(sdpa.version, manifest.version);
  assert.equal(version, manifest.version);
  assert.equal(sdpa.threads, 0);
  assert.equal(sdpa.variant, VARIANT);
  const { held, peak, wasm } = sdpa.memory();
  assert.ok(held > 0 && peak >= held && wasm > peak);
});

test('each load gives an instance of its own', async () => {
  const [a, b] = await Promise.all([loadVariant(), loadVariant()]);
  a.tensor([1000]);
  assert.notEqual(a.memory().held, b.memory().held);
  a.dispose();
  works(b);
});

test('wasm may be bytes, any view of them, shared memory, a Response or a compiled module', async () => {
  const padded = new Uint8Array(bytes.length + 20);
  padded.set(bytes, 7);
  const shared = new Uint8Array(new SharedArrayBuffer(bytes.length));
  shared.set(bytes);
  for (const wasm of [
    bytes,
    bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength),
    padded.subarray(7, 7 + bytes.length),
    new DataView(padded.buffer, 7, bytes.length),
    shared,
    new Response(bytes),
    await WebAssembly.compile(bytes),
  ]) {
    works(await load({ wasm }));
    if (!(wasm instanceof Response)) works(await slim.load({ wasm }));
  }
});

test('wasm may be a URL or a path, of a file or of a server', async () => {
  const url = pathToFileURL(file);
  for (const wasm of [url, url.href, file, `${origin}/sdpa.wasm`, new URL(`${origin}/sdpa.wasm`)])
    works(await load({ wasm }));
  const data = `data:application/wasm;base64,${Buffer.from(bytes).toString('base64')}`;
  works(await load({ wasm: data }));
});

test('the type that a server gives does not matter, and nothing is asked for twice', async () => {
  asked.length = 0;
  works(await load({ wasm: `${origin}/octets` }));
  works(await slim.load({ wasm: await fetch(`${origin}/text`) }));
  assert.deepEqual(asked, ['/octets', '/text']);
});

test('what is not there is named with its address and status', async () => {
  const missing = await assertRejects(load({ wasm: `${origin}/none.wasm` }), 'load-failed', /none\.wasm: status 404/);
  assert.equal(missing.url, `${origin}/none.wasm`);
  assert.equal(missing.status, 404);
  assert.equal(Buffer.from(/** @type {any} */ (missing.firstBytes)).toString(), 'no such file');
  const refused = await assertRejects(
    load({ wasm: 'http://127.0.0.1:9/x.wasm' }),
    'load-failed',
    /could not fetch .*127\.0\.0\.1:9/,
  );
  assert.ok(refused.cause instanceof Error);
  const noFile = await assertRejects(
    load({ wasm: new URL('none.wasm', import.meta.url) }),
    'load-failed',
    /could not read .*none\.wasm/,
  );
  assert.equal(/** @type {any} */ (noFile.cause).code, 'ENOENT');
  await assertRejects(load({ wasm: './no/such/file.wasm' }), 'load-failed', /no\/such\/file\.wasm/);
});

test('a page in place of the binary is recognised, and shown', async () => {
  const error = await assertRejects(
    load({ wasm: `${origin}/html` }),
    'load-failed',
    /html is not a wasm binary: it starts with 3c 21 64 6f .*<!doctype/,
  );
  assert.equal(error.status, 200);
  assert.equal(error.url, `${origin}/html`);
  assert.equal(error.firstBytes?.[0], 0x3c);
  await assertRejects(load({ wasm: `${origin}/empty` }), 'load-failed', /starts with nothing/);
  await assertRejects(load({ wasm: new Uint8Array(3) }), 'load-failed', /starts with 00 00 00/);
});

test('a second try after a failure works', async () => {
  await assertRejects(load({ wasm: `${origin}/none` }), 'load-failed', /404/);
  works(await load({ wasm: `${origin}/sdpa.wasm` }));
});

test('bytes that are wasm but broken, or another module, fail with a cause', async () => {
  const cut = await assertRejects(load({ wasm: bytes.subarray(0, 5000) }), 'load-failed', /does not compile/);
  assert.ok(cut.cause instanceof WebAssembly.CompileError);
  const other = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]);
  const foreign = await assertRejects(load({ wasm: other }), 'load-failed', /does not start/);
  assert.ok(foreign.cause instanceof Error);
});

test('a used Response fails clearly', async () => {
  const response = new Response(bytes);
  await response.arrayBuffer();
  await assertRejects(load({ wasm: response }), 'load-failed', /could not read/);
});

test('a binary of another version is refused, wherever it says so', async () => {
  const text = Buffer.from(version);
  const places = [];
  for (let at = Buffer.from(bytes).indexOf(text); at >= 0; at = Buffer.from(bytes).indexOf(text, at + 1))
    places.push(at);
  assert.ok(places.length >= 2, 'the version is in the data and in a section of its own');
  for (const at of places) {
    const changed = bytes.slice();
    changed[at] += 1;
    await assertRejects(
      load({ wasm: changed }),
      'version-mismatch',
      /is of version 1\.1\.0 but the JavaScript is of version 0\.1\.0/,
    );
  }
});

test('wasm of a wrong type is refused', async () => {
  for (const wasm of [5, true, {}, null, [0, 97]]) {
    await assertRejects(
      load(/** @type {any} */ ({ wasm })),
      'type',
      /wasm must be a URL, bytes, a Response or a WebAssembly\.Module/,
    );
  }
});

test('a variant that is not that of the binary is refused', async () => {
  const other = VARIANT === 'scalar' ? 'simd' : 'scalar';
  await assertRejects(
    load({ wasm: bytes, variant: other }),
    'option',
    new RegExp(`variant is '${other}' but .* is the ${VARIANT} build`),
  );
});

test('slim says that it needs a binary', async () => {
  await assertRejects(slim.load(/** @type {any} */ ({})), 'type', /sdpa\/slim carries no wasm binary/);
  await assertRejects(slim.load(/** @type {any} */ (undefined)), 'type', /option 'wasm'/);
});

test('bad options of load are refused by a rejection, never thrown', async () => {
  const cases = /** @type {[any, string, RegExp][]} */ ([
    [{ variant: 'fast' }, 'option', /variant must be 'auto', 'relaxed', 'simd' or 'scalar', got "fast"/],
    [{ variant: 1 }, 'type', /variant/],
    [{ threads: -1 }, 'option', /threads must be a whole number, 0 or more, got -1/],
    [{ threads: 1.5 }, 'option', /threads/],
    [{ threads: 'all' }, 'type', /threads must be a number or 'auto', got "all"/],
    [{ maxMemory: 0 }, 'option', /maxMemory must be more than 0 bytes, got 0/],
    [{ maxMemory: NaN }, 'option', /maxMemory/],
    [{ maxMemory: '1GB' }, 'type', /maxMemory must be a number of bytes, got "1GB"/],
    [{ simd: true }, 'unknown-option', /load has no option 'simd'; the options are variant, wasm, threads, maxMemory/],
    [null, 'type', /options must be an object/],
    ['simd', 'type', /options must be an object/],
  ]);
  for (const [options, code, message] of cases) await assertRejects(load(options), code, message);
});

test('threads are accepted', async () => {
  for (const threads of /** @type {const} */ ([0, 1, 4, 'auto'])) works(await loadVariant({ threads }));
});

test('features are plain answers', () => {
  const have = features();
  assert.deepEqual(Object.keys(have), [
    'webAssembly',
    'simd',
    'relaxed',
    'relaxedFused',
    'sharedMemory',
    'float16Array',
  ]);
  assert.ok(Object.values(have).every((value) => typeof value === 'boolean'));
  assert.equal(have.webAssembly, true);
  assert.equal(have.simd, true);
  if (VARIANT === 'relaxed') assert.equal(have.relaxed, true);
});

test('chooseVariant is a function of its arguments', () => {
  const all = {
    webAssembly: true,
    simd: true,
    relaxed: true,
    relaxedFused: true,
    sharedMemory: true,
    float16Array: true,
  };
  assert.equal(chooseVariant(all), 'relaxed');
  assert.equal(chooseVariant({ ...all, relaxedFused: false }), 'simd');
  assert.equal(chooseVariant({ ...all, relaxed: false, relaxedFused: false }), 'simd');
  assert.equal(chooseVariant({ ...all, simd: false, relaxed: false, relaxedFused: false }), 'scalar');
  for (const variant of /** @type {const} */ (['relaxed', 'simd', 'scalar']))
    assert.equal(chooseVariant(all, { variant }), variant);
  assert.equal(chooseVariant({ ...all, relaxedFused: false }, { variant: 'relaxed' }), 'relaxed');
  assert.equal(chooseVariant(all, { variant: 'auto' }), 'relaxed');
  assertThrows(
    () => chooseVariant({ ...all, simd: false }, { variant: 'simd' }),
    'unsupported',
    /variant 'simd' needs simd/,
  );
  assertThrows(() => chooseVariant({ ...all, relaxed: false }, { variant: 'relaxed' }), 'unsupported', /needs relaxed/);
  assertThrows(() => chooseVariant({ ...all, webAssembly: false }), 'unsupported', /no WebAssembly/);
  assertThrows(() => chooseVariant(all, /** @type {any} */ ({ variant: 'avx' })), 'option', /got "avx"/);
});
