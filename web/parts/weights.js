import { makePart } from '../combine-parts.js';
import { attentionWeights } from '../weights/weights.js';
import { attentionWeightsAsync } from '../weights/weights-async.js';

export const weights = /* @__PURE__ */ makePart('weights', { attentionWeights, attentionWeightsAsync });
