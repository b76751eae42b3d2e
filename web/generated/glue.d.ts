/** Emscripten's glue, written by the build: the same file for every variant. */
declare const createModule: (overrides: {
  instantiateWasm(imports: WebAssembly.Imports, receive: (instance: WebAssembly.Instance) => void): object;
}) => Promise<unknown>;
export default createModule;
