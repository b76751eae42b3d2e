export { toBfloat16Bits, toFloat16Bits } from '../half.js';
