// Finds the four projections of an attention layer among named tensors, by the names that libraries give them.

import { rangeError, show, typeError } from '../errors.js';

/**
 * Names of one library. `order` of a weight's dimensions: (outputs, inputs) or (inputs, outputs). A name without an ending has its
 * weight and its bias under the two `endings`. `fused`: query, key and value in one tensor, one behind the other along the outputs.
 * @typedef {object} Layout
 * @property {'out-in' | 'in-out'} order
 * @property {readonly [string, string]} endings of weights and biases
 * @property {string} [fused]
 * @property {readonly [string, string, string]} [separate] query, key, value
 * @property {string} [fusedBias] of the three, where their weights are separate
 * @property {readonly string[]} out one of these
 */

/** @type {readonly [string, string]} */
const linear = ['.weight', '.bias'];
/** @type {readonly [string, string]} */
const kernel = ['.kernel', '.bias'];
/** @type {readonly [string, string]} */
const bare = ['_weight', '_bias'];

/**
 * @param {readonly [string, string, string]} separate
 * @param {readonly string[]} out
 * @returns {Layout}
 */
const linears = (separate, out) => ({ order: 'out-in', endings: linear, separate, out });

/**
 * @param {string} fused
 * @param {readonly string[]} out
 * @param {'out-in' | 'in-out'} [order]
 * @returns {Layout}
 */
const fusedLinear = (fused, out, order = 'out-in') => ({ order, endings: linear, fused, out });

/** @type {readonly Layout[]} */
const layouts = [
  // torch.nn.MultiheadAttention, and the same with kdim or vdim
  { order: 'out-in', endings: bare, fused: 'in_proj', out: ['out_proj'] },
  {
    order: 'out-in',
    endings: bare,
    separate: ['q_proj', 'k_proj', 'v_proj'],
    fusedBias: 'in_proj',
    out: ['out_proj'],
  },
  linears(['q_proj', 'k_proj', 'v_proj'], ['o_proj', 'out_proj', 'dense']), // Llama and its kin, OPT, CLIP, Whisper, Phi
  linears(['self.query', 'self.key', 'self.value'], ['output.dense']), // BERT
  linears(['attention.query', 'attention.key', 'attention.value'], ['output.dense']), // ViT
  linears(['query', 'key', 'value'], ['dense', 'output.dense', 'out_proj', 'out']),
  linears(['q_lin', 'k_lin', 'v_lin'], ['out_lin']), // DistilBERT
  linears(['q', 'k', 'v'], ['o']), // T5
  linears(['to_q', 'to_k', 'to_v'], ['to_out.0', 'to_out']), // diffusers
  linears(['wq', 'wk', 'wv'], ['wo']), // Llama as Meta publishes it
  fusedLinear('qkv_proj', ['o_proj', 'out_proj']), // Phi-3
  fusedLinear('qkv', ['proj', 'out_proj']), // timm
  fusedLinear('Wqkv', ['out_proj', 'Wo']), // flash-attention, ModernBERT
  fusedLinear('c_attn', ['c_proj'], 'in-out'), // GPT-2
  { order: 'in-out', endings: kernel, separate: ['query', 'key', 'value'], out: ['attention_output', 'out'] }, // Keras, Flax
];

/** Tensors that change what a layer computes, and what is to be done about them. @type {Record<string, string>} */
const refused = {
  bias_k: 'keys that are added to every sequence are not supported',
  bias_v: 'values that are added to every sequence are not supported',
  'q_norm.weight': 'normalised queries are not supported',
  'k_norm.weight': 'normalised keys are not supported',
  'norm_q.weight': 'normalised queries are not supported',
  'norm_k.weight': 'normalised keys are not supported',
  'q_layernorm.weight': 'normalised queries are not supported',
  'k_layernorm.weight': 'normalised keys are not supported',
  sinks: "pass them to forward() in the option 'sinks' and leave them out of weights",
  'relative_attention_bias.weight':
    "pass the bias that it makes to forward() in the option 'bias' and leave it out of weights",
  'self.distance_embedding.weight': 'relative embeddings of distances are not supported',
  relative_position_bias_table: 'windowAttention2d() is the layer for it',
  logit_scale: 'cosine similarity is not supported by this layer',
};

/** Where one projection is: names of tensors, as they were given. @typedef {{ weight: string, bias: string | undefined }} Named */

/**
 * An attention layer that was found. Fused: the same names for query, key and value.
 * @typedef {object} Found
 * @property {Layout} layout
 * @property {string} base what stands before the names
 * @property {{ query: Named, key: Named, value: Named, out: Named }} names
 */

