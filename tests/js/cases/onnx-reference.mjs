// The operator Attention of ai.onnx (opset 23 to 25) in float64, slow and plain: one pass a step, no cleverness.
// Facts: docs/Operators.md of onnx/onnx for 24, and for 25 the window's definition
// p - left_window_size <= j <= p + right_window_size, p = i + offset.

/**
 * Tensors are `{ shape, values }`, 4-D (batch, heads, length, size) or 3-D (batch, length, heads * size); `attn_mask` has also
 * `dtype` ('bool' or a float type).
 * Returns Y, present_key, present_value and qk_matmul_output as `{ shape, values }`.
 */
export function referenceAttention(inputs, attributes = {}) {
  // 1. Heads first: q (B,Hq,L,D), k (B,Hkv,S,D), v (B,Hkv,S,Dv).
  const flat = inputs.Q.shape.length === 3;
  const q = headsFirst(inputs.Q, attributes.q_num_heads);
  const newKey = headsFirst(inputs.K, attributes.kv_num_heads);
  const newValue = headsFirst(inputs.V, attributes.kv_num_heads);

  // 2. Past before new: k (B,Hkv,T,D), v (B,Hkv,T,Dv), T = P + S.
  const k = inputs.past_key ? concatenate(inputs.past_key, newKey) : newKey;
  const v = inputs.past_value ? concatenate(inputs.past_value, newValue) : newValue;
  const [batch, qHeads, rows, size] = q.shape;
  const [, kvHeads, total, sizeV] = v.shape;

  // 3. Position of query 0, per batch.
  const lengths = inputs.nonpad_kv_seqlen?.values;
  const offset = (b) => {
    if (inputs.past_key) return inputs.past_key.shape[2];
    return lengths ? lengths[b] - rows : 0;
  };

  const scale = attributes.scale ?? 1 / Math.sqrt(size);
  const cap = attributes.softcap ?? 0;
  const left = attributes.left_window_size ?? -1;
  const right = attributes.right_window_size ?? -1;
  const mode = attributes.qk_matmul_output_mode ?? 0;
  const y = { shape: [batch, qHeads, rows, sizeV], values: new Float64Array(batch * qHeads * rows * sizeV) };
  const qk = { shape: [batch, qHeads, rows, total], values: new Float64Array(batch * qHeads * rows * total) };

  for (let b = 0; b < batch; ++b) {
    for (let h = 0; h < qHeads; ++h) {
      const g = Math.floor(h / (qHeads / kvHeads));
      for (let i = 0; i < rows; ++i) {
        const p = i + offset(b);
        const stages = [[], [], [], []];
        for (let j = 0; j < total; ++j) {
          // 4. Scaled score, 5. softcap.
          let dot = 0;
          for (let d = 0; d < size; ++d) dot += at(q, b, h, i, d) * at(k, b, g, j, d);
          stages[0].push(scale * dot);
          stages[1].push(cap > 0 ? cap * Math.tanh((scale * dot) / cap) : scale * dot);

          // 6. Mask: added where float, chosen where boolean; what lies behind its end is masked.
          const bias = maskAt(inputs.attn_mask, b, h, i, j);
          const seen =
            bias !== -Infinity &&
            (!attributes.is_causal || j <= p) &&
            (left < 0 || j >= p - left) &&
            (right < 0 || j <= p + right) &&
            (!lengths || j < lengths[b]);
          stages[2].push(seen ? stages[1][j] + bias : -Infinity);
        }
        // 7. Softmax over what is left; nothing left gives zeros.
        const max = Math.max(...stages[2]);
        const exps = stages[2].map((s) => (s === -Infinity ? 0 : Math.exp(s - max)));
        const sum = exps.reduce((a, x) => a + x, 0);
        stages[3] = exps.map((e) => (max === -Infinity ? 0 : e / sum));

        // 8. Weighted sum; a key that takes no part is not read.
        for (let j = 0; j < total; ++j) {
          qk.values[index(qk.shape, b, h, i, j)] = stages[mode][j];
          if (stages[2][j] === -Infinity) continue;
          for (let d = 0; d < sizeV; ++d) y.values[index(y.shape, b, h, i, d)] += stages[3][j] * at(v, b, g, j, d);
        }
      }
    }
  }
  return { Y: flat ? headsLast(y) : y, present_key: k, present_value: v, qk_matmul_output: qk };
}

function index([, heads, length, size], b, h, i, d) {
  return ((b * heads + h) * length + i) * size + d;
}

function at(tensor, b, h, i, d) {
  return tensor.values[index(tensor.shape, b, h, i, d)];
}

/** (B, L, H*D) -> (B, H, L, D); a 4-D tensor stays. */
function headsFirst(tensor, heads) {
  if (tensor.shape.length === 4) return tensor;
  const [batch, length, width] = tensor.shape;
  const size = width / heads;
  const out = { shape: [batch, heads, length, size], values: new Float64Array(tensor.values.length) };
  each(out.shape, (b, h, i, d) => {
    out.values[index(out.shape, b, h, i, d)] = tensor.values[(b * length + i) * width + h * size + d];
  });
  return out;
}

/** (B, H, L, D) -> (B, L, H*D). */
function headsLast(tensor) {
  const [batch, heads, length, size] = tensor.shape;
  const out = { shape: [batch, length, heads * size], values: new Float64Array(tensor.values.length) };
  each(tensor.shape, (b, h, i, d) => {
    out.values[(b * length + i) * heads * size + h * size + d] = at(tensor, b, h, i, d);
  });
  return out;
}

/** Along the length axis of (B, H, length, size). */
function concatenate(first, second) {
  const [batch, heads, before, size] = first.shape;
  const shape = [batch, heads, before + second.shape[2], size];
  const out = { shape, values: new Float64Array(shape.reduce((a, n) => a * n, 1)) };
  each(shape, (b, h, j, d) => {
    out.values[index(shape, b, h, j, d)] = j < before ? at(first, b, h, j, d) : at(second, b, h, j - before, d);
  });
  return out;
}

/** What the mask adds to one score: 0 or -Infinity for a boolean one. */
function maskAt(mask, b, h, i, j) {
  if (!mask) return 0;
  const width = mask.shape.at(-1);
  if (j >= width) return -Infinity;
  const position = [b, h, i, j].slice(4 - mask.shape.length);
  let flat = 0;
  for (let axis = 0; axis < mask.shape.length; ++axis) {
    flat = flat * mask.shape[axis] + (mask.shape[axis] === 1 ? 0 : position[axis]);
  }
  if (mask.dtype === 'bool') return mask.values[flat] ? 0 : -Infinity;
  return mask.values[flat];
}

function each([n0, n1, n2, n3], visit) {
  for (let a = 0; a < n0; ++a)
    for (let b = 0; b < n1; ++b) for (let c = 0; c < n2; ++c) for (let d = 0; d < n3; ++d) visit(a, b, c, d);
}
