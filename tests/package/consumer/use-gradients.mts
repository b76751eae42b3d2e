// Weights and gradients. Lines after @ts-expect-error must not compile.
import { load } from 'sdpa';
import type {
  BackwardAsyncOptions,
  BackwardGiven,
  BackwardOptions,
  BackwardResult,
  CheckOptions,
  GradientCheck,
} from 'sdpa';
import type { Tensor, TensorLike, WeightsAsyncOptions, WeightsOptions, WeightsResult } from 'sdpa';

const sdpa = await load();
const q: TensorLike = { data: new Float32Array(12), shape: [2, 2, 3] };
const { out, lse } = sdpa.attention(q, q, q, { returnLse: true });

const wanted: WeightsOptions = {
  causal: true,
  sinks: [0, 1],
  lse,
  heads: [0],
  rows: [0, 1],
  columns: new Int32Array(1),
  columnSums: true,
  topK: 2,
  stats: true,
  pool: { rows: 2, columns: 1, kind: 'max' },
};
const asynchronous: WeightsAsyncOptions = { ...wanted, signal: undefined };
const perhaps: WeightsResult = sdpa.attentionWeights(q, q, wanted);
const asked = sdpa.attentionWeights(q, q, {
  rows: [0],
  topK: 2,
  stats: true,
  columnSums: true,
  pool: { rows: 1, columns: 1 },
});
const floats: Float32Array[] = [
  asked.rows.data,
  asked.topK.values.data,
  asked.stats.entropy.data,
  asked.stats.maxWeight.data,
  asked.columnSums.data,
  asked.pool.data,
];
const integers: Int32Array[] = [asked.topK.indices.data, asked.stats.maxIndex.data];
void [perhaps, floats, integers, asynchronous];

// @ts-expect-error columns were not asked for
void asked.columns.data;
// @ts-expect-error perhaps not asked for
void perhaps.rows.data;
// @ts-expect-error there is no value: (query, key, options)
sdpa.attentionWeights(q, q, q);
// @ts-expect-error nothing is asked for without options
sdpa.attentionWeights(q, q);
// @ts-expect-error rows are a list
sdpa.attentionWeights(q, q, { rows: 3 });
// @ts-expect-error weights are those before dropout
sdpa.attentionWeights(q, q, { rows: [0], dropout: { p: 0.1, seed: 0 } });
// @ts-expect-error that is attention's option
sdpa.attentionWeights(q, q, { rows: [0], returnLse: true });
// @ts-expect-error a pool has two sizes
sdpa.attentionWeights(q, q, { pool: 512 });
// @ts-expect-error no such pool
sdpa.attentionWeights(q, q, { pool: { rows: 1, columns: 1, kind: 'sum' } });

// What looks like a signal is one.
const signal = { aborted: false, reason: undefined, addEventListener() {}, removeEventListener() {} };
const later = await sdpa.attentionWeightsAsync(q, q, {
  stats: true,
  signal,
  onProgress: ({ done, total }) => console.log(done / total),
});
void later.stats.entropy;
// @ts-expect-error rows were not asked for
void later.rows.data;
// @ts-expect-error a promise
void sdpa.attentionWeightsAsync(q, q, { stats: true }).stats;

const given: BackwardGiven = { out, lse, dOut: q };
const likewise: BackwardOptions = { causal: true, dropout: { p: 0.1, seed: 0 }, returnLse: true };
const gradients: BackwardResult = sdpa.attentionBackward(q, q, q, given, { causal: true });
const tensors: Tensor[] = [gradients.dQuery, gradients.dKey, gradients.dValue];
const dScale: number = gradients.dScale;
const bias = { data: new Float32Array(4), shape: [2, 2] };
const more = sdpa.attentionBackward(q, q, q, { ...given, dLse: lse }, { bias, sinks: [0, 1], alibiSlopes: [1, 1] });
tensors.push(more.dBias, more.dSinks, more.dAlibiSlopes);
void [tensors, dScale, sdpa.attentionBackward(q, q, q, given, likewise).dQuery];

const onWorkers: BackwardAsyncOptions = { ...likewise, signal };
const afterwards: BackwardResult = await sdpa.attentionBackwardAsync(q, q, q, given, onWorkers);
void afterwards;
// @ts-expect-error a promise
void sdpa.attentionBackwardAsync(q, q, q, given).dQuery;
// @ts-expect-error there was no bias
tensors.push(gradients.dBias);
// @ts-expect-error a number
void gradients.dScale.data;
// @ts-expect-error lse is missing
sdpa.attentionBackward(q, q, q, { out, dOut: q });
// @ts-expect-error what attention gave comes before the options
sdpa.attentionBackward(q, q, q, { causal: true });
// @ts-expect-error scores have no gradients
sdpa.attentionBackward(q, q, q, given, { causal: true, scores: 'weights' });
// @ts-expect-error results are new arrays
sdpa.attentionBackward(q, q, q, given, { causal: true, out: new Float32Array(12) });

const options: CheckOptions = { causal: true, samples: 5, seed: 1 };
const check: GradientCheck = sdpa.gradientCheck(q, q, q, options);
const passed: boolean = check.passed;
const errors: number[] = [check.query.maxError, check.key.meanError, check.value.checked, check.scale.maxError];
void [passed, errors, sdpa.gradientCheck(q, q, q).passed];
// @ts-expect-error there may be no bias
void check.bias.maxError;
// @ts-expect-error unknown option
sdpa.gradientCheck(q, q, q, { tolerance: 1 });
