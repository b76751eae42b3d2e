import { gradientCheck } from '../gradient-check.js';
import { attentionBackwardAsync } from '../gradients/async.js';
import { attentionBackward } from '../gradients.js';

export const gradients = Object.freeze({
  name: /** @type {const} */ ('gradients'),
  methods: { attentionBackward, attentionBackwardAsync, gradientCheck },
});
