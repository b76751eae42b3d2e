/** The wasm builds, packed (raw DEFLATE) and in base64, written by the build. */
export declare const embedded: { readonly simd: string; readonly relaxed: string; readonly scalar: string };
