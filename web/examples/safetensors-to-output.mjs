// A file with the tensors query, key and value in, a file with the result out: `node safetensors-to-output.mjs in.safetensors out.npy`.

import { readFileSync, writeFileSync } from 'node:fs';
import { load } from 'sdpa';
import { readSafetensors, writeNpy } from 'sdpa/io';

const [input, output] = process.argv.slice(2);
const { query, key, value } = /** @type {Record<string, any>} */ (readSafetensors(readFileSync(input)));
const sdpa = await load();
const { out } = sdpa.attention(query, key, value);
writeFileSync(output, writeNpy(out));
