/// <reference lib="esnext.disposable" preserve="true" />

/** Symbol.dispose; where an engine lacks it, a symbol that nobody else has. @type {typeof Symbol.dispose} */
export const disposeSymbol = /** @type {any} */ (Symbol.dispose ?? /* @__PURE__ */ Symbol('sdpa.dispose'));
