// MultiHeadAttention and GroupQueryAttention of com.microsoft in float64, slow and plain: every element is looked up where the
// operator's documentation says it lies. Facts: docs/ContribOperators.md of microsoft/onnxruntime.
import { roundTo } from './half-values.mjs';

/** Tensors are `{ shape, values, dtype }`. Returns output, present_key, present_value and qk as `{ shape, values }`. */
export function referenceMultiHead(inputs, attributes) {
  const { query, key, value } = inputs;
  const heads = attributes.num_heads;
  const dtype = query.dtype;

  // 1. Where query, new keys and new values lie.
  const headsFirst = key?.shape.length === 4;
  const parts = key ? (value ? 1 : 2) : 3;
  const q = parts === 3 ? packed(query, 3, 0) : inLine(query, heads);
  const k =
    parts === 3 ? packed(query, 3, 1) : parts === 2 ? packed(key, 2, 0) : headsFirst ? direct(key) : inLine(key, heads);
  const v =
    parts === 3
      ? packed(query, 3, 2)
      : parts === 2
        ? packed(key, 2, 1)
        : headsFirst
          ? direct(value)
          : inLine(value, heads);
  const { batch, length: rows, size } = q;
  const fresh = k.length;

  // 2. The projections' bias. Keys and values are stored in their type.
  const bias = (part, h, d, width) => (inputs.bias ? inputs.bias.values[part * heads * size + h * width + d] : 0);
  const queryAt = (b, h, i, d) => Math.fround(q.at(b, h, i, d) + bias(0, h, d, size));
  const stored = (x) => roundTo(dtype, Math.fround(x));
  const newKey = (b, h, j, d) => (headsFirst ? k.at(b, h, j, d) : stored(k.at(b, h, j, d) + bias(1, h, d, size)));
  const newValue = (b, h, j, d) => (headsFirst ? v.at(b, h, j, d) : stored(v.at(b, h, j, d) + bias(2, h, d, v.size)));

  // 3. The past, of which each beam sees the rows of others.
  const past = inputs.past_key && { key: direct(inputs.past_key), value: direct(inputs.past_value) };
  const before = past ? (inputs.past_sequence_length?.values[0] ?? past.key.length) : 0;
  const beams = inputs.cache_indirection;
  const origin = (b, j) => {
    if (!beams) return b;
    const [, width, lines] = beams.shape;
    return Math.floor(b / width) * width + beams.values[b * lines + j];
  };
  const keyAt = (b, h, j, d) => (j < before ? past.key.at(origin(b, j), h, j, d) : newKey(b, h, j - before, d));
  const valueAt = (b, h, j, d) => (j < before ? past.value.at(origin(b, j), h, j, d) : newValue(b, h, j - before, d));
  const total = before + fresh;

  // 4. Scores, and what is added to them.
  const scale = attributes.scale || 1 / Math.sqrt(size);
  const masked = attributes.mask_filter_value ?? -10000;
  const score = (b, h, i, j) => {
    if (attributes.unidirectional && i < rows - 1 && j > i + before) return -Infinity;
    let dot = 0;
    for (let d = 0; d < size; ++d) dot += queryAt(b, h, i, d) * keyAt(b, h, j, d);
    const shown = isShown(inputs.key_padding_mask, batch, rows, before, total, b, i, j);
    return scale * dot + biasAt(inputs.attention_bias, b, h, i, j) + (shown ? 0 : masked);
  };

  const { output, raw } = attend({ batch, heads, rows, total, size: v.size }, score, valueAt);
  const capacity = inputs.past_sequence_length && past ? past.key.length : total;
  const present = (old, added, width) =>
    fill([batch, heads, capacity, width], (b, h, j, d) => {
      if (j >= before && j < total) return added(b, h, j - before, d);
      return old.at(b, h, j, d);
    });
  return {
    output,
    present_key: present(past?.key, newKey, size),
    present_value: present(past?.value, newValue, v.size),
    qk: raw,
  };
}

