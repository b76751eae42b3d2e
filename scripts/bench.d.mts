/**
 * Builds and runs the benches, native and WebAssembly.
 *
 *   npm run bench                                      all
 *   npm run bench -- --only js --filter 'prefill.*'    one side, some shapes
 */
export {};
