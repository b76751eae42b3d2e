// attend() of a sharded cache: read and copied when it is called, and in its turn cut into slices for each shard.

import { readAsyncOptions } from '../attention-async.js';
import { alignCodes } from '../frame.js';
import { settleAll } from '../operand.js';
import { emptyResult, Out, readOut } from '../output.js';
import { AttentionJob } from '../pool/attention-job.js';
import { RowCost } from '../pool/cost.js';
import { rowsOf } from '../pool/job.js';
import { slicesAhead } from '../pool/pace.js';
import { arraysOf, buffersOf } from '../pool/slice-runner.js';
import { Snapshot } from '../pool/snapshot.js';
import { pointerIn, product } from '../tensor.js';
import { beginQueryCall, fitQueryCall, outShape } from '../validate.js';
import { lastOffsets } from './attend.js';

/**
 * @typedef {import('../options.js').AttentionCall} AttentionCall
 * @typedef {import('../pool/deal.js').Slice} Slice
 * @typedef {import('../runtime.js').Runtime} Runtime
 * @typedef {import('./shard-group.js').Shard} Shard
 * @typedef {import('./shard-group.js').ShardGroup} ShardGroup
 */

/**
 * What attend() has been given, with copies of its inputs.
 * @typedef {object} AttendGiven
 * @property {AttentionCall} call but for what depends on the number of keys
 * @property {number[]} shape of out
 * @property {Out} out
 * @property {Snapshot} inputs
 * @property {import('../attention-async.js').AbortSignalLike | undefined} signal
 * @property {import('../attention-async.js').AsyncOptions['onProgress']} onProgress
 * @property {object} owner the instance
 */

/**
 * @param {Runtime} runtime
 * @param {ShardGroup} group
 * @param {unknown} query
 * @param {unknown} options
 * @param {object} owner
 * @param {() => void} checkLive throws where the caller's getters have disposed of the cache meanwhile
 * @returns {AttendGiven}
 */
export function readAttend(runtime, { spec, keepers }, query, options, owner, checkLive) {
  const { signal, onProgress, rest } = readAsyncOptions(options);
  const call = beginQueryCall(runtime, query, spec, rest);
  const shape = outShape(call);
  const out = readOut(runtime, call, shape, product('out', shape));
  settleAll(runtime, call);
  checkLive();
  if (signal?.aborted) throw signal.reason;
  return { call, shape, out, inputs: new Snapshot(runtime, call, keepers.buffers), signal, onProgress, owner };
}

/**
 * Begins a call in its turn, over the tokens that the cache has now.
 * @param {Runtime} runtime
 * @param {import('./rows.js').Rows} rows
 * @param {AttendGiven} given
 * @returns {{ job: AttentionJob } | { result: any }} `result` where there is nothing to compute
 */
export function beginAttend(runtime, { lengths, longest }, { call, shape, out, inputs, signal, onProgress, owner }) {
  try {
    if (signal?.aborted) throw signal.reason;
    fitQueryCall(call, longest);
    call.align = alignCodes.offset;
    call.queryOffsets = lastOffsets(call, lengths);
    call.kvLengths = lengths.slice();
    const count = product('out', shape);
    if (count > 0 && longest > 0) {
      // Its shards deal it out themselves.
      const deal = /** @type {any} */ (null);
      return { job: new AttentionJob(runtime, call, { shape, out, inputs, deal, onProgress, owner }) };
    }
    // It may have been disposed of meanwhile.
    const target = out.tensor ? new Out(null, out.tensor, pointerIn(out.tensor, runtime)) : out;
    const result = emptyResult(runtime, call, shape, count, target);
    onProgress?.({ done: rowsOf(call), total: rowsOf(call) });
    inputs.release();
    return { result };
  } catch (error) {
    inputs.release();
    throw error;
  }
}

/**
 * Has a shard compute its heads, some rows after the others.
 * @param {AttentionJob} job
 * @param {AttentionCall} call
 * @param {Shard} shard
 * @param {import('../pool/buffers.js').Buffers} buffers
 * @returns {Promise<void>} once all has been sent, or the call has ended
 */
export async function sendSlices(job, call, { keeper, number, first, heads }, buffers) {
  const { batch, numHeads, numKvHeads, seqlenQ, kvLengths, keySegments } = call;
  const lengths = /** @type {Int32Array} */ (kvLengths);
  const costs = new RowCost(call, lengths.indexOf(call.seqlenKv));
  const group = numHeads / numKvHeads;
  const rowHeads = batch * heads * group;
  const unit = /** @type {import('../pool/deal.js').Unit} */ ({ b: 0, batch, g: first, kvHeads: heads });
  /** @type {Promise<void>[]} */
  const ahead = [];
  for (let row = 0; row < seqlenQ && !job.settled;) {
    const end = costs.reach(row, keeper.pace.target(Infinity, 1) / rowHeads);
    const cost = costs.of(row, end) * rowHeads;
    /** @type {Slice} */
    const slice = { unit, head: 0, heads: heads * group, row, rows: end - row, cost };
    const work = job.inputs.work(slice, true);
    const blocks = work.blocks ? job.inputs.blocks(true) : null;
    const transfer = buffersOf([...arraysOf(work), blocks?.tiles, blocks?.bits]);
    const segments = keySegments && keySegments.data;
    const answer = keeper.ask({ what: 'attend', cache: number, work, segments, blocks }, transfer).then(
      (/** @type {import('../pool/slice-runner.js').SliceResult} */ results) => {
        keeper.pace.record(cost, results.milliseconds);
        job.finish(slice, results);
        buffers.give(results.out.buffer);
      },
      (error) => job.fail(error),
    );
    ahead.push(answer);
    row = end;
    if (ahead.length >= slicesAhead && row < seqlenQ) await ahead.shift();
  }
}
