// The entry of a page that a bundler builds.
import { load } from 'sdpa';
import { load as loadSlim } from 'sdpa/slim';
import wasmUrl from 'sdpa/wasm/sdpa.simd.wasm?url';

const x = { data: Float32Array.from({ length: 32 }, (_, i) => Math.sin(i)), shape: [1, 1, 4, 8] };
const report = {};
try {
  const sdpa = await load();
  report.variant = sdpa.variant;
  report.out = [...sdpa.attention(x, x, x, { causal: true }).out.data];
  report.slim = [...(await loadSlim({ wasm: wasmUrl })).attention(x, x, x, { causal: true }).out.data];
} catch (error) {
  report.error = String(error.message);
  report.code = error.code;
}
globalThis.report = report;
