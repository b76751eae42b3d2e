// The attention frame: what one call hands to the module, an array of float64 in wasm memory. Numbers only, so that one
// pointer crosses the border, and doubles, so that a pointer above 2 GiB keeps its sign.

/** Names of the frame's fields in order. The module says the same by frameFields(), and loading compares the two. */
export const frameFields = /** @type {const} */ ([
  // Pointers; 0 = absent.
  'query',
  'key',
  'value',
  'out',
  'lse',
  'scores',
  'mask',
  'bias',
  'query_lengths',
  'kv_lengths',
  'query_offsets',
  'workspace',
  'workspace_bytes',
  // Storage types: see dtypeCodes.
  'query_dtype',
  'key_dtype',
  'value_dtype',
  'bias_dtype',
  // Sizes.
  'batch',
  'num_heads',
  'num_kv_heads',
  'seqlen_q',
  'seqlen_kv',
  'head_dim',
  'head_dim_v',
  'layout',
  'mask_batch',
  'mask_heads',
  'mask_rows',
  'mask_columns',
  'bias_batch',
  'bias_heads',
  'bias_rows',
  'bias_columns',
  // Options.
  'scale',
  'softcap',
  'causal',
  'window_left',
  'window_right',
  'align',
  'query_offset',
  'scores_stage',
  // More pointers; 0 = absent.
  'alibi_slopes',
  'sinks',
  'query_segments',
  'key_segments',
  'query_starts',
  'key_starts',
  'block_tiles',
  'block_bits',
  'key_scales',
  'value_scales',
  'pages',
  'held_from',
  // More options; 0 = off.
  'alibi_batch',
  'sink_batch',
  'sequences',
  'block_batch',
  'block_heads',
  'block_rows',
  'chunk',
  'global_keys',
  'dropout',
  'seed_low',
  'seed_high',
  // Where batch entry 0, query head 0 and query row 0 stand in the call that was asked for.
  'cell_batch',
  'cell_head',
  'cell_row',
  // Where rows of key and value lie, in elements; 0 = contiguous in the layout's order.
  'key_batch_stride',
  'key_head_stride',
  'key_row_stride',
  'value_batch_stride',
  'value_head_stride',
  'value_row_stride',
  'page_size',
  'pages_per_row',
  'ring_begin',
  'ring_size',
  // What is wanted of the weights, and where it goes: see web/weights/.
  'weights_kind',
  'weights_heads',
  'weights_num_heads',
  'weights_picks',
  'weights_num_picks',
  'top_k',
  'row_cells',
  'num_row_cells',
  'column_cells',
  'num_column_cells',
  'weights_values',
  'weights_indices',
  'weights_entropy',
  'weights_sums',
  // Gradients: see web/gradients.js. The first two are inputs.
  'd_out',
  'd_lse',
  'd_query',
  'd_key',
  'd_value',
  'd_bias',
  'd_scale',
  'd_sinks',
  'd_alibi',
  // Windows of an image: see web/layers/window-attention-2d.js.
  'window_origins',
  'num_windows',
  'image_width',
  'window_height',
  'window_width',
]);

/** Fields that every call fills in; those behind them are 0 in most calls. */
export const commonFields = /* @__PURE__ */ frameFields.indexOf('alibi_slopes');

/** Bytes of one frame. */
export const frameBytes = frameFields.length * 8;

/**
 * Index of each field.
 * @type {Readonly<Record<(typeof frameFields)[number], number>>}
 */
export const field = /** @type {any} */ (
  /* @__PURE__ */ Object.freeze(/* @__PURE__ */ Object.fromEntries(frameFields.map((name, index) => [name, index])))
);

/** Codes of the storage types that a frame's *_dtype fields hold; int8 is one of caches alone. */
export const dtypeCodes = /** @type {const} */ ({ float32: 0, float16: 1, bfloat16: 2, int8: 3 });

/** Codes of the `align` option; 0 = not given, 3 = the offset itself is given. */
export const alignCodes = /** @type {const} */ ({ none: 0, 'lower-right': 1, 'upper-left': 2, offset: 3 });

/** Codes of the `scores` option; 0 = not asked for. */
export const scoresCodes = /** @type {const} */ ({ scaled: 1, capped: 2, biased: 3, weights: 4 });

/** Codes of the `layout` option. */
export const layoutCodes = /** @type {const} */ ({ bhld: 0, blhd: 1 });

/** Bytes of one element of each storage type. */
export const dtypeBytes = /** @type {const} */ ({ float32: 4, float16: 2, bfloat16: 2, bool: 1 });
