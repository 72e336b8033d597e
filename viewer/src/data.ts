// Numbers on nodes: built in (FLOPs, bytes, memory, drift of weights, dtype, device) or of the user's own; as colors, a
// legend, a table, a timeline.

import { bytesText, h, numberText } from './dom';
import { type Caption, short } from './painter';
import type { Program } from './program';
import { Change, OPERATION, REMOVED } from './wire';

export interface Column {
  name: string;
  of: Float64Array; // node -> number, NaN for none
  names: string[] | null; // of kinds, where numbers are numbers of these
  text: (value: number) => string;
  isSum: boolean; // a folded box has the sum of its nodes, else their maximum
}

export type Numbers = Record<string, (number | null)[]>; // name of a column -> numbers of nodes
export const COSTS = ['FLOPs', 'bytes moved', 'activation memory'], DRIFT = 'weight drift';

const BITS: Record<string, number> = { f64: 64, i64: 64, u64: 64, c64: 64, f32: 32, i32: 32, u32: 32, f16: 16, bf16: 16, i16: 16, u16: 16, c128: 128, c32: 32, i8: 8, u8: 8, b8: 8 };
const MAX_ROWS = 400;

/** Bytes of a value of some type, without what symbols say; 0 for what is no tensor. */
function bytesOf(type: string): number {
  const found = /^(\w+)\[(.*?)\]/.exec(type);
  if (!found) return 0;
  const bits = BITS[found[1]] ?? (/^f8/.test(found[1]) ? 8 : 0);
  return found[2] === '' ? bits / 8 : found[2].split(', ').reduce((total, size) => total * (/^\d+$/.test(size) ? Number(size) : NaN), bits / 8);
}

/** For each node how far its weights are from the old ones; nothing if none has other values. */
export function drifts(program: Program, changes: Change[]): Numbers {
  const found = new Array<number | null>(program.nodeCount).fill(null);
  for (const { weight, drift } of changes) {
    if (weight >= 0 && drift !== null) for (const node of program.list(program.nodesOfWeight, weight)) found[node] = Math.max(found[node] ?? 0, drift);
  }
  return found.some(drift => drift !== null) ? { [DRIFT]: found } : {};
}

