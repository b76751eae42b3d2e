// The instance of a file of tests, and ONNX's operators on it.
import { after } from 'node:test';
import { onnxOps } from 'sdpa/onnx';
import { loadVariant } from '../helpers/sdpa.mjs';

export const sdpa = await loadVariant();
export const ops = onnxOps(sdpa);
after(() => sdpa.dispose());
