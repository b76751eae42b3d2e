// Garbage that is collected while a test waits for what that brings about.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Collects garbage until something is so. @param {() => boolean} over */
export async function collectUntil(over) {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  while (!over()) {
    await new Promise((done) => setTimeout(done, 5));
    collect();
  }
}
