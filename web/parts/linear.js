import { gatedLinearAttentionBackward, linearAttentionBackward, ssdBackward } from '../linear/backward.js';
import { gatedLinearAttention } from '../linear/gated.js';
import { linearAttention } from '../linear/linear-attention.js';
import { ssd } from '../linear/ssd.js';

export const linear = Object.freeze({
  name: /** @type {const} */ ('linear'),
  methods: {
    linearAttention,
    linearAttentionBackward,
    gatedLinearAttention,
    gatedLinearAttentionBackward,
    ssd,
    ssdBackward,
  },
});
