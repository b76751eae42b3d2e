export { AttentionError } from './errors.js';
export { features } from './features.js';
export { load } from './load-slim.js';
export { masks } from './masks/index.js';
export { chooseVariant } from './variants.js';
export { version } from './version.js';

/**
 * @typedef {import('./errors.js').ErrorCode} ErrorCode
 * @typedef {import('./features.js').Features} Features
 * @typedef {import('./load.js').LoadOptions} LoadOptions
 * @typedef {import('./load-slim.js').SlimLoadOptions} SlimLoadOptions
 * @typedef {import('./combine-parts.js').Part} Part
 * @typedef {import('./sdpa.js').Sdpa} Sdpa
 * @typedef {import('./tensor.js').DType} DType
 * @typedef {import('./tensor.js').SdpaTensor} SdpaTensor
 * @typedef {import('./tensor.js').MaskLike} MaskLike
 * @typedef {import('./tensor.js').Tensor} Tensor
 * @typedef {import('./tensor.js').TensorLike} TensorLike
 * @typedef {import('./options.js').AttentionOptions} AttentionOptions
 * @typedef {import('./attention-async.js').AttentionAsyncOptions} AttentionAsyncOptions
 * @typedef {import('./variants.js').Variant} Variant
 * @typedef {import('./masks/block-mask.js').BlockMask} BlockMask
 * @typedef {import('./merge.js').MergePart} MergePart
 * @typedef {import('./weights/weights.js').WeightsOptions} WeightsOptions
 * @typedef {import('./weights/weights-async.js').WeightsAsyncOptions} WeightsAsyncOptions
 * @typedef {import('./gradients.js').BackwardOptions} BackwardOptions
 * @typedef {import('./gradients.js').BackwardGiven} BackwardGiven
 * @typedef {import('./gradients/async.js').BackwardAsyncOptions} BackwardAsyncOptions
 * @typedef {import('./gradient-check.js').CheckOptions} CheckOptions
 * @typedef {import('./gradient-check.js').GradientCheck} GradientCheck
 * @typedef {import('./kv-cache/kv-cache.js').KVCache} KVCache
 * @typedef {import('./kv-cache/cache-options.js').KVCacheOptions} KVCacheOptions
 * @typedef {import('./kv-cache/append.js').AppendOptions} AppendOptions
 * @typedef {import('./kv-cache/kv-cache.js').AttendOptions} AttendOptions
 * @typedef {import('./kv-cache/sharded-cache.js').ShardedKVCache} ShardedKVCache
 * @typedef {import('./kv-cache/sharded-cache.js').ShardedAttendOptions} ShardedAttendOptions
 * @typedef {import('./rope.js').RopeOptions} RopeOptions
 * @typedef {import('./sinusoidal.js').SinusoidalOptions} SinusoidalOptions
 * @typedef {import('./layers/multi-head-attention.js').MultiHeadAttention} MultiHeadAttention
 * @typedef {import('./layers/multi-head-attention.js').MultiHeadAttentionOptions} MultiHeadAttentionOptions
 * @typedef {import('./layers/multi-head-attention.js').ForwardOptions} ForwardOptions
 * @typedef {import('./layers/backward.js').LayerGradients} LayerGradients
 * @typedef {import('./layers/window-call.js').WindowAttention2dOptions} WindowAttention2dOptions
 * @typedef {import('./linear/linear-attention.js').LinearAttentionOptions} LinearAttentionOptions
 * @typedef {import('./linear/backward.js').LinearGiven} LinearGiven
 * @typedef {import('./linear/gated.js').GatedLinearAttentionOptions} GatedLinearAttentionOptions
 * @typedef {import('./linear/ssd.js').SsdOptions} SsdOptions
 */

/**
 * What attention() with the options O gives.
 * @template {AttentionOptions} [O={}]
 * @typedef {import('./attention.js').AttentionResult<O>} AttentionResult
 */

/**
 * What linearAttentionBackward() and gatedLinearAttentionBackward() with the options O give.
 * @template {{ state?: unknown, decay?: unknown }} [O={}]
 * @typedef {import('./linear/backward.js').LinearGradients<O>} LinearGradients
 */

/**
 * What ssdBackward() with the options O gives.
 * @template {{ state?: unknown, d?: unknown }} [O={}]
 * @typedef {import('./linear/backward.js').SsdGradients<O>} SsdGradients
 */

/**
 * What linearAttention(), gatedLinearAttention() and ssd() with the options O give.
 * @template {{ returnState?: boolean }} [O={}]
 * @typedef {import('./linear/linear-attention.js').LinearResult<O>} LinearResult
 */

/**
 * What attentionBackward() with the options O gives.
 * @template {BackwardOptions} [O={}]
 * @typedef {import('./gradients.js').BackwardResult<O>} BackwardResult
 */

/**
 * What attentionWeights() with the options O gives.
 * @template {WeightsOptions} [O={}]
 * @typedef {import('./weights/weights.js').WeightsResultOf<O>} WeightsResult
 */
