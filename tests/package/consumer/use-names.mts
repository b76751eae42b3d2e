// Functions by other people's names. Lines after @ts-expect-error must not compile.
import { load } from 'sdpa';
import type { TensorLike } from 'sdpa';
import { jaxNN } from 'sdpa/jax';
import { onnxOps } from 'sdpa/onnx';
import { torchFunctional } from 'sdpa/torch';

const sdpa = await load();
const q: TensorLike = { data: new Float32Array(12), shape: [2, 2, 3] };
const half = { data: new Uint16Array(12), dims: [2, 2, 3], type: 'float16' } as const;
const mask = { data: [true, false, true, true], shape: [2, 2] };
const tensor = { data: new Float32Array(12), shape: [1, 2, 2, 3] };
type FloatType = 'float32' | 'float16' | 'bfloat16';

const { scaledDotProductAttention } = torchFunctional(sdpa);
const torchType: FloatType = scaledDotProductAttention(half, half, half, { attnMask: q, scale: null }).dtype;
scaledDotProductAttention(q, q, q, { attnMask: mask, dropoutP: 0.1, seed: 3, enableGqa: true, scale: 0.5 });
scaledDotProductAttention(q, q, q, { attnMask: null, isCausal: true });
// @ts-expect-error the mask's name here
scaledDotProductAttention(q, q, q, { mask });
// @ts-expect-error a share
scaledDotProductAttention(q, q, q, { dropoutP: { p: 0.1, seed: 0 } });
// @ts-expect-error no such option of PyTorch's
scaledDotProductAttention(q, q, q, { window: [3, 0] });
// @ts-expect-error the value is missing
scaledDotProductAttention(q, q);

const { dotProductAttention } = jaxNN(sdpa);
const jaxShape: number[] = dotProductAttention(q, q, q, { bias: tensor, mask: null, scale: 1, isCausal: true }).shape;
dotProductAttention(q, q, q, { localWindowSize: 3, keyValueSeqLengths: new Int32Array(2) });
// @ts-expect-error JAX's own spelling
dotProductAttention(q, q, q, { is_causal: true });
// @ts-expect-error a mask is boolean
dotProductAttention(q, q, q, { mask: tensor });
// @ts-expect-error two bounds
dotProductAttention(q, q, q, { localWindowSize: [1, 2, 3] });

const ops = onnxOps(sdpa);
const { Y, present_key, qk_matmul_output } = ops.attention(
  { Q: tensor, K: tensor, V: tensor, attn_mask: mask, past_key: null, nonpad_kv_seqlen: new BigInt64Array(1) },
  { is_causal: 1, scale: 1, softcap: 30, left_window_size: 3n, qk_matmul_output_mode: 2 },
);
const rotated = ops.rotaryEmbedding({ X: tensor, cos_cache: q, sin_cache: q }, { interleaved: 0, num_heads: 2 }).Y;
const turned = ops.msRotaryEmbedding({ input: tensor, position_ids: q, cos_cache: q, sin_cache: q }).output;
const packed = { data: new Float32Array(12), shape: [1, 2, 6] };
const both = { q_num_heads: 2, kv_num_heads: 2 };
const states = ops.linearAttention(
  { query: packed, key: packed, value: packed, past_state: null, decay: packed },
  { q_num_heads: 2, kv_num_heads: 2n, update_rule: 'gated', scale: 0, chunk_size: 64 },
).present_state;
const heads = ops.msMultiHeadAttention(
  { query: tensor, key: tensor, value: tensor },
  { num_heads: 2, unidirectional: 1 },
);
const grouped = ops.msGroupQueryAttention(
  { query: tensor, key: tensor, value: tensor, seqlens_k: [1], total_sequence_length: [2] },
  { num_heads: 2, kv_num_heads: 1, local_window_size: 4, do_rotary: 0 },
);
const outputs: FloatType[] = [
  Y,
  present_key,
  qk_matmul_output,
  rotated,
  turned,
  states,
  heads.output,
  grouped.present_value,
].map(({ dtype }) => dtype);
void [torchType, jaxShape, outputs];

// @ts-expect-error inputs have formal names
ops.attention({ query: tensor, key: tensor, value: tensor });
// @ts-expect-error attributes too
ops.attention({ Q: tensor, K: tensor, V: tensor }, { isCausal: true });
// @ts-expect-error no such mode
ops.attention({ Q: tensor, K: tensor, V: tensor }, { qk_matmul_output_mode: 4 });
// @ts-expect-error tables are needed
ops.rotaryEmbedding({ X: tensor });
// @ts-expect-error the numbers of heads are required
ops.linearAttention({ query: packed, key: packed, value: packed }, { q_num_heads: 2 });
// @ts-expect-error the rule's name here
ops.linearAttention({ query: packed, key: packed, value: packed }, { ...both, update_rule: 'gated-delta' });
// @ts-expect-error positions are needed
ops.msRotaryEmbedding({ input: tensor, cos_cache: q, sin_cache: q });
// @ts-expect-error num_heads is required
ops.msMultiHeadAttention({ query: tensor });
// @ts-expect-error lengths are required
ops.msGroupQueryAttention({ query: tensor }, { num_heads: 2, kv_num_heads: 1 });
const lengths = { seqlens_k: [1], total_sequence_length: [2] };
// @ts-expect-error quantized caches are not supported
ops.msGroupQueryAttention({ query: tensor, ...lengths }, { num_heads: 2, kv_num_heads: 1, k_quant_type: 'PER_TENSOR' });
