import { workerText } from '../generated/worker-text.js';

export const workers = Object.freeze({ name: /** @type {const} */ ('workers'), methods: {}, workerText });
