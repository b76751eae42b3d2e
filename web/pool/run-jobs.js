// The way of every asynchronous call: its jobs go to the pool, and end with it.

/**
 * @param {import('./pool.js').Pool} pool
 * @param {object} owner the instance
 * @param {import('../attention-async.js').AbortSignalLike | undefined} signal
 * @param {import('./job.js').Job<any, any>[]} jobs
 * @returns {Promise<any[]>} what each of them gives; rejects with the first error, or with the signal's reason
 */
export async function runJobs(pool, owner, signal, jobs) {
  const fail = (/** @type {unknown} */ error) => jobs.forEach((job) => job.fail(error));
  const abort = () => fail(signal?.reason);
  signal?.addEventListener('abort', abort);
  try {
    pool.watch(owner);
    for (const job of jobs) pool.add(job);
    return await Promise.all(jobs.map(({ promise }) => promise));
  } catch (error) {
    fail(error); // what is left of the others
    throw error;
  } finally {
    signal?.removeEventListener('abort', abort);
    for (const job of jobs) pool.remove(job);
  }
}
