// KV caches and positions. Lines after @ts-expect-error must not compile.
import { load } from 'sdpa';
import type { AppendOptions, AttendOptions, KVCache, KVCacheOptions, RopeOptions } from 'sdpa';
import type { SdpaTensor, ShardedAttendOptions, ShardedKVCache, SinusoidalOptions, Tensor, TensorLike } from 'sdpa';

const sdpa = await load();
const q: TensorLike = { data: new Float32Array(12), shape: [2, 2, 3] };
const half = { data: new Uint16Array(12), dims: [2, 2, 3], type: 'float16' } as const;
const ids = new Int32Array(1);
const sizes = { batch: 1, numKvHeads: 2, headDim: 3 };

const kinds: KVCacheOptions[] = [
  sizes,
  { ...sizes, headDimV: 5, dtype: 'int8', capacity: 10, fixed: true },
  { ...sizes, dtype: 'float16', window: 8, globalKeys: 2 },
  {
    ...sizes,
    pageSize: 16,
    rope: { base: 1e6, pairing: 'interleaved', rotaryDim: 2, scaling: { type: 'linear', factor: 2 } },
  },
];
{
  using cache: KVCache = sdpa.createKVCache(kinds[0]);
  cache.append(q, half);
  cache.append(q, q, { lengths: [1], layout: 'blhd' });
  const lse: Tensor = cache.attend(q, { returnLse: true, window: [3, 0], dropout: { p: 0.5, seed: 1 } }).lse;
  const resident: SdpaTensor = cache.attend(half, { out: sdpa.tensor([2, 2, 3]), causal: false }).out;
  cache.truncate(1);
  cache.truncate(ids);
  cache.evict([0]);
  cache.reset();
  const numbers: number[] = [cache.length, cache.capacity, cache.byteLength, cache.lengths[0]];
  const gone: boolean = cache.disposed;
  void [lse, resident, numbers, gone];

  const rows: AppendOptions = { lengths: [1], layout: 'blhd' };
  const decode: AttendOptions = { window: [3, 0] };
  cache.append(q, q, rows);
  cache.attend(q, decode);

  // @ts-expect-error the cache knows where its tokens stand
  cache.attend(q, { window: [3, 0], align: 'lower-right' });
  // @ts-expect-error and how many there are
  cache.attend(q, { returnLse: true, kvLengths: ids });
  // @ts-expect-error keys are the cache's own
  cache.attend(q, q, q);
  // @ts-expect-error values are missing
  cache.append(q);
  // @ts-expect-error lengths are one for each batch row
  cache.append(q, q, { lengths: 1 });
  // @ts-expect-error positions come in an array
  cache.evict(0);
  // @ts-expect-error appending makes it longer
  cache.length = 0;
  // @ts-expect-error lse was not asked for
  const absent: Tensor = cache.attend(q).lse;
  void absent;
}
{
  using sharded: ShardedKVCache = sdpa.createShardedKVCache(kinds[3]);
  await sharded.ready;
  await sharded.append(q, half, { lengths: ids });
  const options: ShardedAttendOptions = { signal: undefined, window: [3, 0], dropout: { p: 0.5, seed: 1 } };
  const out: Tensor = (await sharded.attend(q, options)).out;
  const lse: Tensor = (
    await sharded.attend(q, { returnLse: true, onProgress: ({ done, total }) => void (done / total) })
  ).lse;
  const resident: SdpaTensor = (await sharded.attend(half, { out: sdpa.tensor([2, 2, 3]) })).out;
  await sharded.truncate([1]);
  await sharded.evict(ids);
  await sharded.reset();
  const other: ShardedKVCache = await sharded.fork();
  other.dispose();
  const numbers: number[] = [sharded.length, sharded.capacity, sharded.byteLength, sharded.shards, sharded.threads];
  const lengths: Int32Array = sharded.lengths;
  void [out, lse, resident, numbers, lengths, sharded.disposed];

  // @ts-expect-error a promise has no out
  void sharded.attend(q).out;
  // @ts-expect-error the cache knows where its tokens stand
  await sharded.attend(q, { queryOffset: 1 });
  // @ts-expect-error values are missing
  await sharded.append(q);
  // @ts-expect-error progress is told to a function
  await sharded.attend(q, { onProgress: true });
}
// @ts-expect-error as many shards as threads
sdpa.createShardedKVCache({ ...sizes, shards: 2 });
const fork: KVCache = sdpa.createKVCache(kinds[3]).fork();
fork.dispose();

// @ts-expect-error the head size is missing
sdpa.createKVCache({ batch: 1, numKvHeads: 2 });
// @ts-expect-error no such storage
sdpa.createKVCache({ ...sizes, dtype: 'int4' });
// @ts-expect-error a cache's window is one number
sdpa.createKVCache({ ...sizes, window: [8, 0] });
// @ts-expect-error unknown option
sdpa.createKVCache({ ...sizes, numHeads: 2 });
// @ts-expect-error positions are the cache's own
sdpa.createKVCache({ ...sizes, rope: { offset: 3 } });

const turns: RopeOptions[] = [
  { base: 500000, pairing: 'half', rotaryDim: 2, positions: ids, inverse: true, layout: 'blhd' },
  { offset: 7, scaling: { type: 'ntk', factor: 4 }, positions: undefined },
  { offset: ids, scaling: { type: 'yarn', factor: 4, originalMaxPosition: 4096, betaFast: 32, truncate: false } },
  { positions: { data: ids, shape: [1, 1] }, scaling: null },
  { scaling: { type: 'llama3', factor: 8, lowFreqFactor: 1, highFreqFactor: 4, originalMaxPosition: 8192 } },
];
const turned: number[] = sdpa.rope(half, turns[0]).shape;
const inPlace: SdpaTensor = sdpa.rope(q, { out: sdpa.tensor([2, 2, 3]) });
const table: SinusoidalOptions = { order: 'sines-first', base: 100, offset: 2 };
const embedding: Tensor = sdpa.sinusoidal(4, 8, table);
const slopes: Float32Array = sdpa.alibiSlopes(8);
void [turned, inPlace, embedding, slopes];

// @ts-expect-error no such pairing
sdpa.rope(q, { pairing: 'neox' });
// @ts-expect-error YaRN has to know the trained length
sdpa.rope(q, { scaling: { type: 'yarn', factor: 4 } });
// @ts-expect-error no such scaling
sdpa.rope(q, { scaling: { type: 'dynamic', factor: 4 } });
// @ts-expect-error positions are an Int32Array
sdpa.rope(q, { positions: [0, 1] });
// @ts-expect-error a tensor comes first
sdpa.rope({ base: 100 });
// @ts-expect-error no such order
sdpa.sinusoidal(4, 8, { order: 'cosines-first' });
// @ts-expect-error the width is missing
sdpa.sinusoidal(4);
// @ts-expect-error heads are a number
sdpa.alibiSlopes([8]);
