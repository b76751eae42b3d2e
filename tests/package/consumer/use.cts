// The same package by require(): its CommonJS declarations.
import sdpa = require('sdpa');
import slim = require('sdpa/slim');
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
  void [lse.data, ops.attention, io.readNpy, slim.load];
  // @ts-expect-error unknown option
  instance.attention(q, q, q, { isCausal: true });
  // @ts-expect-error no default export
  void sdpa.default;
  return out.data;
}
void main;
