/**
 * A static server for localhost: the demo page, and pages in the browser tests. Sends a strict
 * Content-Security-Policy, and none of the headers for cross-origin isolation, because the library must not need them.
 */

import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, realpath, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, resolve, sep } from 'node:path';
import { isMain, runMain, UserError } from './lib/exec.mjs';

/** @type {Record<string, string>} */
const TYPES = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.map': 'application/json; charset=utf-8',
  '.md': 'text/plain; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.wasm': 'application/wasm',
  '.webp': 'image/webp',
  '.woff2': 'font/woff2',
};

/** How many ports after the wanted one are tried. */
const PORTS_TRIED = 20;

/**
 * @typedef {object} Served
 * @property {string} url without a trailing slash
 * @property {number} port
 * @property {() => Promise<void>} close ends open connections as well
 */

/**
 * Serves a folder on the loopback interface.
 *
 * @param {string} root
 * @param {object} [options]
 * @param {number} [options.port] 0 (default) takes any; another one gives way to the next free one
 * @param {string} [options.host]
 * @param {Record<string, string>} [options.headers] added to each answer
 * @returns {Promise<Served>}
 */
export async function serve(root, { port = 0, host = '127.0.0.1', headers = {} } = {}) {
  const folder = await realpath(root).catch(() => {
    throw new UserError(`there is no folder ${root} to serve; has it been built?`);
  });
  const server = createServer((request, response) => {
    answer(folder, request, response, headers).catch((error) => {
      if (response.headersSent) response.destroy(error);
      else refuse(response, 500, String(error?.message ?? error));
    });
  });
  const used = await listen(server, host, port);
  return {
    url: `http://${host}:${used}`,
    port: used,
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

/**
 * @param {import('node:http').Server} server
 * @param {string} host
 * @param {number} port
 * @returns {Promise<number>} the port in use
 */
async function listen(server, host, port) {
  const last = port === 0 ? 0 : Math.min(port + PORTS_TRIED, 65_535);
  for (let candidate = port; ; candidate++) {
    try {
      await new Promise((done, failed) => {
        server.once('error', failed);
        server.listen(candidate, host, () => {
          server.off('error', failed);
          done(undefined);
        });
      });
      const address = server.address();
      return typeof address === 'object' && address ? address.port : candidate;
    } catch (error) {
      const code = /** @type {NodeJS.ErrnoException} */ (error).code;
      if (!['EADDRINUSE', 'EACCES'].includes(code ?? '') || candidate >= last) throw error;
    }
  }
}

/**
 * @param {string} folder real path
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 * @param {Record<string, string>} headers
 */
async function answer(folder, request, response, headers) {
  if (request.method !== 'GET' && request.method !== 'HEAD')
    return refuse(response, 405, 'only GET and HEAD', { allow: 'GET, HEAD' });
  const [rawPath, query] = (request.url ?? '/').split('?', 2);
  let path;
  try {
    path = decodeURIComponent(rawPath);
  } catch {
    return refuse(response, 400, 'the address is not well-formed');
  }
  if (path.includes('\0') || path.includes('\\')) return refuse(response, 400, 'the address is not well-formed');
  const file = await fileFor(folder, path);
  if (!file) return refuse(response, 404, `there is no ${path}`);
  if (file.isFolder) {
    return refuse(response, 301, 'it is a folder', {
      location: `${encodeURI(path).replace(/^\/+/, '/')}/${query ? `?${query}` : ''}`,
    });
  }
  const type = TYPES[extname(file.path).toLowerCase()] ?? 'application/octet-stream';
  const html = type.startsWith('text/html') ? await readFile(file.path) : undefined;
  response.writeHead(200, {
    'content-type': type,
    'content-length': html?.length ?? file.size,
    'cache-control': 'no-cache',
    'content-security-policy': contentSecurityPolicy(html?.toString('utf8') ?? ''),
    'x-content-type-options': 'nosniff',
    ...headers,
  });
  if (request.method === 'HEAD') return void response.end();
  if (html) return void response.end(html);
  createReadStream(file.path)
    .on('error', (error) => response.destroy(error))
    .pipe(response);
}

/**
 * @param {string} folder
 * @param {string} path decoded
 * @returns {Promise<{ path: string, size: number, isFolder: boolean } | undefined>} undefined where there is nothing
 *   inside the folder
 */
async function fileFor(folder, path) {
  const wanted = resolve(folder, `.${sep}${path.endsWith('/') ? `${path}index.html` : path}`);
  try {
    // The real path: neither `..` nor a symbolic link leads out.
    const real = await realpath(wanted);
    if (real !== folder && !real.startsWith(join(folder, sep))) return undefined;
    const info = await stat(real);
    return info.isFile() || info.isDirectory()
      ? { path: real, size: info.size, isFolder: info.isDirectory() }
      : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Only files of this server, no inline script but the page's own import map, no eval but WebAssembly.
 *
 * @param {string} html
 * @returns {string}
 */
export function contentSecurityPolicy(html) {
  const maps = [...html.matchAll(/<script\s[^>]*type=["']?importmap["']?[^>]*>([\s\S]*?)<\/script>/gi)]
    // Browsers hash the text with its line ends normalised.
    .map(([, text]) => ` 'sha256-${createHash('sha256').update(text.replaceAll('\r\n', '\n')).digest('base64')}'`);
  return [
    "default-src 'self'",
    `script-src 'self' 'wasm-unsafe-eval'${maps.join('')}`,
    "style-src 'self'",
    "img-src 'self' data: blob:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
}

/**
 * @param {import('node:http').ServerResponse} response
 * @param {number} status
 * @param {string} text
 * @param {Record<string, string>} [headers]
 */
function refuse(response, status, text, headers = {}) {
  response.writeHead(status, {
    'content-type': 'text/plain; charset=utf-8',
    'x-content-type-options': 'nosniff',
    ...headers,
  });
  response.end(`${text}\n`);
}

/**
 * @param {string | undefined} text `$PORT`
 * @returns {number}
 */
export function parsePort(text) {
  if (text === undefined || text === '') return 8080;
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new UserError(`PORT must be a number from 0 to 65535, got ${text}`);
  return port;
}

if (isMain(import.meta.url)) {
  runMain(async () => {
    const [, , root] = process.argv;
    if (!root) throw new UserError('usage: node scripts/serve.mjs <folder>');
    const { url } = await serve(root, { port: parsePort(process.env.PORT) });
    process.stdout.write(`${url}/\n`);
  });
}
