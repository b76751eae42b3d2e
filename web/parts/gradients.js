import { makePart } from '../combine-parts.js';
import { gradientCheck } from '../gradient-check.js';
import { attentionBackwardAsync } from '../gradients/async.js';
import { attentionBackward } from '../gradients.js';

export const gradients = /* @__PURE__ */ makePart('gradients', {
  attentionBackward,
  attentionBackwardAsync,
  gradientCheck,
});
