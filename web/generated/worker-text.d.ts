/** web/pool/worker.js with all that it imports as one classic script, written by the build. */
export declare const workerText: string;
