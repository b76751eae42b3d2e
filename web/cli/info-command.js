// `sdpa info`: what is installed, what this engine has, and what would be used.

import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { gzipSync } from 'node:zlib';
import { chooseVariant, features, load, version } from '../index.js';
import { writeAll } from './streams.js';

/** @typedef {{ stdout: NodeJS.WriteStream, stderr: NodeJS.WriteStream }} Streams */

const kBuilds = ['relaxed', 'simd', 'scalar'];

/**
 * @param {Record<string, any>} flags
 * @param {Streams} streams
 */
export async function runInfo(flags, { stdout }) {
  const info = await collect({ variant: flags.variant ?? 'auto' });
  await writeAll(stdout, flags.json ? `${JSON.stringify(info, null, 2)}\n` : format(info));
}

/**
 * @param {{ variant: any }} options
 */
async function collect(options) {
  const found = features();
  const chosen = chooseVariant(found, options);
  const sdpa = await load(options);
  try {
    const require = createRequire(import.meta.url);
    const builds = await Promise.all(
      kBuilds.map(async (name) => {
        const bytes = await readFile(require.resolve(`sdpa/wasm/sdpa.${name}.wasm`));
        return { name, bytes: bytes.length, gzipped: gzipSync(bytes, { level: 9 }).length };
      }),
    );
    return {
      version,
      engine: { node: process.versions.node, v8: process.versions.v8, platform: process.platform, arch: process.arch },
      features: found,
      chosen,
      // another one than chosen where that did not pass its self-test
      variant: sdpa.variant,
      builds,
      memory: sdpa.memory(),
      threads: sdpa.threads,
    };
  } finally {
    sdpa.dispose();
  }
}

/**
 * @param {Awaited<ReturnType<typeof collect>>} info
 * @returns {string}
 */
function format({ version: number, engine, features: found, chosen, variant, builds, memory, threads }) {
  const rows = [
    ['sdpa', number],
    ['engine', `Node ${engine.node}, V8 ${engine.v8}, ${engine.platform} ${engine.arch}`],
    [
      'features',
      Object.entries(found)
        .map(([name, has]) => `${name}: ${has ? 'yes' : 'no'}`)
        .join(', '),
    ],
    ['build', variant === chosen ? variant : `${variant} (${chosen} failed its self-test)`],
    ...builds.map(({ name, bytes, gzipped }) => [`  ${name}`, `${kilobytes(bytes)} (${kilobytes(gzipped)} gzipped)`]),
    ['memory', `${kilobytes(memory.held)} held, ${kilobytes(memory.wasm)} of WebAssembly memory`],
    ['threads', String(threads)],
  ];
  return rows.map(([name, text]) => `${name.padEnd(10)}${text}\n`).join('');
}

/**
 * @param {number} bytes
 * @returns {string}
 */
function kilobytes(bytes) {
  return `${(bytes / 1000).toFixed(1)} kB`;
}
