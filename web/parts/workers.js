import { workerText } from '../generated/worker-text.js';

/**
 * The workers' program as a text, so that asynchronous calls find it on every page and in Node. Without it they run on workers only where
 * a page takes the package's files as they are, and else on the caller's thread, with rests in between.
 */
export const workers = Object.freeze({ name: /** @type {const} */ ('workers'), methods: {}, workerText });
