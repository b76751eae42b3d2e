// One worker, seen from the pool's side.

import { loadError, rangeError } from '../errors.js';
import { arraysOf } from './slice-runner.js';

/**
 * @typedef {import('./deal.js').Slice} Slice
 * @typedef {import('./deal.js').Unit} Unit
 * @typedef {import('./job.js').Job<any, any>} Job
 * @typedef {import('./hosts.js').Way} Way
 * @typedef {import('./worker.js').Failure} Failure
 * @typedef {{ job: Job, slice: Slice }} Assignment
 */

/** What the workers of a pool start from. `bytes` gives the binary where a compiled module cannot be sent. @typedef {{ module: object, bytes: (() => Uint8Array) | null, maxMemory: number }} Program */

/**
 * What a member tells its pool.
 * @typedef {object} Manager
 * @property {(member: Member) => void} ready
 * @property {(member: Member, assignment: Assignment, results: import('./slice-runner.js').AnySliceResult, spare: ArrayBuffer[]) => void} done `spare`: buffers that it was sent
 * @property {(member: Member, assignment: Assignment, error: Error) => void} failed
 * @property {(member: Member) => void} lost called once; what it was doing is in `assignments`
 */

export class Member {
  #link;
  #program;
  #manager;
  #next = 0;
  #stopped = false;
  /** What it was sent and has not answered. @type {Map<number, Assignment>} */
  assignments = new Map();
  /** The unit whose keys it has. @type {Unit | null} */
  held = null;
  /** The call whose block mask it has. @type {Job | null} */
  #blocksOf = null;
  /** Whether it takes slices. */
  ready = false;

  /**
   * @param {Way} way
   * @param {Program} program
   * @param {Manager} manager
   * @throws where the host refuses at once
   */
  constructor(way, program, manager) {
    this.way = way;
    this.#program = program;
    this.#manager = manager;
    this.#link = way.open({ message: (data) => this.#hear(data), lost: () => this.#lose() });
    const { module, maxMemory } = program;
    try {
      this.#link.post({ type: 'start', module, maxMemory }, []);
    } catch {
      this.#sendBytes();
    }
  }

  /**
   * @param {Assignment} assignment
   * @throws what copying the slice's inputs throws
   */
  send({ job, slice }) {
    const { unit } = slice;
    const keys = this.held === unit ? null : job.inputs.keys(unit, true);
    const work = job.inputs.work(slice, true);
    const blocks = work.blocks && this.#blocksOf !== job ? job.inputs.blocks(true) : null;
    const arrays = [...arraysOf(work), keys?.key, keys?.value, blocks?.tiles, blocks?.bits];
    const id = this.#next++;
    this.#link.post(
      { type: 'slice', id, keys, blocks, work },
      arrays.flatMap((array) => (array ? [array.buffer] : [])),
    );
    this.held = unit;
    if (blocks) this.#blocksOf = job;
    this.assignments.set(id, { job, slice });
  }

  /** Nothing is left to do: gives back the memory of keys, values and block mask. */
  rest() {
    if (!this.held) return;
    this.held = null;
    this.#blocksOf = null;
    this.#link.post({ type: 'free' }, []);
  }

  /** @param {boolean} busy whether it keeps the process alive */
  mind(busy) {
    if (busy) this.#link.hold();
    else this.#link.letGo();
  }

  stop() {
    this.#stopped = true;
    this.ready = false;
    this.#link.stop();
  }

  /** @param {import('./worker.js').Reply} reply */
  #hear(reply) {
    if (this.#stopped) return;
    if (reply.type === 'ready') {
      this.way.proven = true;
      this.ready = true;
      this.#manager.ready(this);
    } else if (reply.type === 'unreadable') this.#sendBytes();
    else if (reply.type === 'failed') this.#lose();
    else if (reply.type !== 'alive') {
      const assignment = this.assignments.get(reply.id);
      if (!assignment) return;
      this.assignments.delete(reply.id);
      if (reply.type === 'done') this.#manager.done(this, assignment, reply.results, reply.spare);
      else this.#manager.failed(this, assignment, errorOf(reply.error));
    }
  }

  #sendBytes() {
    const { bytes, maxMemory } = this.#program;
    if (!bytes || this.ready) this.#lose();
    else this.#link.post({ type: 'start', bytes: bytes(), maxMemory }, []);
  }

  #lose() {
    if (this.#stopped) return;
    this.stop();
    this.#manager.lost(this);
  }
}

/** @param {Failure} failure */
function errorOf({ code, message, needed, allowed }) {
  if (code) return rangeError(code, message, code === 'out-of-memory' ? { needed, allowed } : undefined);
  return loadError('load-failed', `a worker failed: ${message}`);
}
