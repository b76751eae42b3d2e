import { attentionWeights } from '../weights/weights.js';
import { attentionWeightsAsync } from '../weights/weights-async.js';

export const weights = Object.freeze({
  name: /** @type {const} */ ('weights'),
  methods: { attentionWeights, attentionWeightsAsync },
});
