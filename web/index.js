export { AttentionError } from './errors.js';
export { features } from './features.js';
export { load } from './load-embedded.js';
export { chooseVariant } from './variants.js';
export { version } from './version.js';

/**
 * @typedef {import('./errors.js').ErrorCode} ErrorCode
 * @typedef {import('./features.js').Features} Features
 * @typedef {import('./load.js').LoadOptions} LoadOptions
 * @typedef {import('./sdpa.js').Sdpa} Sdpa
 * @typedef {import('./tensor.js').DType} DType
 * @typedef {import('./tensor.js').SdpaTensor} SdpaTensor
 * @typedef {import('./tensor.js').MaskLike} MaskLike
 * @typedef {import('./tensor.js').Tensor} Tensor
 * @typedef {import('./tensor.js').TensorLike} TensorLike
 * @typedef {import('./options.js').AttentionOptions} AttentionOptions
 * @typedef {import('./attention-async.js').AttentionAsyncOptions} AttentionAsyncOptions
 * @typedef {import('./variants.js').Variant} Variant
 */

/**
 * @template {AttentionOptions} [O={}]
 * @typedef {import('./attention.js').AttentionResult<O>} AttentionResult
 */
