/**
 * Times this package beside others that compute attention in JavaScript and WebAssembly. See bench/peers/README.md.
 *
 *   npm run bench:peers
 *   npm run bench:peers -- --engines chromium --shapes bert128,dec-llama --peers 'sdpa|mha' --rounds 3
 */

import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bootstrap, whileLocked } from '../../scripts/bootstrap.mjs';
import { isMain, runMain, UserError } from '../../scripts/lib/exec.mjs';
import { createLog } from '../../scripts/lib/log.mjs';
import { BUILD, ROOT } from '../../scripts/lib/project.mjs';
import { CONTESTANTS } from './contestants.mjs';
import { ensurePeers, NODE_24, peerVersions } from './install.mjs';
import { readOptions } from './options.mjs';
import { timeShape } from './rounds.mjs';
import { shapeText } from './text.mjs';

/** @typedef {import('./options.mjs').EngineName} EngineName */
/** @typedef {import('./options.mjs').Options} Options */
/** @typedef {import('./node-engine.mjs').Engine} Engine */

/**
 * @typedef {object} Results of an engine: what a file in bench/results/ holds
 * @property {'peers'} kind
 * @property {string} engine
 * @property {Omit<import('../js/environment.mjs').Environment, 'versions'> & { versions: Record<string, string> }} environment
 * @property {import('./rounds.mjs').Pace} pace
 * @property {import('./summary.mjs').ShapeResult[]} shapes
 */

const NATIVE_BENCH = join(BUILD, 'native-release/bench/native/sdpa_bench');

/** @param {string} version @returns {string} */
const major = (version) => version.split('.')[0];

/** @returns {EngineName[]} those that can be had without being asked for */
function defaultEngines() {
  const second = existsSync(NODE_24) && major(process.versions.node) !== '24';
  return [
    'node',
    ...(second ? /** @type {const} */ (['node24']) : []),
    ...(existsSync(NATIVE_BENCH) ? /** @type {const} */ (['native']) : []),
  ];
}

/**
 * @param {EngineName} name
 * @param {number} limitMs
 * @param {import('../../scripts/lib/log.mjs').Log} log
 * @returns {Promise<Engine>}
 */
async function openEngine(name, limitMs, log) {
  switch (name) {
    case 'node': {
      const id = `node${major(process.versions.node)}`;
      return nodeEngineOf(id, process.execPath, limitMs);
    }
    case 'node24':
      if (!existsSync(NODE_24)) throw new UserError('the second Node is an npm package for Linux on x64 only');
      return nodeEngineOf('node24', NODE_24, limitMs);
    case 'chromium': {
      const { ensureChromium } = await import('../../scripts/chromium.mjs');
      const found = await ensureChromium({ log });
      if (!found.chromium) throw new UserError('reason' in found ? found.reason : 'there is no Chromium');
      const { chromiumEngine } = await import('./chromium-engine.mjs');
      return chromiumEngine({ program: found.chromium, limitMs, contestants: CONTESTANTS });
    }
    case 'native': {
      if (!existsSync(NATIVE_BENCH))
        throw new UserError('the native bench is not built: npm run bench -- --only native');
      const { nativeEngine } = await import('./native-engine.mjs');
      return nativeEngine({ program: NATIVE_BENCH, limitMs });
    }
  }
}

/** @param {string} id @param {string} program @param {number} limitMs */
async function nodeEngineOf(id, program, limitMs) {
  const { nodeEngine } = await import('./node-engine.mjs');
  return nodeEngine({ id, program, limitMs, contestants: CONTESTANTS });
}

/**
 * @param {Engine} engine
 * @param {Options} options
 * @param {import('../../scripts/lib/log.mjs').Log} log
 * @returns {Promise<Results>}
 */
async function timeEngine(engine, { shapes, peers, pace, command }, log) {
  const contestants = engine.contestants.filter(({ id, optional }) => (peers ? peers.test(id) : !optional));
  if (contestants.length === 0) {
    throw new UserError(`--peers ${peers?.source} is none of ${engine.contestants.map(({ id }) => id).join(', ')}`);
  }
  const { environment } = await import('../js/environment.mjs');
  const place = environment(fileURLToPath(import.meta.url), []);
  const { sdpa, emscripten } = place.versions;
  /** @type {Results} */
  const results = {
    kind: 'peers',
    engine: engine.label,
    environment: {
      ...place,
      command,
      versions: { ...engine.versions, sdpa, emscripten, ...peerVersions(contestants.map(({ library }) => library)) },
    },
    pace,
    shapes: [],
  };
  for (const c of shapes) {
    log(`${engine.label}: ${c.nickname}`);
    const result = await timeShape(engine, contestants, c, pace);
    results.shapes.push(result);
    process.stdout.write(`${shapeText(engine.label, result)}\n`);
  }
  return results;
}

/** @param {string[]} args */
async function main(args) {
  const options = readOptions(args, join(ROOT, 'bench/results'));
  const { limitMs, out } = options;
  const log = createLog();
  if (options.build) {
    await whileLocked('test', log, async () => {
      const { env } = await bootstrap({ log });
      const { build } = await import('../../scripts/build.mjs');
      await build({ log, env });
    });
  }
  await ensurePeers(log);
  for (const name of options.engines ?? defaultEngines()) {
    const engine = await openEngine(name, limitMs, log);
    try {
      const results = await timeEngine(engine, options, log);
      if (out === undefined) continue;
      mkdirSync(out, { recursive: true });
      writeFileSync(join(out, `peers-${engine.id}.json`), `${JSON.stringify(results, rounded, 2)}\n`);
    } finally {
      await engine.close();
    }
  }
}

/** Four digits are more than a timing has. @param {string} _key @param {unknown} value */
const rounded = (_key, value) =>
  typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;

if (isMain(import.meta.url)) runMain(() => main(process.argv.slice(2)));
