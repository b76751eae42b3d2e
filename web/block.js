// Memory of one call: places in a block that is allocated as a whole, and the workspace that the module asks for.

import { field } from './frame.js';

/** @typedef {import('./operand.js').Operand} Operand */
/** @typedef {import('./runtime.js').Runtime} Runtime */

/** @param {number} bytes @returns {number} the next multiple of 64 */
export const align64 = (bytes) => Math.ceil(bytes / 64) * 64;

/** Offsets of arrays in a block. */
export class Block {
  bytes = 0;

  /** @param {number} bytes */
  take(bytes) {
    const at = this.bytes;
    this.bytes += align64(Math.max(1, bytes));
    return at;
  }

  /** @param {Operand | null} operand @returns {number} -1 where nothing is to be copied in */
  input(operand) {
    return operand && operand.pointer === 0 ? this.take(operand.bytes) : -1;
  }
}

/**
 * Runs what the frame says in a workspace of its own.
 * @param {Runtime} runtime
 * @param {'attentionBackward' | 'attentionWeights' | 'windowAttention'} name of the module's function, also for errors
 * @throws RangeError `out-of-memory`, with nothing changed
 */
export function runInWorkspace(runtime, name) {
  const { exports } = runtime;
  const needed = exports[`${name}WorkspaceBytes`](runtime.frame);
  if (needed < 0) runtime.check(needed, name);
  const bytes = align64(Math.max(1, needed));
  const workspace = runtime.allocate(bytes, name);
  try {
    const f = runtime.frame / 8;
    runtime.doubles[f + field.workspace] = workspace;
    runtime.doubles[f + field.workspace_bytes] = needed;
    const status = exports[name](runtime.frame);
    if (status !== 0) runtime.check(status, name);
  } finally {
    runtime.release(workspace, bytes);
  }
}
