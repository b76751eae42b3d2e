/** The wasm builds, packed by the build. */
export declare const embedded: import('../unpack.js').Embedded;
