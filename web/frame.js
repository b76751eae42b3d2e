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
]);

/** Bytes of one frame. */
export const frameBytes = frameFields.length * 8;

/**
 * Index of each field.
 * @type {Readonly<Record<(typeof frameFields)[number], number>>}
 */
export const field = /** @type {any} */ (
  /* @__PURE__ */ Object.freeze(/* @__PURE__ */ Object.fromEntries(frameFields.map((name, index) => [name, index])))
);

/** Codes of the storage types that a frame's *_dtype fields hold. */
export const dtypeCodes = /** @type {const} */ ({ float32: 0, float16: 1, bfloat16: 2 });

/** Codes of the `align` option; 0 = not given, 3 = the offset itself is given. */
export const alignCodes = /** @type {const} */ ({ none: 0, 'lower-right': 1, 'upper-left': 2, offset: 3 });

/** Codes of the `scores` option; 0 = not asked for. */
export const scoresCodes = /** @type {const} */ ({ scaled: 1, capped: 2, biased: 3, weights: 4 });

/** Codes of the `layout` option. */
export const layoutCodes = /** @type {const} */ ({ bhld: 0, blhd: 1 });

/** Bytes of one element of each storage type. */
export const dtypeBytes = /** @type {const} */ ({ float32: 4, float16: 2, bfloat16: 2, bool: 1 });
