// Outputs of an operator that are made only when somebody reads them.

/**
 * Adds an output that is there already, or one that is made when it is first read; the latter does not show in Object.keys before.
 * @param {object} outputs
 * @param {string} name
 * @param {any} made
 * @param {() => any} make
 */
export function addOutput(outputs, name, made, make) {
  if (made !== undefined) {
    Object.assign(outputs, { [name]: made });
    return;
  }
  Object.defineProperty(outputs, name, {
    configurable: true,
    enumerable: false,
    get() {
      const output = make();
      Object.defineProperty(outputs, name, { value: output, enumerable: true });
      return output;
    },
  });
}
