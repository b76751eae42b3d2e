// What servers send with pages.

/**
 * Headers with a policy.
 * @param {string} text
 */
export const policy = (text) => ({ 'content-security-policy': text });

/** A policy of the page's own files, with WebAssembly, that says nothing of workers. */
export const self = "default-src 'self'; img-src data:; script-src 'self' 'wasm-unsafe-eval'";

/** What a page needs to allow for a bundle that starts workers, and nothing else. */
export const workersAllowed = policy(`${self}; worker-src blob:`);

/** Isolated by COOP and COEP. */
export const isolated = {
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-embedder-policy': 'require-corp',
};
