import { makePart } from '../combine-parts.js';
import { gatedLinearAttentionBackward, linearAttentionBackward, ssdBackward } from '../linear/backward.js';
import { gatedLinearAttention } from '../linear/gated.js';
import { linearAttention } from '../linear/linear-attention.js';
import { ssd } from '../linear/ssd.js';

export const linear = /* @__PURE__ */ makePart('linear', {
  linearAttention,
  linearAttentionBackward,
  gatedLinearAttention,
  gatedLinearAttentionBackward,
  ssd,
  ssdBackward,
});
