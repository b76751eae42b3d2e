// The workers of one instance. They share nothing: each has a module and memory of its own, is sent slices and sends results back.
// Nothing here waits for a worker: where none can be started, or all are lost, slices are computed on this thread, with rests.

import { Buffers } from './buffers.js';
import { dropWay, findWays, mostThreads } from './hosts.js';
import { Member } from './member.js';
import { nextTask } from './next-task.js';
import { Pace, slicesAhead } from './pace.js';
import { SliceRunner } from './slice-runner.js';

/**
 * @typedef {import('./deal.js').Unit} Unit
 * @typedef {import('./hosts.js').Way} Way
 * @typedef {import('./job.js').Job<any, any>} Job
 * @typedef {import('./member.js').Assignment} Assignment
 * @typedef {import('./station.js').Program} Program
 */

/** Milliseconds that the first call waits for a worker before it is begun on this thread. */
const patience = 1000;

export class Pool {
  #runtime;
  #program;
  /** @type {number | 'auto'} */
  #threads;
  /** Ways of starting workers that have not failed. @type {Way[] | null} */
  #ways = null;
  /** @type {Set<Member>} */
  #members = new Set();
  /** Calls that have not ended, in order. @type {Job[]} */
  #jobs = [];
  #pace = new Pace();
  #buffers = new Buffers();
  #computing = false;
  #closed = false;
  /** Whether workers have kept a call waiting too long, and none has answered since. */
  #late = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  /** @type {FinalizationRegistry<undefined> | null} */
  #registry = null;

  /**
   * @param {import('../runtime.js').Runtime} runtime for what is computed on this thread
   * @param {Program} program
   * @param {number | 'auto'} threads
   */
  constructor(runtime, program, threads) {
    this.#runtime = runtime;
    this.#program = program;
    this.#threads = threads;
  }

