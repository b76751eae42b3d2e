// Where this package's files lie as modules of their own, which is so when a page takes them as they are.

/**
 * The address of worker.js beside this file. Behind a bundler there is no such file: then this code has another address, or none.
 * @returns {string | null} null where it is not of the page's own origin
 */
export function workerUrl() {
  try {
    const { origin, pathname, href } = new URL(import.meta.url);
    const name = '/pool/module-url.js';
    if (!pathname.endsWith(name) || origin === 'null' || origin !== globalThis.location.origin) return null;
    return new URL('./worker.js', href).href;
  } catch {
    return null;
  }
}
