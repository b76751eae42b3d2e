// The same package by require(): its CommonJS declarations.
import sdpa = require('sdpa');
import slim = require('sdpa/slim');
import parts = require('sdpa/slim/parts');
import onnx = require('sdpa/onnx');
import torch = require('sdpa/torch');
import jax = require('sdpa/jax');
import io = require('sdpa/io');

async function main(): Promise<Float32Array> {
  const instance: sdpa.Sdpa = await sdpa.load({ variant: 'simd' });
  const q: sdpa.TensorLike = { data: new Float32Array(6), shape: [2, 3] };
  const { out, lse } = instance.attention(q, q, q, { returnLse: true });
  const ops = onnx.onnxOps(instance);
  void [torch.torchFunctional(instance).scaledDotProductAttention, jax.jaxNN(instance).dotProductAttention];
  void [lse.data, ops.attention, io.readNpy, slim.load({ wasm: new Uint8Array(8), parts: [parts.caches] })];
  const cache: sdpa.KVCache = instance.createKVCache({ batch: 1, numKvHeads: 1, headDim: 3 });
  const mask: sdpa.BlockMask = sdpa.masks.causal(2);
  const stats = instance.attentionWeights(q, q, { stats: true, blockMask: mask }).stats.maxIndex.data;
  void [cache.attend(q).out, stats, slim.masks, instance.attentionBackward, instance.gradientCheck(q, q, q).passed];
  // @ts-expect-error no such storage
  instance.createKVCache({ batch: 1, numKvHeads: 1, headDim: 3, dtype: 'int4' });
  // @ts-expect-error unknown option
  instance.attention(q, q, q, { isCausal: true });
  // @ts-expect-error no default export
  void sdpa.default;
  return out.data;
}
void main;
