// One worker, seen from the pool's side.

import { arraysOf, buffersOf } from './slice-runner.js';
import { errorOf, Station } from './station.js';

/**
 * @typedef {import('./deal.js').Slice} Slice
 * @typedef {import('./deal.js').Unit} Unit
 * @typedef {import('./job.js').Job<any, any>} Job
 * @typedef {import('./hosts.js').Way} Way
 * @typedef {{ job: Job, slice: Slice }} Assignment
 */

/**
 * What a member tells its pool.
 * @typedef {object} Manager
 * @property {(member: Member) => void} ready
 * @property {(member: Member, assignment: Assignment, results: import('./slice-runner.js').AnySliceResult, spare: ArrayBuffer[]) => void} done `spare`: buffers that it was sent
 * @property {(member: Member, assignment: Assignment, error: Error) => void} failed
 * @property {(member: Member) => void} lost called once; what it was doing is in `assignments`
 */

export class Member {
  #station;
  #manager;
  #next = 0;
  /** What it was sent and has not answered. @type {Map<number, Assignment>} */
  assignments = new Map();
  /** The unit whose keys it has. @type {Unit | null} */
  held = null;
  /** The call whose block mask it has. @type {Job | null} */
  #blocksOf = null;

  /**
   * @param {Way} way
   * @param {import('./station.js').Program} program
   * @param {Manager} manager
   * @throws where the host refuses at once
   */
  constructor(way, program, manager) {
    this.way = way;
    this.#manager = manager;
    this.#station = new Station(way, program, {
      ready: () => manager.ready(this),
      answer: (reply) => this.#hear(reply),
      lost: () => manager.lost(this),
    });
  }

  /** Whether it takes slices. */
  get ready() {
    return this.#station.ready;
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
    this.#station.post({ type: 'slice', id, keys, blocks, work }, buffersOf(arrays));
    this.held = unit;
    if (blocks) this.#blocksOf = job;
    this.assignments.set(id, { job, slice });
  }

  /** Nothing is left to do: gives back the memory of keys, values and block mask. */
  rest() {
    if (!this.held) return;
    this.held = null;
    this.#blocksOf = null;
    this.#station.post({ type: 'free' });
  }

  /** @param {boolean} busy whether it keeps the process alive */
  mind(busy) {
    this.#station.mind(busy);
  }

  stop() {
    this.#station.stop();
  }

  /** @param {Extract<import('./worker.js').Reply, { id: number }>} reply */
  #hear(reply) {
    const assignment = this.assignments.get(reply.id);
    if (!assignment) return;
    this.assignments.delete(reply.id);
    if (reply.type === 'error') this.#manager.failed(this, assignment, errorOf(reply.error));
    else this.#manager.done(this, assignment, /** @type {any} */ (reply.results), reply.spare);
  }
}
