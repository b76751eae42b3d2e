// Linear attention and state spaces. Lines after @ts-expect-error must not compile.
import { load } from 'sdpa';
import type {
  GatedLinearAttentionOptions,
  LinearAttentionOptions,
  LinearGiven,
  LinearGradients,
  LinearResult,
  SsdGradients,
  SsdOptions,
  Tensor,
  TensorLike,
} from 'sdpa';

const sdpa = await load();
const x: TensorLike = { data: new Float32Array(12), shape: [2, 3, 2] };
const perToken: TensorLike = { data: new Float32Array(6), shape: [2, 3] };
const keyMask = { data: new Uint8Array(3), shape: [3] };

const linear: LinearAttentionOptions = { causal: true, eps: 1e-6, kvLengths: Int32Array.of(3), keyMask };
const perhaps: Tensor | undefined = sdpa.linearAttention(x, x, x, linear).state;
const { out, state } = sdpa.linearAttention(x, x, x, { returnState: true, layout: 'blhd' });
const again: LinearResult<{ returnState: true }> = sdpa.linearAttention(x, x, x, { state, returnState: true });

const gated: GatedLinearAttentionOptions = { rule: 'gated-delta', decay: x, beta: perToken, scale: 1, chunkSize: 64 };
const floats: Float32Array[] = [out.data, again.state.data, sdpa.gatedLinearAttention(x, x, x, gated).out.data];

const options: SsdOptions = { d: [1, 2], state, chunkSize: 8 };
const next: Tensor = sdpa.ssd(x, perToken, new Float32Array(2), x, x, { ...options, returnState: true }).state;
void [perhaps, floats, next];

const given: LinearGiven = { dOut: out };
const { dQuery, dState } = sdpa.linearAttentionBackward(x, x, x, given, { causal: true, state });
const ofGates: LinearGradients<{ decay: TensorLike }> = sdpa.gatedLinearAttentionBackward(x, x, x, given, { decay: x });
const ofSteps: SsdGradients = sdpa.ssdBackward(x, perToken, [1, 2], x, x, { dOut: out, dState: next });
const gradients: Tensor[] = [dQuery, dState, ofGates.dDecay, ofSteps.dA];
void gradients;

// @ts-expect-error the value is missing
sdpa.linearAttention(x, x);
// @ts-expect-error no such option
sdpa.linearAttention(x, x, x, { mask: keyMask });
// @ts-expect-error a mask is boolean
sdpa.linearAttention(x, x, x, { keyMask: perToken });
// @ts-expect-error no such rule
sdpa.gatedLinearAttention(x, x, x, { rule: 'gated_delta' });
// @ts-expect-error a tensor, one for each token
sdpa.gatedLinearAttention(x, x, x, { decay: -0.1 });
// @ts-expect-error c is missing
sdpa.ssd(x, perToken, [1, 2], x);
// @ts-expect-error the scale is that of Mamba
sdpa.ssd(x, perToken, [1, 2], x, x, { scale: 2 });
// @ts-expect-error dOut is missing
sdpa.linearAttentionBackward(x, x, x, {});
// @ts-expect-error a backward call returns no state
sdpa.gatedLinearAttentionBackward(x, x, x, given, { returnState: true });
// @ts-expect-error there was no d
const none: Tensor = sdpa.ssdBackward(x, perToken, [1, 2], x, x, given).dD;
void none;
// @ts-expect-error a state was not asked for
const missing: Tensor = sdpa.linearAttention(x, x, x).state;
void missing;