/** Returns output, present_key, present_value and output_qk. */
export function referenceGroupQuery(inputs, attributes) {
  const { query, key, value } = inputs;
  const { num_heads: heads, kv_num_heads: kvHeads } = attributes;
  const dtype = query.dtype;

  // 1. Where query, new keys and new values lie.
  const all = heads + 2 * kvHeads;
  const q = key ? inLine(query, heads) : inLine(query, all, 0, heads);
  const k = key ? inLine(key, kvHeads) : inLine(query, all, heads, kvHeads);
  const v = key ? inLine(value, kvHeads) : inLine(query, all, heads + kvHeads, kvHeads);
  const { batch, length: rows, size } = q;

  // 2. Lengths and positions.
  const total = inputs.total_sequence_length.values[0];
  const lengths = Array.from(inputs.seqlens_k.values, (last) => last + 1);
  const first = rows === total;
  const offset = (b) => (first ? 0 : lengths[b] - rows);
  const held = inputs.past_key?.shape[2] ?? 0;
  const before = (b) => (k.length === 0 ? lengths[b] : offset(b));
  const capacity = Math.max(total, held);

  // 3. Rotation of query and new keys.
  const position = (b, i) => {
    const ids = inputs.position_ids;
    if (ids) return first ? ids.values[0] + i : ids.values[b * ids.shape[1] + i];
    return offset(b) + i;
  };
  const rotate = (rowsOf, b, h, i, d) => {
    const pairs = attributes.do_rotary ? inputs.cos_cache.shape[1] : 0;
    if (d >= 2 * pairs) return rowsOf.at(b, h, i, d);
    const interleaved = attributes.rotary_interleaved;
    const pair = interleaved ? d >> 1 : d % pairs;
    const isSecond = interleaved ? d % 2 === 1 : d >= pairs;
    const c = inputs.cos_cache.values[position(b, i) * pairs + pair];
    const s = inputs.sin_cache.values[position(b, i) * pairs + pair];
    const one = rowsOf.at(b, h, i, interleaved ? 2 * pair : pair);
    const two = rowsOf.at(b, h, i, interleaved ? 2 * pair + 1 : pair + pairs);
    return Math.fround(isSecond ? one * s + two * c : one * c - two * s);
  };

  // 4. The cache: past, new rows, zeros.
  const present = (past, added) =>
    fill([batch, kvHeads, capacity, size], (b, h, j, d) => {
      if (j < before(b)) return direct(past).at(b, h, j, d);
      return j < before(b) + k.length ? added(b, h, j - before(b), d) : 0;
    });
  const presentKey = present(inputs.past_key, (b, h, j, d) => roundTo(dtype, rotate(k, b, h, j, d)));
  const presentValue = present(inputs.past_value, v.at);

  // 5. Scores: scale, softcap, bias; and who is seen.
  const group = heads / kvHeads;
  const window = attributes.local_window_size ?? -1;
  const isSeen = (b, i, j) => {
    const p = i + offset(b);
    return j < lengths[b] && (attributes.causal === 0 || j <= p) && (window === -1 || j > p - window);
  };
  const scale = attributes.scale || 1 / Math.sqrt(size);
  const cap = attributes.softcap ?? 0;
  const score = (b, h, i, j) => {
    if (!isSeen(b, i, j)) return -Infinity;
    let dot = 0;
    for (let d = 0; d < size; ++d) dot += rotate(q, b, h, i, d) * direct(presentKey).at(b, Math.floor(h / group), j, d);
    const capped = cap > 0 ? cap * Math.tanh((scale * dot) / cap) : scale * dot;
    return capped + biasAt(inputs.attention_bias, b, h, i, j);
  };

  // 6. One more logit in the denominator.
  const sink = (h) => {
    if (inputs.head_sink) return inputs.head_sink.values[h];
    return attributes.smooth_softmax === 1 ? 0 : -Infinity;
  };
  const valueAt = (b, h, j, d) => direct(presentValue).at(b, Math.floor(h / group), j, d);
  const { output, raw, weights } = attend({ batch, heads, rows, total, size }, score, valueAt, sink);
  for (let n = 0; n < raw.values.length; ++n) {
    const [j, i, b] = [n % total, Math.floor(n / total) % rows, Math.floor(n / (total * rows * heads))];
    if (!isSeen(b, i, j)) raw.values[n] = 0;
  }
  return {
    output,
    present_key: presentKey,
    present_value: presentValue,
    output_qk: attributes.qk_output === 2 ? weights : raw,
  };
}

