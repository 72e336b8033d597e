// A search as it is typed -> a test for texts: words, `op:conv2d`, `shape:*x512`, `module:`, `name:`, `dtype:`, `/regex/`.

export type Field = 'any' | 'op' | 'shape' | 'module' | 'name' | 'dtype' | 'file';
export interface Term { field: Field; test: (text: string) => boolean }

const FIELDS = new Set<Field>(['op', 'shape', 'module', 'name', 'dtype', 'file']);
const MAX_TERMS = 30;

/** The terms of a query, all of which must be met; a regular expression that cannot be read is an error. */
export function parseQuery(query: string): Term[] {
  const parts = query.match(/(?:\w+:)?\/(?:[^/\\]|\\.)+\/|\S+/g) ?? [];
  return parts.slice(0, MAX_TERMS).map(part => {
    const named = /^(\w+):(.+)$/.exec(part), field = named && FIELDS.has(named[1] as Field) ? (named[1] as Field) : 'any';
    const wanted = field === 'any' ? part : (named as RegExpExecArray)[2];
    return { field, test: prepared(field, tester(field, wanted)) };
  });
}

function tester(field: Field, wanted: string): (text: string) => boolean {
  const regex = /^\/(.+)\/$/.exec(wanted);
  if (regex) { const found = new RegExp(regex[1], 'i'); return text => found.test(text); }
  const low = wanted.toLowerCase();
  if (field === 'any') return text => text.includes(low);
  if (!low.includes('*')) return field === 'shape' || field === 'op' || field === 'dtype' ? text => text === low || (field === 'op' && text.split('.').includes(low)) : text => text.includes(low);
  const glob = new RegExp(`^${low.split('*').map(piece => piece.replace(/[.+?^${}()|[\]\\]/g, '\\$&')).join('.*')}$`);
  return text => glob.test(text);
}

/** Texts as a field is compared: types as `1x64x56` or `f32`, operators without `torch.ops`. */
function prepared(field: Field, test: (text: string) => boolean): (text: string) => boolean {
  if (field === 'shape') return text => { const sizes = /^\w+\[(.*?)\]/.exec(text); return sizes !== null && test(sizes[1].replace(/, /g, 'x').toLowerCase()); };
  if (field === 'dtype') return text => { const dtype = /^(\w+)\[/.exec(text); return dtype !== null && test(dtype[1]); };
  if (field === 'op') return text => test(text.replace(/^torch\.ops\./, '').toLowerCase());
  return text => test(text.toLowerCase());
}
