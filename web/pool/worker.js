// The program of a worker: an instance of its own, and slices, or shards of caches, as they come. The build also puts it, with all that it imports, into
// one script that runs as a classic worker.

import { AttentionError } from '../errors.js';
import { ShardStore } from '../kv-cache/shard-store.js';
import { nodeModule } from '../node-module.js';
import { instantiate } from '../runtime.js';
import { messageOf } from '../source.js';
import { arraysOf, buffersOf, SliceRunner } from './slice-runner.js';

/**
 * What a worker is told.
 * @typedef {{ type: 'start', module?: object, bytes?: Uint8Array<ArrayBuffer>, maxMemory: number }} Start
 * @typedef {{ type: 'slice', id: number, keys: import('./slice-runner.js').Keys | null, blocks: import('../options.js').Blocks | null, work: import('./slice-runner.js').SliceWork }} SliceMessage
 * @typedef {{ type: 'free' }} Free keys, values and block mask
 * @typedef {{ type: 'shard', id: number | null, order: import('../kv-cache/shard-store.js').ShardOrder }} ShardMessage without `id` there is no answer
 * @typedef {Start | SliceMessage | Free | ShardMessage} Order
 *
 * What it says.
 * @typedef {{ code?: import('../errors.js').ErrorCode, message: string, needed?: number, allowed?: number }} Failure
 * @typedef {{ type: 'alive' } | { type: 'ready' } | { type: 'unreadable' } | { type: 'failed', error: Failure }
 *   | { type: 'done', id: number, results: import('./slice-runner.js').AnySliceResult | import('../kv-cache/shard-store.js').ShardAnswer, spare: ArrayBuffer[] }
 *   | { type: 'error', id: number, error: Failure }} Reply
 */

/** @type {any} */
const port = nodeModule('worker_threads')?.parentPort ?? globalThis;

/** @type {SliceRunner | null} */
let runner = null;

/** @type {ShardStore | null} */
let shards = null;

port.onmessage = (/** @type {{ data: Order }} */ { data }) => {
  if (data.type === 'start') void start(data);
  else if (data.type === 'slice') run(data);
  else if (data.type === 'shard') obey(data);
  else runner?.free();
};
// Where a WebAssembly.Module may not be sent.
port.onmessageerror = () => reply({ type: 'unreadable' });
reply({ type: 'alive' });

/**
 * @param {Reply} message
 * @param {ArrayBufferLike[]} [transfer]
 */
function reply(message, transfer = []) {
  port.postMessage(message, transfer);
}

/** @param {Start} message */
async function start({ module, bytes, maxMemory }) {
  try {
    const compiled = module ?? (await WebAssembly.compile(/** @type {Uint8Array<ArrayBuffer>} */ (bytes)));
    const runtime = await instantiate(compiled, maxMemory);
    runner = new SliceRunner(runtime);
    shards = new ShardStore(runtime);
    reply({ type: 'ready' });
  } catch (error) {
    reply({ type: 'failed', error: describe(error) });
  }
}

/** @param {SliceMessage} message */
function run({ id, keys, blocks, work }) {
  try {
    if (!runner) throw new Error('a slice came before the start');
    if (keys) runner.hold(keys);
    if (blocks) runner.holdBlocks(blocks);
    const results = runner.run(work, true);
    const arrays = buffersOf(Object.values(results));
    // What came goes back, to be used again; the query's buffer may hold the result already.
    const came = [...arraysOf(work), keys?.key, keys?.value];
    const spare = buffersOf(came).filter((buffer) => !arrays.includes(buffer));
    reply({ type: 'done', id, results, spare }, [...arrays, ...spare]);
  } catch (error) {
    reply({ type: 'error', id, error: describe(error) });
  }
}

/** @param {ShardMessage} message */
function obey({ id, order }) {
  try {
    const results = /** @type {ShardStore} */ (shards).obey(order);
    if (id !== null) reply({ type: 'done', id, results, spare: [] }, buffersOf(Object.values(results)));
  } catch (error) {
    // Where nobody would hear of it, this worker is done for.
    if (id === null) throw error;
    reply({ type: 'error', id, error: describe(error) });
  }
}

/**
 * @param {unknown} error
 * @returns {Failure}
 */
function describe(error) {
  const message = messageOf(error);
  if (!AttentionError.is(error)) return { message };
  const { code, needed, allowed } = error;
  return { code, message, needed, allowed };
}
