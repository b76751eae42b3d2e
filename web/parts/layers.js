import { makePart } from '../combine-parts.js';
import { multiHeadAttention } from '../layers/multi-head-attention.js';
import { windowAttention2dAsync } from '../layers/window-async.js';
import { windowAttention2d } from '../layers/window-attention-2d.js';

export const layers = /* @__PURE__ */ makePart('layers', {
  multiHeadAttention,
  windowAttention2d,
  windowAttention2dAsync,
});
