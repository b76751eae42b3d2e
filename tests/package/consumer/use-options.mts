// Options of attention() and block masks. Lines after @ts-expect-error must not compile.
import { load, masks } from 'sdpa';
import type {
  AttentionAsyncOptions,
  AttentionOptions,
  AttentionResult,
  BlockMask,
  MergePart,
  Tensor,
  TensorLike,
} from 'sdpa';

const sdpa = await load();
const q: TensorLike = { data: new Float32Array(12), shape: [2, 2, 3] };
const ids = new Int32Array(2);
const perHead = { data: new Float32Array(2), shape: [1, 2] } as const;

const all: AttentionOptions = {
  scale: 1,
  softcap: 30,
  mask: { data: new Uint8Array(4), shape: [2, 2] },
  bias: { data: new Uint16Array(4), shape: [2, 2], dtype: 'bfloat16' },
  causal: true,
  window: [2, Infinity],
  chunk: 4,
  globalKeys: 1,
  alibiSlopes: sdpa.alibiSlopes(2),
  align: 'upper-left',
  queryLengths: ids,
  kvLengths: ids,
  segmentIds: { query: ids, key: { data: ids, shape: [1, 2] } },
  blockMask: masks.causal(2),
  sinks: [0, -Infinity],
  smoothSoftmax: true,
  dropout: { p: 0.1, seed: 2 ** 40 },
  returnLse: true,
  scores: 'weights',
  layout: 'blhd',
  out: new Float32Array(12),
};
const perRow: AttentionOptions = { queryOffset: ids, alibiSlopes: perHead, sinks: perHead };
const packed: AttentionOptions = { queryOffset: 3, cuSeqlens: { query: ids, key: ids } };
const result: AttentionResult = sdpa.attention(q, q, q, all);
const later: AttentionAsyncOptions = { ...packed, onProgress: ({ done, total }) => console.log(done / total) };
void [result, perRow, later];

// @ts-expect-error a chunk is one number
sdpa.attention(q, q, q, { chunk: [4, 4] });
// @ts-expect-error a number of keys
sdpa.attention(q, q, q, { globalKeys: true });
// @ts-expect-error slopes of each head
sdpa.attention(q, q, q, { alibiSlopes: 0.5 });
// @ts-expect-error slopes are float32
sdpa.attention(q, q, q, { alibiSlopes: new Float64Array(2) });
// @ts-expect-error offsets are an Int32Array
sdpa.attention(q, q, q, { queryOffset: [0, 1] });
// @ts-expect-error both sides have ids
sdpa.attention(q, q, q, { segmentIds: { query: ids } });
// @ts-expect-error ids are int32
sdpa.attention(q, q, q, { segmentIds: { query: [0, 1], key: [0, 1] } });
// @ts-expect-error both sides have starts
sdpa.attention(q, q, q, { cuSeqlens: ids });
// @ts-expect-error starts are an Int32Array
sdpa.attention(q, q, q, { cuSeqlens: { query: [0, 2], key: [0, 2] } });
// @ts-expect-error a tensor of booleans is no block mask: masks.fromDense makes one of it
sdpa.attention(q, q, q, { blockMask: { data: new Uint8Array(4), shape: [2, 2] } });
// @ts-expect-error sinks are numbers
sdpa.attention(q, q, q, { sinks: true });
// @ts-expect-error smoothSoftmax has no value
sdpa.attention(q, q, q, { smoothSoftmax: 1 });
// @ts-expect-error dropout is told its seed
sdpa.attention(q, q, q, { dropout: { p: 0.1 } });
// @ts-expect-error a share alone
sdpa.attention(q, q, q, { dropout: 0.1 });
// @ts-expect-error no such stage
sdpa.attention(q, q, q, { scores: 'masked' });

const made: BlockMask[] = [
  masks.causal(64),
  masks.causal(64, 128, { align: 'lower-right' }),
  masks.window(64, 128, [3, Infinity], { queryOffset: ids }),
  masks.chunk(64, 64, 16),
  masks.prefix(64, 64, ids),
  masks.documents(ids),
  masks.documents({ query: ids, key: ids }),
  masks.documents({ lengths: [30, 34] }),
  masks.longformer(64, { window: 2, globalTokens: [0], causal: true }),
  masks.bigbird(64, { blockSize: 16, window: 3, randomBlocks: 1, globalBlocks: 1, seed: 7, heads: 2 }),
  masks.bigbird(64, { extraTokens: 1, globalTokens: [5] }),
  masks.bigbird(64),
  masks.dilated(64, 64, [3, Infinity], 4),
  masks.longformer(64, { window: 2, dilation: [1, 4] }),
  masks.neighborhood(64, { kernelSize: 7, dilation: 2 }),
  masks.neighborhood([8, 8], { kernelSize: [3, 5], causal: [true, false] }),
  masks.swin({ height: 14, width: 14, windowSize: 7, shift: 3 }),
  masks.fromDense({ data: [true, false], shape: [1, 2] }),
];
const both: BlockMask = masks.and(made[0], masks.or(made[3], masks.not(made[0])), sdpa.masks.causal(64));
const { tiles, full, partial, skipped, cells, density } = masks.stats(both);
const numbers: number[] = [
  tiles,
  full,
  partial,
  skipped,
  cells,
  density,
  both.rows,
  both.columns,
  both.batch,
  both.heads,
];
const sees: boolean = both.allows(3, 2) || both.allows(3, 2, 0, 0);
const dense: Uint8Array = masks.toDense(both).data;
void [numbers, sees, dense];

// @ts-expect-error the bounds come before the position
masks.window(64, 128, { align: 'lower-right' });
// @ts-expect-error a position is an object
masks.causal(64, 128, 'lower-right');
// @ts-expect-error no such alignment
masks.causal(64, 128, { align: 'right' });
// @ts-expect-error a plain array could be ids or lengths
masks.documents([30, 34]);
// @ts-expect-error the keys' ids are missing
masks.documents({ query: ids });
// @ts-expect-error a window is needed
masks.longformer(64, { globalTokens: [0] });
// @ts-expect-error unknown option
masks.bigbird(64, { blocks: 2 });
// @ts-expect-error a size of a neighbourhood is needed
masks.neighborhood(64, { dilation: 2 });
// @ts-expect-error the dilation is missing
masks.dilated(64, 64, [1, 1]);
// @ts-expect-error the width is missing
masks.swin({ height: 14, windowSize: 7 });
// @ts-expect-error a mask is boolean
masks.fromDense({ data: new Float32Array(4), shape: [2, 2] });
// @ts-expect-error a tensor is no block mask
masks.not({ data: new Uint8Array(4), shape: [2, 2] });
// @ts-expect-error masks are made by masks.*
new BlockMask();

const part: MergePart = sdpa.attention(q, q, q, { returnLse: true });
const whole: { out: Tensor; lse: Tensor } = sdpa.merge([part, part], { layout: 'blhd' });
void whole;
// @ts-expect-error lse was not asked for
sdpa.merge([sdpa.attention(q, q, q)]);
// @ts-expect-error parts come in an array
sdpa.merge(part, part);
// @ts-expect-error unknown option
sdpa.merge([part], { causal: true });
