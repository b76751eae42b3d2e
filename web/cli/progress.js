/**
 * A progress bar on a terminal, nothing elsewhere.
 * @param {NodeJS.WriteStream} stream
 * @param {{ label: string, total: number, unit: string, wanted: boolean }} options
 * @returns {Promise<{ update: (done: number) => void, stop: () => void }>}
 */
export async function createProgress(stream, { label, total, unit, wanted }) {
  if (!wanted || !stream.isTTY) return { update() {}, stop() {} };
  const { default: cliProgress } = await import('cli-progress');
  const bar = new cliProgress.SingleBar({
    format: `${label} [{bar}] {percentage}% | {value} of {total} ${unit} | {eta_formatted} left`,
    stream,
    barsize: 30,
    clearOnComplete: true,
    // Ctrl-C ends the process by itself, also in the middle of a slice
    gracefulExit: false,
    hideCursor: null,
    linewrap: null,
  });
  bar.start(total, 0);
  return { update: (done) => bar.update(done), stop: () => bar.stop() };
}
