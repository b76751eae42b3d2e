/** Starts a bencher.mjs in a process of its own and asks it one thing at a time. */

import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** @typedef {import('./bencher.mjs').Answers} Answers */
/** @typedef {import('./bencher.mjs').Arguments} Arguments */

export class BenchProcess {
  /** @type {import('node:child_process').ChildProcess} */
  #child;

  /** @param {import('sdpa').Variant} variant */
  constructor(variant) {
    this.variant = variant;
    this.#child = fork(fileURLToPath(new URL('bencher.mjs', import.meta.url)));
  }

  /**
   * @template {keyof Answers} M
   * @param {M} method
   * @param {Arguments[M]} [argument]
   * @returns {Promise<Answers[M]>}
   */
  ask(method, argument) {
    const child = this.#child;
    return new Promise((resolve, reject) => {
      /** @param {any} answer */
      const onMessage = (answer) => {
        child.off('exit', onExit);
        if ('error' in answer) reject(new Error(`${method} of the ${this.variant} build: ${answer.error}`));
        else resolve(answer.result);
      };
      /** @param {number | null} code @param {string | null} signal */
      const onExit = (code, signal) => {
        child.off('message', onMessage);
        reject(
          new Error(`the process of the ${this.variant} build ended in ${method} (${signal ?? `status ${code}`})`),
        );
      };
      child.once('message', onMessage);
      child.once('exit', onExit);
      child.send({ method, argument });
    });
  }

  /** Ends the process. */
  close() {
    if (this.#child.connected) this.#child.disconnect();
  }
}