/**
 * @param {readonly string[]} given names of all tensors
 * @param {unknown} prefix of the layer's names
 * @returns {Found}
 * @throws RangeError `option` where there is not exactly one attention layer, with the names that were found
 */
export function findLayer(given, prefix) {
  if (prefix !== undefined && typeof prefix !== 'string') {
    throw typeError('type', `prefix must be a text, the start of the layer's names, got ${show(prefix)}`);
  }
  const within = plain(prefix ?? '').replace(/\.+$/, '');
  const names = plainNames(given);
  const below = [...names.keys()].filter((name) => within === '' || name.startsWith(`${within}.`));
  const found = [];
  const partly = [];
  for (const layout of layouts) {
    const first = (layout.fused ?? layout.separate?.[0]) + layout.endings[0];
    for (const name of below) {
      if (name !== first && !name.endsWith(`.${first}`)) continue;
      const base = name.slice(0, name.length - first.length);
      if (!base.startsWith(within)) continue;
      const { missing, result } = complete(names, layout, base);
      if (result) found.push(result);
      else partly.push(`${name} is there but not ${missing}`);
    }
  }
  if (found.length === 1) {
    refuseExtras(names, found[0].base);
    return found[0];
  }
  const inside = within === '' ? '' : ` with the prefix '${prefix}'`;
  if (found.length > 1) {
    const bases = list(
      found.map(({ base }) => `'${base.slice(0, -1)}'`),
      12,
    );
    throw rangeError('option', `weights has ${found.length} attention layers${inside}: give one of these: ${bases}`);
  }
  const clue = partly.length > 0 ? `; ${list(partly, 3)}` : '';
  const shown = below.length > 0 || within === '' ? below : [...names.keys()];
  throw rangeError(
    'option',
    `weights has no attention layer${inside} in a layout of PyTorch (in_proj_weight, out_proj.weight), Hugging Face (q_proj.weight, ` +
      `o_proj.weight; query.weight, dense.weight; ...) or Keras (query/kernel, attention_output/kernel)${clue}. ` +
      `The names${shown === below ? inside : ''} are: ${list(shown, 16) || 'none'}`,
  );
}

/** Names of h5 and Flax have slashes, those of TensorFlow a number. @param {string} name */
const plain = (name) => name.replace(/:0$/, '').replaceAll('/', '.');

/**
 * @param {readonly string[]} given
 * @returns {Map<string, string>} the names as they were given, by the plain ones
 */
function plainNames(given) {
  /** @type {Map<string, string>} */
  const names = new Map();
  for (const name of given) {
    const other = names.get(plain(name));
    if (other !== undefined) throw rangeError('option', `weights has '${other}' and '${name}', which are one name`);
    names.set(plain(name), name);
  }
  return names;
}

/**
 * @param {ReadonlyMap<string, string>} names
 * @param {Layout} layout
 * @param {string} base
 * @returns {{ missing?: string, result?: Found }}
 */
function complete(names, layout, base) {
  const { endings, fused, separate, fusedBias, out } = layout;
  const [weightEnding, biasEnding] = endings;
  const [query, key, value] = separate ?? [fused, fused, fused];
  const named = (/** @type {string | undefined} */ stem) => {
    const weight = names.get(base + stem + weightEnding);
    const bias = names.get(base + (fusedBias ?? stem) + biasEnding);
    return weight === undefined ? undefined : { weight, bias };
  };
  /** @type {Partial<Found['names']>} */
  const all = { query: named(query), key: named(key), value: named(value) };
  for (const [role, stem] of [
    ['key', key],
    ['value', value],
  ]) {
    if (!all[/** @type {'key'} */ (role)]) return { missing: base + stem + weightEnding };
  }
  // The output projection is a layer of its own, whatever the endings of the others.
  const ending = endings === bare ? linear : endings;
  const stem = out.find((name) => names.has(base + name + ending[0]));
  if (stem === undefined) return { missing: out.map((name) => base + name + ending[0]).join(' or ') };
  all.out = {
    weight: /** @type {string} */ (names.get(base + stem + ending[0])),
    bias: names.get(base + stem + ending[1]),
  };
  return { result: { layout, base, names: /** @type {Found['names']} */ (all) } };
}

/**
 * @param {ReadonlyMap<string, string>} names
 * @param {string} base
 */
function refuseExtras(names, base) {
  for (const [name, advice] of Object.entries(refused)) {
    const given = names.get(base + name);
    if (given !== undefined) {
      throw rangeError('unsupported', `weights has '${given}', which this layer would not apply: ${advice}`);
    }
  }
}

/**
 * @param {readonly string[]} texts
 * @param {number} most
 */
function list(texts, most) {
  const rest = texts.length - most;
  return texts.slice(0, most).join(', ') + (rest > 0 ? ` and ${rest} more` : '');
}
