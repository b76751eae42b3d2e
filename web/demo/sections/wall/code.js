// The lines of this section.

/** @param {import('./run.js').Setting} setting */
export const codeFor = ({ tokens, causal, build, threads }) => `
import { load } from 'sdpa';

const sdpa = await load({ variant: '${build}', threads: ${threads} });
const shape = [1, 1, ${tokens}, 64]; // batch, heads, tokens, head size
const size = shape.reduce((a, b) => a * b);
const random = () => ({ data: Float32Array.from({ length: size }, Math.random), shape });

const { out } = ${threads > 0 ? 'await sdpa.attentionAsync' : 'sdpa.attention'}(random(), random(), random(), { causal: ${causal} });
console.log(out.shape, out.data.subarray(0, 4));
console.log(\`\${sdpa.memory().peak / 1e6} MB with the \${sdpa.variant} build\`);${threads > 0 ? '\nsdpa.dispose();' : ''}`;
