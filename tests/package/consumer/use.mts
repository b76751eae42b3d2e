// What a user's TypeScript sees. Lines after @ts-expect-error must not compile: the directive itself is an error where they do.
import { AttentionError, chooseVariant, features, load, version } from 'sdpa';
import type { AttentionOptions, AttentionResult, Sdpa, SdpaTensor, Tensor, TensorLike } from 'sdpa';
import { load as loadSlim } from 'sdpa/slim';
import { caches, workers } from 'sdpa/slim/parts';
import type { Part } from 'sdpa/slim';
import { onnxOps } from 'sdpa/onnx';
import { torchFunctional } from 'sdpa/torch';
import { jaxNN } from 'sdpa/jax';
import { readNpy } from 'sdpa/io';

const sdpa: Sdpa = await load({ variant: 'auto', threads: 'auto', maxMemory: 1e9 });
const q: TensorLike = { data: new Float32Array(6), shape: [2, 3] };
const half = { data: new Uint16Array(6), dims: [2, 3], type: 'float16' } as const;
const options: AttentionOptions = {
  causal: true,
  window: [2, Infinity],
  align: 'lower-right',
  kvLengths: new Int32Array([2]),
};

const plain: AttentionResult = sdpa.attention(q, half, q, options);
const data: Float32Array = plain.out.data;
const asked: Tensor = sdpa.attention(q, q, q, { returnLse: true }).lse;
const matrix: Float32Array = sdpa.attention(q, q, q, { scores: 'weights', mask: { data: [true, false], shape: [2] } })
  .scores.data;
// Nothing of the DOM or of Node is in this file's types: a signal is what looks like one.
const controller = {
  signal: { aborted: false, reason: undefined, addEventListener() {}, removeEventListener() {} },
};
const later: AttentionResult = await sdpa.attentionAsync(q, half, q, {
  ...options,
  signal: controller.signal,
  onProgress: ({ done, total }) => console.log(done / total),
});
const laterLse: Tensor = (await sdpa.attentionAsync(q, q, q, { returnLse: true })).lse;
const tensor: SdpaTensor = sdpa.tensor([2, 3], 'bfloat16');
const resident: SdpaTensor = sdpa.attention(tensor, q, q, { out: sdpa.tensor([2, 3]) }).out;
const { held, peak, wasm }: { held: number; peak: number; wasm: number } = sdpa.memory();
const name: 'relaxed' | 'simd' | 'scalar' = chooseVariant(features());
const slim: Sdpa = await loadSlim({ wasm: new Uint8Array(8) });
const parts: readonly Part[] = [caches, workers];
const decoder: Sdpa = await loadSlim({ wasm: new Uint8Array(8), threads: 2, parts });
void decoder;
{
  using scoped = sdpa.tensor([1]);
  scoped.dispose();
}
try {
  sdpa.attention(q, q, q);
} catch (error) {
  if (AttentionError.is(error)) {
    const code: 'type' | 'shape' | string = error.code;
    console.log(code);
    // @ts-expect-error no such code
    if (error.code === 'no-such-code') console.log();
  }
  if (error instanceof AttentionError) console.log(error.needed, error.url, error.cause);
}
const ops = onnxOps(sdpa);
void [ops.attention, ops.rotaryEmbedding, ops.msRotaryEmbedding];
const functional = torchFunctional(sdpa);
const torchShape: number[] = functional.scaledDotProductAttention(q, half, q, { isCausal: true, attnMask: null }).shape;
const jaxType: 'float32' | 'float16' | 'bfloat16' = jaxNN(sdpa).dotProductAttention(q, q, q, {
  mask: { data: [true], shape: [1, 1, 1, 1] },
  localWindowSize: [3, 0],
  querySeqLengths: [2],
}).dtype;
void [torchShape, jaxType];
// @ts-expect-error PyTorch's own spelling
functional.scaledDotProductAttention(q, q, q, { is_causal: true });
void readNpy;
void [later, laterLse, data, asked, matrix, resident, held, peak, wasm, name, slim, version];

// @ts-expect-error an array without a shape is no tensor
sdpa.attention(new Float32Array(6), q, q);
// @ts-expect-error float64 is not taken
sdpa.attention({ data: new Float64Array(6), shape: [2, 3] }, q, q);
// @ts-expect-error unknown option
sdpa.attention(q, q, q, { isCausal: true });
// @ts-expect-error a mask is boolean
sdpa.attention(q, q, q, { mask: { data: new Float32Array(4), shape: [2, 2] } });
// @ts-expect-error a window has two bounds
sdpa.attention(q, q, q, { window: [1] });
// @ts-expect-error no such alignment
sdpa.attention(q, q, q, { align: 'bottom-right' });
// @ts-expect-error lengths are an Int32Array
sdpa.attention(q, q, q, { kvLengths: [1, 2] });
// @ts-expect-error the synchronous call cannot be aborted
sdpa.attention(q, q, q, { signal: controller.signal });
// @ts-expect-error a controller is no signal
void sdpa.attentionAsync(q, q, q, { signal: controller });
// @ts-expect-error an asynchronous call gives a promise
const early: AttentionResult = sdpa.attentionAsync(q, q, q);
void early;
// @ts-expect-error no such build
void load({ variant: 'fast' });
// @ts-expect-error slim needs a binary
void loadSlim();
// @ts-expect-error parts are values, not names
void loadSlim({ wasm: new Uint8Array(8), parts: ['caches'] });
// @ts-expect-error the default entry has all parts
void load({ parts });
// @ts-expect-error the key is missing
sdpa.attention(q, { data: new Float32Array(6) }, q);
// @ts-expect-error lse is only there when it is asked for
const absent: Tensor = sdpa.attention(q, q, q).lse;
void absent;
