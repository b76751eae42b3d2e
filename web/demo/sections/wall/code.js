// The lines of this section.

/** @param {import('./run.js').Setting} setting */
export const codeFor = ({ tokens, causal, build }) => `
import { load } from 'sdpa';

const sdpa = await load({ variant: '${build}' });
const shape = [1, 1, ${tokens}, 64]; // batch, heads, tokens, head size
const size = shape.reduce((a, b) => a * b);
const random = () => ({ data: Float32Array.from({ length: size }, Math.random), shape });

const { out } = sdpa.attention(random(), random(), random(), { causal: ${causal} });
console.log(out.shape, out.data.subarray(0, 4));
console.log(\`\${sdpa.memory().peak / 1e6} MB with the \${sdpa.variant} build\`);`;
