/** Contestants in Node, each in a process of its own, so that neither memory nor compiled code of one can touch another. */

import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { oneLine } from './one-line.mjs';

/**
 * @typedef {object} Prepared
 * @property {number} [error] largest absolute error of the checked rows; absent where others check the results
 * @property {number} firstMs time of the first call
 * @property {number} [grown] bytes by which the process grew until the first result
 */

/**
 * @typedef {object} Player a contestant at one shape
 * @property {(warmUpMs: number) => Promise<Prepared>} prepare rejects with a message of one line
 * @property {(leastMs: number) => Promise<number[]>} turn ms of each call; rejects likewise
 * @property {number | undefined} pid whose processor time, with its descendants', is the contestant's
 * @property {() => Promise<void>} close
 */

/**
 * @typedef {object} Engine
 * @property {string} id
 * @property {string} label with its version
 * @property {Record<string, string>} versions
 * @property {readonly import('./contestants.mjs').Contestant[]} contestants
 * @property {(contestant: string, nickname: string) => Promise<Player>} player
 * @property {() => Promise<void>} close
 */

class NodePlayer {
  #child;
  #limitMs;
  #log = '';

  /** @param {string} program @param {number} limitMs */
  constructor(program, limitMs) {
    this.#limitMs = limitMs;
    this.#child = fork(fileURLToPath(new URL('node-child.mjs', import.meta.url)), {
      execPath: program,
      silent: true,
      // JSON would turn NaN into null.
      serialization: 'advanced',
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on('data', (chunk) => (this.#log = `${this.#log}${chunk}`.slice(-4000)));
    }
  }

  get pid() {
    return this.#child.pid;
  }

  /** @returns {Promise<any>} the next answer */
  answer() {
    const child = this.#child;
    return new Promise((resolve, reject) => {
      const settle = () => {
        clearTimeout(timer);
        child.off('message', onMessage).off('exit', onExit).off('error', onError);
      };
      /** @param {any} message */
      const onMessage = (message) => {
        settle();
        if ('failed' in message) reject(new Error(message.failed));
        else resolve(message.result);
      };
      /** @param {number | null} code @param {string | null} signal */
      const onExit = (code, signal) => {
        settle();
        const why = this.#log.split('\n').find((line) => /error|abort|memory/i.test(line)) ?? '';
        reject(new Error(oneLine(`the process ended (${signal ?? `status ${code}`}) ${why}`)));
      };
      /** @param {Error} error */
      const onError = (error) => {
        settle();
        reject(error);
      };
      const timer = setTimeout(() => {
        settle();
        reject(new Error(`no answer in ${this.#limitMs / 1000} s`));
      }, this.#limitMs);
      child.on('message', onMessage).on('exit', onExit).on('error', onError);
    });
  }

  /** @param {'prepare' | 'turn'} method @param {any[]} values @returns {Promise<any>} */
  ask(method, ...values) {
    if (!this.#child.connected) return Promise.reject(new Error('the process has ended'));
    const answer = this.answer();
    this.#child.send({ method, values });
    return answer;
  }

  async close() {
    const child = this.#child;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }
}

/**
 * @param {object} options
 * @param {string} options.id
 * @param {string} options.program the node to run
 * @param {number} options.limitMs for one answer
 * @param {readonly import('./contestants.mjs').Contestant[]} options.contestants
 * @returns {Promise<Engine>}
 */
export async function nodeEngine({ id, program, limitMs, contestants }) {
  const probe = new NodePlayer(program, limitMs);
  const { node, v8 } = await probe.answer().finally(() => probe.close());
  return {
    id,
    label: `Node ${node}`,
    versions: { node, v8 },
    contestants,
    async player(contestant, nickname) {
      const player = new NodePlayer(program, limitMs);
      await player.answer();
      return {
        prepare: (warmUpMs) => player.ask('prepare', contestant, nickname, warmUpMs),
        turn: (leastMs) => player.ask('turn', leastMs),
        pid: player.pid,
        close: () => player.close(),
      };
    },
    close: async () => {},
  };
}