  /** Workers that run. */
  get threads() {
    let count = 0;
    for (const member of this.#members) if (member.ready) count++;
    return count;
  }

  /** How a new call is to be cut into units, and where its copies come from. */
  get cut() {
    return { grain: this.#pace.grain, parts: 4 * Math.max(1, mostThreads(this.#threads)), buffers: this.#buffers };
  }

  /**
   * Ends the workers once `owner` has been forgotten: running ones would keep the pool for ever.
   * @param {object} owner
   */
  watch(owner) {
    if (this.#registry || typeof FinalizationRegistry !== 'function') return;
    this.#registry = new FinalizationRegistry(() => this.close(null));
    this.#registry.register(owner, undefined);
  }

  /** @param {Job} job */
  add(job) {
    this.#jobs.push(job);
    this.#threads = mostThreads(this.#threads);
    if (this.#threads > 0) this.#ways ??= findWays(this.#program.workerText);
    this.#grow();
  }

  /**
   * Forgets a call that has ended.
   * @param {Job} job
   */
  remove(job) {
    const at = this.#jobs.indexOf(job);
    if (at < 0) return;
    this.#jobs.splice(at, 1);
    if (this.#jobs.length > 0) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const member of this.#members) {
      if (member.ready) member.rest();
      member.mind(false);
    }
  }

  /**
   * Ends the workers and all calls.
   * @param {unknown} error that the calls end with
   */
  close(error) {
    this.#closed = true;
    for (const job of [...this.#jobs]) job.fail(error);
    for (const member of this.#members) member.stop();
    this.#members.clear();
    this.#buffers.clear();
    clearTimeout(this.#timer);
  }

  /** Starts workers for what there is to do, and has all begin. */
  #grow() {
    if (this.#closed || this.#jobs.length === 0) return;
    const ways = this.#ways ?? [];
    const left = this.#jobs.reduce((sum, { deal }) => sum + deal.left, 0);
    const wanted = Math.min(/** @type {number} */ (this.#threads), Math.max(1, this.#pace.parts(left)));
    while (this.#members.size < wanted && ways.length > 0) {
      const way = ways[0];
      try {
        this.#members.add(new Member(way, this.#program, this.#manager));
      } catch {
        // A way that has worked before is not the reason: the host has enough workers.
        if (way.proven) break;
        ways.shift();
      }
    }
    for (const member of this.#members) member.mind(true);
    this.#dealAll();
    this.#await();
  }

  /** Sees to it that the calls go on where no worker is ready, and may not become so. */
  #await() {
    if (this.#jobs.length === 0 || this.threads > 0) return;
    if (this.#late || this.#members.size === 0) void this.#compute();
    else {
      this.#timer ??= setTimeout(() => {
        this.#late = true;
        void this.#compute();
      }, patience);
    }
  }

  /** @type {import('./member.js').Manager} */
  #manager = {
    ready: (member) => {
      this.#late = false;
      clearTimeout(this.#timer);
      this.#timer = undefined;
      this.#deal(member);
    },
    done: (member, { job, slice }, results, spare) => {
      this.#pace.record(slice.cost, results.milliseconds);
      job.finish(slice, results);
      if ('out' in results) this.#buffers.give(results.out.buffer);
      for (const buffer of spare) this.#buffers.give(buffer);
      this.#deal(member);
    },
    failed: (member, { job }, error) => {
      // A module that has trapped, or whose memory is full, is not used again.
      this.#members.delete(member);
      member.stop();
      this.#takeBack(member);
      job.fail(error);
      this.#replace(member);
    },
    lost: (member) => {
      this.#members.delete(member);
      this.#takeBack(member);
      this.#replace(member);
    },
  };

  /** @param {Member} member */
  #takeBack(member) {
    for (const { job, slice } of member.assignments.values()) job.deal.giveBack(slice);
    member.assignments.clear();
  }

  /**
   * The others do what a lost worker has not done. Another is started with the next call only, so that nothing that ends workers
   * goes on for ever; but where it has never started, others will not either, and the next way is tried.
   * @param {Member} lost
   */
  #replace(lost) {
    if (!lost.way.proven) {
      dropWay(this.#ways, lost.way);
      for (const member of this.#members) {
        if (member.way !== lost.way) continue;
        member.stop();
        this.#members.delete(member);
      }
      this.#grow();
    } else {
      this.#dealAll();
      this.#await();
    }
  }

  #dealAll() {
    for (const member of [...this.#members]) this.#deal(member);
  }

  /** @param {Member} member */
  #deal(member) {
    while (member.ready && member.assignments.size < slicesAhead) {
      const assignment = this.#take(member.held, this.threads);
      if (!assignment) return;
      try {
        member.send(assignment);
      } catch (error) {
        assignment.job.fail(error);
      }
    }
  }

  /**
   * @param {Unit | null} held
   * @param {number} threads
   * @returns {Assignment | null}
   */
  #take(held, threads) {
    for (const job of this.#jobs) {
      if (job.settled) continue;
      const slice = job.deal.take(held, this.#pace.target(threads === 0 ? Infinity : job.deal.left, threads || 1));
      if (slice) return { job, slice };
    }
    return null;
  }

  /** Computes on this thread until nothing is left to take or a worker has come. */
  async #compute() {
    if (this.#computing) return;
    this.#computing = true;
    const runner = new SliceRunner(this.#runtime);
    /** @type {Unit | null} */
    let held = null;
    /** @type {Job | null} */
    let blocksOf = null;
    try {
      do {
        // Also before the first: attentionAsync() has not returned yet.
        await nextTask();
        /** @type {Assignment | null} */
        const assignment = this.#closed || this.threads > 0 ? null : this.#take(held, 0);
        if (!assignment) return;
        const { job } = assignment;
        /** @type {import('./deal.js').Slice} */
        const slice = assignment.slice;
        try {
          if (held !== slice.unit) runner.hold(job.inputs.keys(slice.unit, false));
          held = slice.unit;
          const work = job.inputs.work(slice, false);
          const blocks = work.blocks && blocksOf !== job ? job.inputs.blocks(false) : null;
          if (blocks) {
            runner.holdBlocks(blocks);
            blocksOf = job;
          }
          const results = runner.run(work, false);
          this.#pace.record(slice.cost, results.milliseconds);
          job.finish(slice, results);
        } catch (error) {
          held = blocksOf = null;
          job.fail(error);
        }
      } while (this.#jobs.some(({ settled, deal }) => !settled && !deal.empty));
    } finally {
      runner.free();
      this.#computing = false;
    }
  }
}
