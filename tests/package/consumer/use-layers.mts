// Multi-head layers. Lines after @ts-expect-error must not compile.
import { load } from 'sdpa';
import { readSafetensors } from 'sdpa/io';
import type {
  ForwardOptions,
  LayerGradients,
  MultiHeadAttention,
  MultiHeadAttentionOptions,
  SdpaTensor,
  Tensor,
  TensorLike,
  WindowAttention2dOptions,
} from 'sdpa';

const sdpa = await load();
const x: TensorLike = { data: new Float32Array(12), shape: [1, 3, 4] };
const weights = readSafetensors(new Uint8Array(8));
const options: MultiHeadAttentionOptions = { numHeads: 2, numKvHeads: 1, weights, prefix: 'h.0', rope: { base: 500 } };
const layer: MultiHeadAttention = sdpa.multiHeadAttention(options);
const cache = sdpa.createKVCache({ batch: 1, numKvHeads: layer.numKvHeads, headDim: layer.headDim });

const keyPadding = { data: new Uint8Array(3), shape: [1, 3] };
const wanted: ForwardOptions = { causal: true, keyPadding, cache, offset: 3, queryLengths: Int32Array.of(3) };
const { out, lse, scores } = layer.forward(x, null, { returnLse: true, scores: 'weights' });
const floats: Float32Array[] = [out.data, lse.data, scores.data, layer.forward(x).out.data];
const resident: SdpaTensor = layer.forward(x, x, { out: sdpa.tensor([1, 3, 4]) }).out;
const perhaps: Tensor | undefined = layer.forward(x, { key: x, value: x }, wanted).lse;
const gradients: LayerGradients = layer.backward(x, undefined, { dOut: out }, { causal: true, keyPadding });
const tensor: Tensor = gradients.dWeights['q_proj.weight'];
layer.setWeights({ ...weights, 'q_proj.weight': tensor });
void [floats, resident, perhaps, layer.weightNames satisfies string[]];
layer.dispose();

// @ts-expect-error numHeads is missing
sdpa.multiHeadAttention({ weights });
// @ts-expect-error no such option
sdpa.multiHeadAttention({ numHeads: 2, weights, heads: 2 });
// @ts-expect-error options are the third argument
layer.forward(x, { causal: true });
// @ts-expect-error the layer has a layout of its own
layer.forward(x, null, { layout: 'blhd' });
// @ts-expect-error a cache has no gradients
layer.backward(x, null, { dOut: out }, { cache });
// @ts-expect-error dOut is missing
layer.backward(x, null, {});

const image: WindowAttention2dOptions = {
  height: 3,
  width: 1,
  windowSize: [2, 1],
  shift: 0,
  relativeBias: x,
  layout: 'blhd',
};
const windows = sdpa.windowAttention2d(x, x, x, { ...image, returnLse: true, similarity: 'cosine', logitScale: [1] });
const seen: Float32Array[] = [windows.out.data, windows.lse.data];
const there: SdpaTensor = sdpa.windowAttention2d(x, x, x, { ...image, out: sdpa.tensor([1, 3, 4]) }).out;
const later: Promise<{ out: Tensor }> = sdpa.windowAttention2dAsync(x, x, x, { ...image, onProgress: () => {} });
void [seen, there, later];
// @ts-expect-error the size of the image is missing
sdpa.windowAttention2d(x, x, x, { windowSize: 2 });
// @ts-expect-error no such similarity
sdpa.windowAttention2d(x, x, x, { ...image, similarity: 'cosines' });
