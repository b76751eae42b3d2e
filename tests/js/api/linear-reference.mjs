// Linear attention, gated and not, and state spaces by their recurrences, a token at a time, in float64. Slow and plain on purpose; it shares no
// code with the package.

/**
 * Sizes of a tensor of rows and where they lie.
 * @param {any} tensor
 * @param {string} layout
 */
export function rowsOf({ data, shape }, layout = 'bhld') {
  const [B, X, Y, D] = [...[1, 1, 1, 1].slice(shape.length), ...shape];
  const [H, L] = layout === 'blhd' && shape.length > 2 ? [Y, X] : [X, Y];
  const at = (/** @type {number} */ b, /** @type {number} */ h, /** @type {number} */ i) =>
    (layout === 'blhd' && shape.length > 2 ? (b * L + i) * H + h : (b * H + h) * L + i) * D;
  return { data, B, H, L, D, at };
}

/** A gate with one number for each token as a tensor of rows of one column. @param {any} gate @param {number} rank */
const withColumns = (gate, rank) => (gate.shape.length < rank ? { ...gate, shape: [...gate.shape, 1] } : gate);

/** elu(x) + 1. @param {number} x */
export const phi = (x) => (x > 0 ? x + 1 : Math.exp(x));

/**
 * S ← e^g·S, u = v or β(v − Sᵀk), S ← S + k⊗u, o = scale·qᵀS.
 * @param {any} query
 * @param {any} key
 * @param {any} value
 * @param {any} options decay, beta, scale, state, layout
 * @returns {{ out: Float64Array, state: Float64Array }}
 */
export function gatedReference(query, key, value, { decay, beta, scale, state: before, layout } = {}) {
  const rank = query.shape.length;
  const [q, k, v] = [query, key, value].map((tensor) => rowsOf(tensor, layout));
  const g = decay && rowsOf(withColumns(decay, rank), layout);
  const betas = beta && rowsOf(withColumns(beta, rank), layout);
  const { B, H, L, D } = q;
  const [Hkv, Dv] = [v.H, v.D];
  const factor = scale ?? 1 / Math.sqrt(D);
  const o = rowsOf({ data: new Float64Array(B * H * L * Dv), shape: [...query.shape.slice(0, -1), Dv] }, layout);
  const states = new Float64Array(B * Hkv * D * Dv);
  if (before) states.set(before.data);
  for (let b = 0; b < B; b++) {
    for (let h = 0; h < Hkv; h++) {
      const S = states.subarray((b * Hkv + h) * D * Dv, (b * Hkv + h + 1) * D * Dv);
      for (let t = 0; t < L; t++) {
        const kAt = k.at(b, h, t);
        const u = Float64Array.from(v.data.subarray(v.at(b, h, t), v.at(b, h, t) + Dv));
        for (let d = 0; g && d < D; d++) {
          const a = Math.exp(g.data[g.at(b, h, t) + (g.D === 1 ? 0 : d)]);
          for (let e = 0; e < Dv; e++) S[d * Dv + e] *= a;
        }
        for (let e = 0; betas && e < Dv; e++) {
          let held = 0;
          for (let d = 0; d < D; d++) held += S[d * Dv + e] * k.data[kAt + d];
          u[e] = betas.data[betas.at(b, betas.H === 1 ? 0 : h, t)] * (u[e] - held);
        }
        for (let d = 0; d < D; d++) for (let e = 0; e < Dv; e++) S[d * Dv + e] += k.data[kAt + d] * u[e];
        for (let r = 0; r < H / Hkv; r++) {
          const qAt = q.at(b, h * (H / Hkv) + r, t);
          const oAt = o.at(b, h * (H / Hkv) + r, t);
          for (let e = 0; e < Dv; e++) {
            let sum = 0;
            for (let d = 0; d < D; d++) sum += q.data[qAt + d] * S[d * Dv + e];
            o.data[oAt + e] = factor * sum;
          }
        }
      }
    }
  }
  return { out: o.data, state: states };
}

