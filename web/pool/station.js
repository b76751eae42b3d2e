// A worker with a module of its own: how it is started, kept and ended, whatever it is there for.

import { loadError, rangeError } from '../errors.js';

/**
 * @typedef {import('./hosts.js').Way} Way
 * @typedef {import('./worker.js').Failure} Failure
 * @typedef {import('./worker.js').Reply} Reply
 */

/**
 * What workers start from: their program as a text, null where that was left out, and the wasm module. `bytes` gives the binary where a
 * compiled module cannot be sent.
 * @typedef {{ workerText: string | null, module: object, bytes: (() => Uint8Array) | null, maxMemory: number }} Program
 */

/**
 * Who started it hears of the start, of each answer, and, once, of the end where that is not by stop().
 * @typedef {{ ready(): void, answer(reply: Extract<Reply, { id: number }>): void, lost(): void }} Listener
 */

export class Station {
  #link;
  #way;
  #program;
  #listener;
  #stopped = false;
  /** Whether it has started. */
  ready = false;

  /**
   * @param {Way} way
   * @param {Program} program
   * @param {Listener} listener
   * @throws where the host refuses at once
   */
  constructor(way, program, listener) {
    this.#way = way;
    this.#program = program;
    this.#listener = listener;
    this.#link = way.open({ message: (data) => this.#hear(data), lost: () => this.#lose() });
    const { module, maxMemory } = program;
    try {
      this.#link.post({ type: 'start', module, maxMemory }, []);
    } catch {
      this.#sendBytes();
    }
  }

  /**
   * @param {import('./worker.js').Order} message
   * @param {ArrayBufferLike[]} [transfer]
   */
  post(message, transfer = []) {
    this.#link.post(message, transfer);
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

  /** @param {Reply} reply */
  #hear(reply) {
    if (this.#stopped) return;
    if (reply.type === 'ready') {
      this.#way.proven = true;
      this.ready = true;
      this.#listener.ready();
    } else if (reply.type === 'unreadable') this.#sendBytes();
    else if (reply.type === 'failed') this.#lose();
    else if (reply.type !== 'alive') this.#listener.answer(reply);
  }

  #sendBytes() {
    const { bytes, maxMemory } = this.#program;
    if (!bytes || this.ready) this.#lose();
    else this.#link.post({ type: 'start', bytes: bytes(), maxMemory }, []);
  }

  #lose() {
    if (this.#stopped) return;
    this.stop();
    this.#listener.lost();
  }
}

/** @param {Failure} failure */
export function errorOf({ code, message, needed, allowed }) {
  if (code) return rangeError(code, message, code === 'out-of-memory' ? { needed, allowed } : undefined);
  return loadError('load-failed', `a worker failed: ${message}`);
}
