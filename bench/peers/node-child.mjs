/** A contestant in a Node process of its own, told by message what to do. */

import { isMain } from '../../scripts/lib/exec.mjs';
import { allowRelaxedSimd } from '../js/relaxed.mjs';
import { importPeer } from './npm/import-peer.mjs';
import { oneLine } from './one-line.mjs';
import { Session } from './session.mjs';

/** @type {import('./contestants.mjs').ImportLibrary} */
async function importLibrary(name) {
  if (name !== 'sdpa') return importPeer(name);
  allowRelaxedSimd();
  return import('sdpa');
}

/** The process's memory at most so far, in bytes. */
const mostMemory = () => process.resourceUsage().maxRSS * 1024;

/** @type {{ [method: string]: (session: Session, values: any[]) => Promise<any> }} */
const METHODS = {
  async prepare(session, [contestant, nickname, warmUpMs]) {
    const before = process.memoryUsage.rss();
    const prepared = await session.prepare(contestant, nickname, warmUpMs);
    return { ...prepared, grown: Math.max(0, mostMemory() - before) };
  },
  turn: (session, [leastMs]) => session.turn(leastMs),
};

if (isMain(import.meta.url)) {
  const session = new Session(importLibrary);
  process.on('message', async (/** @type {{ method: 'prepare' | 'turn', values: any[] }} */ { method, values }) => {
    try {
      process.send?.({ result: await METHODS[method](session, values) });
    } catch (error) {
      process.send?.({ failed: oneLine(error instanceof Error ? error.message : String(error)) });
    }
  });
  process.send?.({ result: process.versions });
}