/** All columns there are for a program: the user's own by name, what was asked for, what the picture has. */
export function columns(program: Program, own: Record<string, Record<string, number>>, asked: Numbers): Column[] {
  const { values, texts, nodes } = program.picture, count = program.nodeCount, first = (node: number): string => texts[values.type[program.list(program.results, node)[0]] ?? 0] ?? '';
  const bytes = new Float64Array(count).fill(NaN), weights = new Float64Array(count).fill(NaN);
  const kinds = (read: (type: string) => string | undefined): { of: Float64Array; names: string[] } => {
    const names: string[] = [], of = new Float64Array(count).fill(NaN);
    for (let node = 0; node < count; node++) {
      const name = read(first(node));
      if (!name) continue;
      if (!names.includes(name)) names.push(name);
      of[node] = names.indexOf(name);
    }
    return { of, names };
  };
  for (let node = 0; node < count; node++) {
    if (nodes.kind[node] !== OPERATION) continue;
    bytes[node] = program.list(program.results, node).reduce((sum, value) => sum + bytesOf(texts[values.type[value]]), 0);
    const used = program.stage.weightsOf[node];
    if (used.length) weights[node] = used.reduce((sum, weight) => sum + program.picture.weights.bytes[weight], 0);
  }
  const number = (value: number): string => numberText(value), dtype = kinds(type => /^(\w+)\[/.exec(type)?.[1]), device = kinds(type => (/\[/.test(type) ? / on (\S+)$/.exec(type)?.[1] ?? 'cpu' : undefined));
  // An output of the graph is called as the value that it gives, whose node is meant.
  const order = nodes.name.map((_, node) => node).filter(node => nodes.status[node] !== REMOVED).sort((a, b) => nodes.kind[b] - nodes.kind[a]), byName = new Map(order.map(node => [texts[nodes.name[node]], node]));
  const percent = (value: number): string => `${numberText(Number((100 * value).toPrecision(3)))} %`;
  return [
    ...Object.entries(own).map(([name, numbers]) => {
      const of = new Float64Array(count).fill(NaN);
      for (const [node, value] of Object.entries(numbers)) { const at = byName.get(node); if (at !== undefined) of[at] = value; }
      return { name, of, names: null, text: number, isSum: false };
    }),
    ...Object.entries(asked).map(([name, numbers]): Column => ({
      name, of: Float64Array.from(numbers, value => value ?? NaN), names: null, text: name === DRIFT ? percent : name === 'FLOPs' ? short : bytesText, isSum: name !== DRIFT && name !== 'activation memory',
    })),
    { name: 'bytes of results', of: bytes, names: null, text: bytesText, isSum: true }, { name: 'bytes of weights', of: weights, names: null, text: bytesText, isSum: true },
    { name: 'dtype', ...dtype, text: value => dtype.names[value] ?? '', isSum: false }, { name: 'device', ...device, text: value => device.names[value] ?? '', isSum: false },
  ];
}

/** What a folded box shows: the sum or the greatest number of its nodes; of kinds the one that all of them have. */
export function ofBoxes(program: Program, column: Column): Float64Array {
  const { boxes, nodes } = program.picture, found = new Float64Array(boxes.parent.length).fill(NaN), mixed = new Uint8Array(found.length);
  column.of.forEach((value, node) => {
    if (Number.isNaN(value)) return;
    for (let box = nodes.box[node]; box >= 0; box = boxes.parent[box]) {
      if (column.names && !Number.isNaN(found[box]) && found[box] !== value) mixed[box] = 1;
      found[box] = Number.isNaN(found[box]) ? value : column.isSum ? found[box] + value : Math.max(found[box], value);
    }
  });
  return found.map((value, box) => (mixed[box] ? NaN : value));
}

/** The colors of numbers and what they mean; "" for what has no number. */
export function colored(column: Column, values: Float64Array, dark: boolean): { tints: string[]; caption: Caption } {
  const { low, high } = range(values), kind = (value: number): string => `hsl(${(value * 137.5 + 205) % 360} ${dark ? '45% 32%' : '75% 84%'})`;
  const scale = (t: number): string => (dark ? `hsl(${230 - 215 * t} 55% ${22 + 22 * t}%)` : `hsl(${215 - 200 * t} 85% ${95 - 33 * t}%)`);
  const color = (value: number): string => (Number.isNaN(value) ? '' : column.names ? kind(value) : scale(high > low ? (value - low) / (high - low) : 1));
  const steps = Array.from({ length: 7 }, (_, i): [string, string] => [scale(i / 6), i === 6 ? column.text(high) : '']);
  return { tints: Array.from(values, color), caption: { title: column.name, from: column.names ? '' : column.text(low), entries: column.names ? column.names.slice(0, 12).map((name, i) => [kind(i), name]) : steps } };
}

function range(values: Float64Array): { low: number; high: number } {
  let low = Infinity, high = -Infinity;
  for (const value of values) if (!Number.isNaN(value)) { low = Math.min(low, value); high = Math.max(high, value); }
  return low <= high ? { low, high } : { low: 0, high: 0 };
}

/** What the colors of a column mean. */
export function legend({ title, from, entries }: Caption): HTMLElement {
  const swatch = (color: string): HTMLElement => { const element = h('i', { class: 'swatch' }); element.style.background = color; return element; };
  if (!from) return h('div', {}, h('b', { text: title }), ...entries.map(([color, text]) => h('div', {}, swatch(color), text)));
  return h('div', {}, h('b', { text: title }), h('div', { class: 'ramp' }, ...entries.map(([color]) => swatch(color))), h('div', { class: 'axis' }, h('span', { text: from }), h('span', { text: entries[entries.length - 1][1] })));
}

/** The nodes by their numbers, largest first, or in the order in which they run. */
export function table(program: Program, column: Column, sorted: boolean, choose: (node: number) => void, turn: () => void): HTMLElement {
  const rows = [...column.of.keys()].filter(node => !Number.isNaN(column.of[node]));
  if (sorted) rows.sort((a, b) => column.of[b] - column.of[a]);
  return h('div', {},
    h('p', { class: 'faint', role: 'status', text: `${rows.length.toLocaleString('en')} nodes${column.isSum ? `, ${column.text(rows.reduce((sum, node) => sum + column.of[node], 0))} in total` : ''}${rows.length > MAX_ROWS ? `, the first ${MAX_ROWS}` : ''}` }),
    h('button', { type: 'button', class: 'button', onclick: turn, text: sorted ? 'By order of execution' : 'Largest first' }),
    h('table', { class: 'numbers' }, ...rows.slice(0, MAX_ROWS).map(node => h('tr', {},
      h('td', {}, h('button', { type: 'button', class: 'name', onclick: () => choose(node), text: program.nodeName(node) })), h('td', { class: 'number', text: column.text(column.of[node]) })))));
}

/** A column over the order of execution, as a strip of bars; a click goes to the node. */
export function timeline(program: Program, column: Column, canvas: HTMLCanvasElement, [color, ink]: [string, string], choose: (node: number) => void): void {
  const runs = program.picture.nodes.kind.flatMap((kind, node) => (kind === OPERATION ? [node] : [])), { high } = range(column.of);
  const width = (canvas.width = Math.max(200, canvas.clientWidth)), height = (canvas.height = 56), ctx = canvas.getContext('2d') as CanvasRenderingContext2D;
  const tops = new Float64Array(width);
  runs.forEach((node, i) => {
    const value = column.of[node];
    if (Number.isNaN(value)) return;
    for (let x = Math.floor((i * width) / runs.length); x <= Math.floor(((i + 1) * width - 1) / runs.length); x++) tops[x] = Math.max(tops[x], value);
  });
  ctx.clearRect(0, 0, width, height);
  ctx.fillStyle = color;
  ctx.globalAlpha = 0.75;
  tops.forEach((value, x) => { const tall = high > 0 ? (value / high) * (height - 4) : 0; ctx.fillRect(x, height - tall, 1, tall); });
  ctx.globalAlpha = 1;
  ctx.fillStyle = ink;
  ctx.font = '11px system-ui, sans-serif';
  ctx.fillText(`${column.name} in the order of execution, at most ${column.text(high)}`, 8, 14);
  canvas.setAttribute('aria-label', `${column.name} in the order of execution, at most ${column.text(high)}`);
  canvas.title = `${column.name} in the order of execution, at most ${column.text(high)}`;
  canvas.onclick = event => choose(runs[Math.min(runs.length - 1, Math.floor((event.offsetX / canvas.clientWidth) * runs.length))]);
}
