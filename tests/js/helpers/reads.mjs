// Objects that count how often each of their properties is read.

/** @param {Record<string, any>} fields */
export function counting(fields) {
  /** @type {Record<string, number>} */
  const reads = {};
  /** @type {any} */
  const object = {};
  for (const [name, setting] of Object.entries(fields)) {
    reads[name] = 0;
    Object.defineProperty(object, name, { enumerable: true, get: () => (reads[name]++, setting) });
  }
  return { object, reads };
}
