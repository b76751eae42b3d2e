/** The package's version: package.json and the wasm builds say the same. */
export const version = '0.1.0';
