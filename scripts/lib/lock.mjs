/** A lock between processes that the kernel lets go when its holder dies, however it dies. */

import { spawn } from 'node:child_process';

/**
 * Runs `action` while this process alone holds the lock file. Uses flock(1): a child holds the lock until its stdin
 * closes, which also happens when this process is killed, so a stale lock cannot exist.
 *
 * @template T
 * @param {string} file created where it is missing; never removed
 * @param {() => void} onWait called once when another process holds the lock
 * @param {() => Promise<T>} action
 * @returns {Promise<T>}
 */
export async function withLock(file, onWait, action) {
  const holder = spawn('flock', ['--exclusive', file, 'sh', '-c', 'echo locked; cat >/dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
    // A Ctrl-C at the terminal goes to the whole group: the holder must outlive the clean-up of this process.
    detached: true,
  });
  const closed = new Promise((resolve) => holder.on('close', resolve));
  const waiting = setTimeout(onWait, 300);
  try {
    await new Promise((resolve, reject) => {
      holder.on('error', reject);
      holder.stdout.once('data', resolve);
      holder.on('close', (code) => reject(new Error(`flock on ${file} ended with status ${code}`)));
    });
    clearTimeout(waiting);
    return await action();
  } finally {
    clearTimeout(waiting);
    holder.stdin.on('error', () => {});
    holder.stdin.end();
    await closed;
  }
}