/** Softmax of the scores and the sum of values: output (B, L, H*Dv), scores and weights (B, H, L, T). */
function attend({ batch, heads, rows, total, size }, score, valueAt, sink = () => -Infinity) {
  const raw = fill([batch, heads, rows, total], score);
  const weights = { shape: raw.shape, values: new Float64Array(raw.values.length) };
  for (let line = 0; line < batch * heads * rows; ++line) {
    const scores = raw.values.subarray(line * total, (line + 1) * total);
    const extra = sink(Math.floor(line / rows) % heads);
    const max = Math.max(extra, ...scores);
    const exps = Array.from(scores, (s) => (s === -Infinity ? 0 : Math.exp(s - max)));
    const sum = exps.reduce((a, x) => a + x, extra === -Infinity ? 0 : Math.exp(extra - max));
    exps.forEach((e, j) => (weights.values[line * total + j] = sum > 0 ? e / sum : 0));
  }
  const output = fill([batch, rows, heads, size], (b, i, h, d) => {
    let sum = 0;
    for (let j = 0; j < total; ++j) {
      const weight = direct(weights).at(b, h, i, j);
      if (weight !== 0) sum += weight * valueAt(b, h, j, d);
    }
    return sum;
  });
  return { output: { shape: [batch, rows, heads * size], values: output.values }, raw, weights };
}

/** (B, H, L, D) */
function direct({ shape: [batch, heads, length, size], values }) {
  return { batch, heads, length, size, at: (b, h, i, d) => values[((b * heads + h) * length + i) * size + d] };
}

/** `count` heads from `first` on of (B, L, all*D) */
function inLine({ shape: [batch, length, width], values }, all, first = 0, count = all) {
  const size = width / all;
  return {
    batch,
    heads: count,
    length,
    size,
    at: (b, h, i, d) => values[(b * length + i) * width + (first + h) * size + d],
  };
}

/** One part of (B, L, H, parts, D) */
function packed({ shape: [batch, length, heads, , size], values }, parts, part) {
  const at = (b, h, i, d) => values[(((b * length + i) * heads + h) * parts + part) * size + d];
  return { batch, heads, length, size, at };
}

function biasAt(bias, b, h, i, j) {
  if (!bias) return 0;
  const [batch, heads, rows, total] = bias.shape;
  return bias.values[(((batch === 1 ? 0 : b) * heads + (heads === 1 ? 0 : h)) * rows + i) * total + j];
}

function isShown(mask, batch, rows, before, total, b, i, j) {
  if (!mask) return true;
  const { shape, values } = mask;
  if (shape.length === 1) return j < values[b];
  if (shape.length === 3) return values[(b * rows + i) * total + j] > 0;
  if (shape[1] === total) return values[b * total + j] > 0;
  if (shape[1] === 1) return true;
  return j < before || values[b * shape[1] + j - before] > 0;
}

function fill(shape, make) {
  const values = new Float64Array(shape.reduce((a, n) => a * n, 1));
  let at = 0;
  for (let b = 0; b < shape[0]; ++b)
    for (let h = 0; h < shape[1]; ++h)
      for (let i = 0; i < shape[2]; ++i) for (let d = 0; d < shape[3]; ++d) values[at++] = make(b, h, i, d);
  return { shape, values };
}
