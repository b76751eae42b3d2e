/**
 * Resolves in a task of its own, after what has been waiting. Not by scheduler.yield(), whose continuations come before timers, input
 * and drawing in some engines, so that a chain of them holds all of these up.
 * @returns {Promise<void>}
 */
export function nextTask() {
  return new Promise((resolve) => {
    if (typeof MessageChannel !== 'function') {
      setTimeout(resolve, 0);
      return;
    }
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}
