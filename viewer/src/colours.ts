// Kinds of operators -> colours, in light and in dark.

export const KINDS = [
  'other', 'multiply', 'activation', 'normalise', 'shape', 'index', 'attention', 'reduce', 'random', 'control', 'custom', 'symbolic', 'input', 'output', 'mutation',
] as const;

const RULES: [RegExp, number][] = [
  [/^(linear|matmul|mm|bmm|addmm|baddbmm|einsum|conv.*|_?convolution|.*_mm|dot|mv|lstm.*|gru.*|rnn.*|bilinear)$/, 1],
  [/^(scaled_dot_product.*|_scaled_dot.*|.*attention.*|_transformer.*)$/, 6],
  [/^(relu|relu6|gelu|silu|sigmoid|tanh|softmax|_softmax|log_softmax|_log_softmax|leaky_relu|elu|hardtanh|hardswish|hardsigmoid|mish|softplus|prelu|glu|selu|celu)_?$/, 2],
  [/(batch_norm|layer_norm|group_norm|instance_norm|rms_norm|_norm$|native_.*norm)/, 3],
  [/^(view|_unsafe_view|reshape|permute|transpose|t|unsqueeze|squeeze|expand|expand_as|slice|select|split.*|chunk|cat|stack|flatten|unflatten|contiguous|clone|to|_to_copy|alias|detach|repeat|unbind|movedim|getitem|as_strided|narrow|pad|constant_pad_nd|type_as|lift_fresh_copy)_?$/, 4],
  [/^(embedding.*|index.*|gather|scatter.*|take.*|masked_.*|where|nonzero|_embedding_bag.*)_?$/, 5],
  [/^(sum|mean|max|min|amax|amin|argmax|argmin|prod|std|var|var_mean|any|all|norm|logsumexp|cumsum|topk|sort|.*pool.*)$/, 7],
  [/(dropout|rand|bernoulli|normal|multinomial|uniform)/, 8],
  [/^(sym_|_assert|assert)/, 11],
];

export function operatorKind(target: string, name: string): number {
  if (target.startsWith('torch.ops.higher_order.') || target.startsWith('torch._higher_order_ops.') || /^torch\.ops\.\w+$/.test(target)) return 9;
  if (target.startsWith('_operator.') || target.startsWith('math.') || target.startsWith('torch.sym_')) return name === 'getitem' ? 4 : 11;
  if (!/^(torch\.ops\.(aten|prims?|_?quantized.*|inductor.*)\.|torch\.[a-z_]+$)/.test(target)) return 10;
  for (const [rule, kind] of RULES) if (rule.test(name)) return kind;
  return 0;
}

export interface Palette {
  paper: string; frame: string[]; frameLine: string; ink: string; faint: string; wire: string; select: string; chip: string; chipInk: string;
  label: string; fill: string[]; line: string[]; status: string[]; carries: string;
}

const HUES = [215, 212, 145, 275, 220, 185, 32, 245, 345, 320, 48, 220, 160, 20, 0];
const GREY = new Set([0, 4, 11]);

function palette(dark: boolean): Palette {
  const fill = HUES.map((hue, i) => (dark ? `hsl(${hue} ${GREY.has(i) ? 8 : 38}% ${i === 4 ? 22 : 25}%)` : `hsl(${hue} ${GREY.has(i) ? 16 : 82}% ${i === 4 ? 94 : 92}%)`));
  const line = HUES.map((hue, i) => (dark ? `hsl(${hue} ${GREY.has(i) ? 8 : 45}% ${GREY.has(i) ? 45 : 58}%)` : `hsl(${hue} ${GREY.has(i) ? 10 : 52}% ${GREY.has(i) ? 62 : 50}%)`));
  return dark
    ? {
        paper: '#14171c', frame: ['#191d24', '#1e232b', '#232932'], frameLine: '#3b4452', ink: '#e8ebf0', faint: '#9aa4b2', wire: '#6b7787', select: '#6cb2ff',
        chip: '#4a3f1f', chipInk: '#f0dc9c', label: '#94a0b0', fill, line, status: ['', '#37b26c', '#ef6461', '#e0a526'], carries: '#c06bb4',
      }
    : {
        paper: '#f7f8fa', frame: ['#ffffff', '#f4f6f9', '#eceff4'], frameLine: '#bcc6d2', ink: '#1a212b', faint: '#5a6675', wire: '#8793a3', select: '#0b6bd3',
        chip: '#fdf0c4', chipInk: '#6a4d00', label: '#667282', fill, line, status: ['', '#16924b', '#d13438', '#b97a00'], carries: '#b04a9f',
      };
}

export const LIGHT = palette(false), DARK = palette(true);
