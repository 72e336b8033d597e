// The state of a view <-> the part of its address after "#": `#/layers/0/attn?node=linear_3&mark=up`.

export interface Address {
  program: number;
  path: string; // of a module or subgraph, dotted; "" for the root
  node: string;
  weight: string;
  open: string; // "" as at first, "all", or numbers of boxes
  mark: string; // "up", "down", "both", "to:<name>", "symbol:<name>"
  tab: string; // "graph" or "bytes"
  query: string;
}

export const START: Address = { program: 0, path: '', node: '', weight: '', open: '', mark: '', tab: 'graph', query: '' };
const MAX_OPEN = 3000;

export function readAddress(hash: string): Address {
  const [path, rest] = hash.replace(/^#\/?/, '').split('?', 2), found = new URLSearchParams(rest ?? '');
  const program = Number(found.get('program') ?? 0);
  return {
    program: Number.isInteger(program) && program >= 0 ? program : 0,
    path: path.split('/').map(decode).join('.'),
    node: found.get('node') ?? '', weight: found.get('weight') ?? '', open: found.get('open') ?? '', mark: found.get('mark') ?? '',
    tab: found.get('tab') === 'bytes' ? 'bytes' : 'graph', query: found.get('q') ?? '',
  };
}

export function writeAddress(address: Address): string {
  const rest = new URLSearchParams();
  if (address.program) rest.set('program', String(address.program));
  if (address.node) rest.set('node', address.node);
  if (address.weight) rest.set('weight', address.weight);
  if (address.open && address.open.length <= MAX_OPEN) rest.set('open', address.open);
  if (address.mark) rest.set('mark', address.mark);
  if (address.tab !== 'graph') rest.set('tab', address.tab);
  if (address.query) rest.set('q', address.query);
  const path = address.path.split('.').map(encodeURIComponent).join('/'), query = rest.toString();
  return `#/${path}${query ? `?${query}` : ''}`;
}

function decode(text: string): string {
  try { return decodeURIComponent(text); } catch { return text; }
}

/** Numbers of boxes, as short as may be: differences in base 36. */
export function packOpen(open: Iterable<number>): string {
  let last = 0;
  return [...open].sort((a, b) => a - b).map(box => { const step = box - last; last = box; return step.toString(36); }).join('.');
}

export function unpackOpen(text: string): number[] {
  let at = 0;
  return text.split('.').map(step => { at += parseInt(step, 36) || 0; return at; }).filter(box => box > 0);
}
