/**
 * One of Node's own modules, by a lookup at run time, so that no bundler looks for it. Node before 20.16 has none.
 * @param {string} name
 * @returns {any} undefined outside of Node, and where the host forbids it
 */
export function nodeModule(name) {
  try {
    return /** @type {any} */ (globalThis).process?.getBuiltinModule?.(`node:${name}`);
  } catch {
    return undefined;
  }
}