/**
 * By the definition: sums over the keys of φ(q)·φ(k)·v and φ(q)·φ(k).
 * @param {any} query
 * @param {any} key
 * @param {any} value
 * @param {any} options causal, eps, kvLengths, keyMask, layout
 */
export function linearReference(query, key, value, { causal = false, eps = 0, kvLengths, keyMask, layout } = {}) {
  const [q, k, v] = [query, key, value].map((tensor) => rowsOf(tensor, layout));
  const o = rowsOf(
    { data: new Float64Array(q.B * q.H * q.L * v.D), shape: [...query.shape.slice(0, -1), v.D] },
    layout,
  );
  for (let b = 0; b < q.B; b++) {
    for (let h = 0; h < q.H; h++) {
      const g = Math.floor(h / (q.H / k.H));
      for (let i = 0; i < q.L; i++) {
        let Z = 0;
        const sums = new Float64Array(v.D);
        for (let j = 0; j < (causal ? i + 1 : k.L); j++) {
          if (kvLengths && j >= kvLengths[b]) continue;
          if (keyMask && !keyMask.data[(keyMask.shape.length === 1 ? 0 : b * k.L) + j]) continue;
          let dot = 0;
          for (let d = 0; d < q.D; d++) dot += phi(q.data[q.at(b, h, i) + d]) * phi(k.data[k.at(b, g, j) + d]);
          Z += dot;
          for (let e = 0; e < v.D; e++) sums[e] += dot * v.data[v.at(b, g, j) + e];
        }
        for (let e = 0; e < v.D; e++) o.data[o.at(b, h, i) + e] = Z + eps === 0 ? 0 : sums[e] / (Z + eps);
      }
    }
  }
  return { out: o.data };
}

/**
 * h ← exp(Δ·A)·h + Δ·B⊗x, y = Cᵀh + D·x, by way of the gated recurrence with keys of every head.
 * @param {any} x
 * @param {any} dt
 * @param {ArrayLike<number>} a
 * @param {any} b
 * @param {any} c
 * @param {any} options d, state, layout
 */
export function ssdReference(x, dt, a, b, c, { d, state, layout } = {}) {
  const xs = rowsOf(x, layout);
  const dts = rowsOf(withColumns(dt, x.shape.length), layout);
  const groups = rowsOf(b, layout).H;
  const decay = { data: Float64Array.from(dt.data), shape: dt.shape };
  const value = { data: Float64Array.from(x.data), shape: x.shape };
  for (let n = 0; n < xs.B; n++) {
    for (let h = 0; h < xs.H; h++) {
      for (let t = 0; t < xs.L; t++) {
        const step = dts.data[dts.at(n, h, t)];
        decay.data[dts.at(n, h, t)] = step * a[h];
        for (let p = 0; p < xs.D; p++) value.data[xs.at(n, h, t) + p] *= step;
      }
    }
  }
  const perHead = (/** @type {any} */ tensor) => {
    const from = rowsOf(tensor, layout);
    const shape = [...x.shape.slice(0, -1), from.D];
    const to = rowsOf({ data: new Float64Array(shape.reduce((all, n) => all * n, 1)), shape }, layout);
    for (let n = 0; n < to.B; n++) {
      for (let h = 0; h < to.H; h++) {
        for (let t = 0; t < to.L; t++) {
          const at = from.at(n, Math.floor(h / (to.H / groups)), t);
          to.data.set(from.data.subarray(at, at + from.D), to.at(n, h, t));
        }
      }
    }
    return { data: to.data, shape };
  };
  const result = gatedReference(perHead(c), perHead(b), value, { decay, scale: 1, state, layout });
  for (let h = 0; d && h < xs.H; h++) {
    for (let n = 0; n < xs.B; n++) {
      for (let t = 0; t < xs.L; t++) {
        for (let p = 0; p < xs.D; p++) {
          result.out[xs.at(n, h, t) + p] += d[h] * x.data[xs.at(n, h, t) + p];
        }
      }
    }
  }
  return result;
}
