// The ways in which a host may start a worker. Which globals exist is asked when the first worker is wanted, and no way is believed
// to work before a worker of it has answered.

import { nodeModule } from '../node-module.js';
import { messageOf } from '../source.js';
import { workerUrl } from './module-url.js';

/**
 * What a worker's side of the pool is told.
 * @typedef {{ message(data: any): void, lost(reason: string): void }} Listener
 *
 * A running worker. hold() and letGo() say whether it keeps a Node process alive.
 * @typedef {{ post(message: any, transfer: any[]): void, stop(): void, hold(): void, letGo(): void }} Link
 *
 * @typedef {object} Way
 * @property {boolean} proven whether a worker of it has answered
 * @property {(listener: Listener) => Link} open may throw
 */

/**
 * @param {string | null} workerText the workers' program; where there is none, only a file can be one
 * @returns {Way[]} the best first
 */
export function findWays(workerText) {
  const { Worker, Blob, URL } = /** @type {any} */ (globalThis);
  /** @type {Way[]} */
  const ways = [];
  if (typeof Worker === 'function') {
    const url = workerUrl();
    if (url) ways.push({ proven: false, open: (listener) => openWeb(Worker, url, { type: 'module' }, listener) });
    if (workerText !== null && typeof Blob === 'function' && typeof URL?.createObjectURL === 'function') {
      ways.push({ proven: false, open: (listener) => openBlob(Worker, workerText, listener) });
    }
  }
  const threads = nodeModule('worker_threads');
  if (workerText !== null && typeof threads?.Worker === 'function') {
    ways.push({ proven: false, open: (listener) => openNode(threads.Worker, workerText, listener) });
  }
  return ways;
}

/**
 * @param {Way[] | null} ways
 * @param {Way} way that has not worked
 */
export function dropWay(ways, way) {
  const at = ways?.indexOf(way) ?? -1;
  if (at >= 0) ways?.splice(at, 1);
}

/** Most workers of 'auto'. */
const mostCores = 8;

/** @param {number | 'auto'} threads @returns {number} most workers */
export const mostThreads = (threads) => (threads === 'auto' ? Math.min(mostCores, countCores()) : threads);

/** @returns {number} threads that run at once on this machine; 1 where nothing tells */
function countCores() {
  const { hardwareConcurrency } = /** @type {any} */ (globalThis.navigator ?? {});
  if (hardwareConcurrency > 0) return hardwareConcurrency;
  const os = nodeModule('os');
  return os?.availableParallelism?.() ?? os?.cpus?.().length ?? 1;
}

/**
 * @param {any} Worker
 * @param {string} url
 * @param {object} options
 * @param {Listener} listener
 * @returns {Link}
 */
function openWeb(Worker, url, options, listener) {
  const worker = new Worker(url, { name: 'sdpa', ...options });
  worker.onmessage = (/** @type {any} */ event) => listener.message(event.data);
  worker.onmessageerror = () => listener.lost('a message could not be read');
  worker.onerror = (/** @type {any} */ event) => {
    event.preventDefault?.();
    listener.lost(event.message || 'the worker did not start');
  };
  return {
    post: (message, transfer) => worker.postMessage(message, transfer),
    stop: () => {
      worker.onmessage = worker.onmessageerror = worker.onerror = null;
      worker.terminate();
    },
    // Hosts with both kinds of workers have these.
    hold: () => worker.ref?.(),
    letGo: () => worker.unref?.(),
  };
}

/**
 * @param {any} Worker
 * @param {string} workerText
 * @param {Listener} listener
 * @returns {Link}
 */
function openBlob(Worker, workerText, listener) {
  const url = URL.createObjectURL(new Blob([workerText], { type: 'text/javascript' }));
  try {
    return openWeb(
      Worker,
      url,
      {},
      {
        message: (data) => {
          // It has been read: revoking is for addresses that somebody may still look up.
          if (data.type === 'alive') URL.revokeObjectURL(url);
          listener.message(data);
        },
        lost: (reason) => {
          URL.revokeObjectURL(url);
          listener.lost(reason);
        },
      },
    );
  } catch (error) {
    URL.revokeObjectURL(url);
    throw error;
  }
}

/**
 * @param {any} Worker
 * @param {string} workerText
 * @param {Listener} listener
 * @returns {Link}
 */
function openNode(Worker, workerText, listener) {
  // No flags, preloaded modules or streams of the process: its output is not to be written to, nor listened to.
  const worker = new Worker(workerText, { eval: true, execArgv: [], stdout: true, stderr: true, name: 'sdpa' });
  worker.on('message', listener.message);
  worker.on('messageerror', () => listener.lost('a message could not be read'));
  worker.on('error', (/** @type {unknown} */ error) => listener.lost(messageOf(error)));
  worker.on('exit', (/** @type {number} */ code) => listener.lost(`the worker ended with status ${code}`));
  return {
    post: (message, transfer) => worker.postMessage(message, transfer),
    stop: () => void worker.terminate(),
    hold: () => worker.ref(),
    letGo: () => worker.unref(),
  };
}
