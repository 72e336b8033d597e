// What is selected -> the panel beside the picture.

import { broken, bytesText, Child, count, h, numberText } from './dom';
import { short } from './painter';
import type { Program } from './program';
import { boxesOfChanges, STATUSES, sums } from './review';
import { operatorName } from './scene';
import { ask } from './source';
import { CALL, Change, Facts, Finding, NodeDetail, OPERATION, REPEAT, SUBGRAPH, TensorSample, ValueDetail } from './wire';

export interface PanelEvents {
  node(node: number): void;
  box(box: number): void;
  weight(weight: number): void;
  symbol(name: string): void;
  mark(mark: string): void;
  toggle(box: number): void;
  file(text: string): void;
}

export interface Context { program: Program; number: number; chunk: number; live: boolean; symbols: string[]; findings: Finding[]; changes: Change[]; on: PanelEvents }

export function section(title: string, ...children: (Child | Child[])[]): HTMLElement {
  return h('section', {}, h('h3', { text: title }), ...children);
}

function rows(pairs: [string, Child][]): HTMLElement {
  return h('dl', {}, pairs.flatMap(([key, value]) => [h('dt', { text: key }), h('dd', {}, value)]));
}

export function link(text: string, action: () => void, kind = 'link'): HTMLButtonElement {
  return h('button', { class: kind, type: 'button', onclick: action, text, title: text.length > 60 ? text.slice(0, 500) : null });
}

/** A text in which the names of symbols can be clicked. */
export function typed(text: string, context: Context): HTMLElement {
  const span = h('span', { class: 'type' });
  const known = new Set(context.symbols);
  for (const part of text.split(/([A-Za-z_]\w*)/)) {
    if (known.has(part)) span.append(link(part, () => context.on.symbol(part), 'symbol')); else span.append(...broken(part) as Node[]);
  }
  return span;
}

function more(list: Child[], most: number): Child[] {
  if (list.length <= most) return list;
  const rest = list.slice(most), button: HTMLButtonElement = link(`${rest.length.toLocaleString('en')} more`, () => button.replaceWith(...rest.slice(0, 2000) as Node[]));
  return [...list.slice(0, most), button];
}

export function nodePanel(context: Context, node: number, into: HTMLElement): void {
  const { program, on } = context, { nodes, values } = program.picture;
  const target = program.text(nodes.target[node]), isCall = nodes.kind[node] === OPERATION;
  const results = program.list(program.results, node), weights = program.list(program.weightsOf, node);
  const from = [...new Set(program.list(program.previous, node))], to = [...new Set(program.list(program.next, node))];
  const status = STATUSES[nodes.status[node]];
  const body = h('div', {});
  into.replaceChildren(
    h('p', { class: 'kicker', text: isCall ? 'node' : nodes.kind[node] === 1 ? 'input' : 'output' }),
    h('h2', { text: isCall ? operatorName(target) : program.nodeName(node) }),
    h('p', { class: 'mono faint', text: isCall ? target : target.replace(/_/g, ' ') }),
    status ? h('p', { class: `badge ${status}`, text: status }) : '',
    rows([
      ['name', h('span', { class: 'mono', text: program.nodeName(node) })],
      ['module', crumbs(context, nodes.box[node])],
      ...[...results].slice(0, 8).map((value): [string, Child] => [results.length > 1 ? program.text(values.name[value]) : 'gives', typed(program.text(values.type[value]), context)]),
    ]),
    h('div', { class: 'buttons' },
      link('Depends on', () => on.mark('up'), 'button'), link('Is used by', () => on.mark('down'), 'button'), link('Both', () => on.mark('both'), 'button')),
    ...differs(context.changes.filter(change => change.node === node)),
    ...findingsOf(context, node),
    weights.length ? section('Weights', ...more([...weights].map(weight => weightRow(context, weight)), 12)) : '',
    body,
    section('Neighbors',
      h('p', { class: 'faint', text: from.length ? 'takes from' : 'takes nothing from other nodes' }), ...more(from.map(other => nodeRow(context, other)), 8),
      h('p', { class: 'faint', text: to.length ? 'gives to' : 'gives nothing to other nodes' }), ...more(to.map(other => nodeRow(context, other)), 8)),
  );
  ask<NodeDetail[]>(`details/${context.number}/${Math.floor(node / context.chunk)}`).then(
    details => body.replaceChildren(...detail(context, details[node % context.chunk])),
    (error: Error) => body.replaceChildren(h('p', { class: 'error', text: error.message })),
  );
}

/** The properties of a change before and after, each below its name. */
export function beforeAndAfter(change: Change): Child {
  if (!change.lines.length) return '';
  const head = change.lines.some(([, old]) => old !== null) && h('tr', {}, ...['old', 'new'].map(text => h('th', { scope: 'col', text })));
  return h('table', { class: 'versus' }, head, ...change.lines.flatMap(([what, old, now]) => [
    h('tr', {}, h('th', { scope: 'colgroup', colspan: 2 }, ...broken(what))),
    h('tr', {}, ...(old !== null ? [h('td', { class: 'removed', text: old }), h('td', { class: 'added', text: now })] : [h('td', { colspan: 2, text: now })])),
  ]));
}

function differs(changes: Change[]): HTMLElement[] {
  return changes.some(change => change.lines.length) ? [section('What differs', ...changes.map(beforeAndAfter))] : [];
}

/** The changes in a module, with counts of each side. */
function changesIn(context: Context, box: number): HTMLElement[] {
  const { program, on } = context, boxOf = boxesOfChanges(program), { parent } = program.picture.boxes;
  const inside = context.changes.filter(change => { for (let at = boxOf(change); at >= 0; at = parent[at]) if (at === box) return true; return false; });
  if (!inside.length) return [];
  return [section('Changes', h('p', { class: 'sums' }, ...sums(inside).map(([kind, text]) => h('span', { class: `badge ${kind}`, text }))), ...more(inside.map(change => h('div', { class: `row ${change.kind}` },
    change.node >= 0 ? link(change.name, () => on.node(change.node)) : change.weight >= 0 ? link(change.name, () => on.weight(change.weight)) : h('span', { class: 'wrap', text: change.name }), h('span', { class: 'faint', text: `${change.kind} ${change.area}` }))), 12))];
}

function detail(context: Context, found: NodeDetail | undefined): HTMLElement[] {
  if (!found) return [];
  const out: HTMLElement[] = [];
  if (found.arguments.length) out.push(section('Arguments', h('table', {}, ...found.arguments.map(argument => h('tr', {},
    h('th', { scope: 'row', text: argument.name || '·' }),
    h('td', {}, h('span', { class: 'mono wrap', text: argument.text }), ...argument.values.slice(0, 20).map(value => h('div', { class: 'faint' }, typed(value.type, context)))))))));
  if (found.results.length) out.push(section('Values', ...found.results.slice(0, 50).map(value => valueRow(context, value))));
  if (found.frames.length) out.push(section('Source', ...found.frames.slice().reverse().map((frame, i) => h('div', { class: i ? 'frame' : 'frame first' },
    h('code', { text: frame.source || frame.function }), h('div', { class: 'faint wrap', text: `${frame.file}:${frame.line} in ${frame.function}` })))));
  if (found.modules.length) out.push(section('Module stack', ...found.modules.map(([path, kind]) => h('div', { class: 'wrap' }, h('span', { class: 'mono', text: path || '(root)' }), ' ', h('span', { class: 'faint', text: kind })))));
  if (found.metadata.length) out.push(section('Metadata', ...found.metadata.map(([key, lines]) => h('details', {}, h('summary', { text: key }), h('pre', { text: lines.join('\n') })))));
  return out;
}

function valueRow(context: Context, value: ValueDetail): HTMLElement {
  const facts = [
    value.strides && `strides ${value.strides}`, value.offset && value.offset !== '0' && `offset ${value.offset}`, value.device && `on ${value.device}`,
    value.layout && value.layout !== 'Strided' && value.layout, value.requires_grad && 'requires grad',
  ].filter(Boolean);
  return h('div', { class: 'value' }, h('span', { class: 'mono', text: `%${value.name} ` }), typed(value.type, context), h('div', { class: 'faint', text: facts.join(', ') }));
}

export function nodeRow(context: Context, node: number): HTMLElement {
  const { program } = context, { nodes } = program.picture;
  const name = program.nodeName(node), target = program.text(nodes.target[node]);
  return h('div', { class: 'row' }, link(name, () => context.on.node(node)), h('span', { class: 'faint', text: nodes.kind[node] === OPERATION ? operatorName(target) : target.replace(/_/g, ' ') }));
}

function weightRow(context: Context, weight: number): HTMLElement {
  const { weights } = context.program.picture;
  return h('div', { class: 'row' }, link(context.program.text(weights.name[weight]), () => context.on.weight(weight)), h('span', { class: 'faint', text: context.program.text(weights.type[weight]) }));
}

function crumbs(context: Context, box: number): HTMLElement {
  const { program } = context;
  const around = program.around(box);
  return h('span', { class: 'crumbs' }, link('program', () => context.on.box(0)), ...around.flatMap(one => [' › ', link(program.text(program.picture.boxes.name[one]) || operatorName(program.text(program.picture.boxes.type[one])), () => context.on.box(one))]));
}

function findingsOf(context: Context, node: number): HTMLElement[] {
  const own = context.findings.filter(finding => finding.node === node);
  return own.length ? [section('Check', ...own.map(finding => findingRow(context, finding)))] : [];
}

export function findingRow(context: Context, finding: Finding): HTMLElement {
  return h('div', { class: `finding ${finding.kind}` },
    h('span', { class: `badge ${finding.kind}`, text: `${finding.kind} ${finding.rule}` }), ' ', h('span', { class: 'wrap', text: finding.message }),
    finding.node >= 0 ? h('div', {}, link(finding.place, () => context.on.node(finding.node))) : h('div', { class: 'faint wrap', text: finding.place }));
}

export function boxPanel(context: Context, box: number, isOpen: boolean, into: HTMLElement): void {
  const { program, on } = context, { boxes, weights } = program.picture, kind = boxes.kind[box];
  const held = weights.box.flatMap((of, weight) => (of === box ? [weight] : []));
  const operators = program.operators(box), type = program.text(boxes.type[box]);
  const what = kind === REPEAT ? `${boxes.repeat[box]} equal modules` : kind === SUBGRAPH ? 'subgraph' : kind === CALL ? 'operator with subgraphs' : box ? 'module' : 'program';
  into.replaceChildren(
    h('p', { class: 'kicker', text: what }),
    h('h2', { text: program.text(boxes.name[box]) || operatorName(type) || 'program' }),
    type ? h('p', { class: 'mono faint wrap', text: type }) : '',
    rows([
      ['path', h('span', { class: 'mono wrap', text: program.boxPath(box) || '(root)' })],
      ['in', crumbs(context, boxes.parent[box] < 0 ? 0 : boxes.parent[box])],
      ['nodes', program.stage.inside[box].toLocaleString('en')],
      ['parameters', `${program.boxElements[box].toLocaleString('en')} elements`],
      ['bytes', bytesText(program.boxBytes[box])],
      ...(boxes.repeat[box] > 1 && kind !== REPEAT ? [['repeats', `${boxes.repeat[box]} equal modules inside`] as [string, Child]] : []),
    ]),
    box && !program.stage.alone[box] ? h('div', { class: 'buttons' }, link(isOpen ? 'Fold' : 'Unfold', () => on.toggle(box), 'button'), kind === CALL ? link('Its node', () => on.node(boxes.node[box]), 'button') : '') : '',
    ...changesIn(context, box),
    held.length ? section('Tensors', ...more(held.map(weight => weightRow(context, weight)), 20)) : '',
    operators.length ? section('Operators', h('table', {}, ...operators.slice(0, 60).map(([name, times]) => h('tr', {}, h('td', {}, link(name, () => on.file(name))), h('td', { class: 'number', text: times.toLocaleString('en') }))))) : '',
    program.stage.children[box].length ? section('Modules', ...more(program.stage.children[box].map(child => h('div', { class: 'row' },
      link(program.text(boxes.name[child]) || operatorName(program.text(boxes.type[child])), () => on.box(child)), h('span', { class: 'faint', text: `${program.text(boxes.type[child]).split('.').pop() ?? ''} ${count(program.stage.inside[child], 'op')}` }))), 30)) : '',
  );
}

export function tensorPanel(context: Context, weight: number, into: HTMLElement): void {
  const { program } = context, { weights } = program.picture;
  const users = [...new Set(program.list(program.nodesOfWeight, weight))], first = weights.first[weight], status = STATUSES[weights.status[weight]];
  const body = h('div', { 'aria-live': 'polite' });
  const load = (index: number[]): void => {
    body.replaceChildren(h('p', { class: 'faint', text: 'reading …' }));
    ask<TensorSample>(['tensor', context.number, weight, ...index].join('/')).then(
      sample => { body.replaceChildren(...numbers(sample, load)); body.dataset.ready = 'true'; },
      (error: Error) => body.replaceChildren(h('p', { class: 'error', text: error.message })),
    );
  };
  into.replaceChildren(
    h('p', { class: 'kicker', text: program.text(weights.kind[weight]) }),
    h('h2', { class: 'wrap', text: program.text(weights.name[weight]) }),
    status ? h('p', { class: `badge ${status}`, text: status }) : '',
    rows([
      ['type', typed(program.text(weights.type[weight]), context)],
      ['bytes', bytesText(weights.bytes[weight])],
      ['elements', weights.elements[weight].toLocaleString('en')],
      ['module', crumbs(context, weights.box[weight])],
      ...(first !== weight ? [['shares', link(program.text(weights.name[first]), () => context.on.weight(first))] as [string, Child]] : []),
    ]),
    ...differs(context.changes.filter(change => change.weight === weight)),
    section('Numbers', body),
    section('Used by', ...(users.length ? more(users.map(node => nodeRow(context, node)), 20) : [h('p', { class: 'faint', text: 'nothing' })])),
  );
  const button = link('Read its numbers', () => load([]), 'button');
  button.id = 'read-numbers';
  body.append(button, h('p', { class: 'faint', text: `Reads ${bytesText(weights.bytes[weight])} from the file.` }));
  if (!context.live) load([]);
}

function numbers(sample: TensorSample, load: (index: number[]) => void): HTMLElement[] {
  const { statistics: s, counts, heat } = sample, share = (n: number): string => (s.numel ? `${n.toLocaleString('en')} (${((100 * n) / s.numel).toPrecision(3)} %)` : '0');
  const out = [rows([
    ['min', numberText(s.min)], ['max', numberText(s.max)], ['mean', numberText(s.mean)], ['std', numberText(s.std)],
    ['zeros', share(s.zeros)], ['not finite', share(s.non_finite)], ['sizes', `[${sample.sizes.join(', ')}]`], ['strides', `[${sample.strides.join(', ')}]`],
    ['record', h('span', { class: 'mono wrap', text: sample.record })],
  ])];
  if (counts.length) {
    const most = Math.max(...counts, 1), canvas = h('canvas', { width: 640, height: 160, class: 'plot', role: 'img', 'aria-label': `histogram from ${numberText(s.min)} to ${numberText(s.max)}` });
    const ctx = canvas.getContext('2d') as CanvasRenderingContext2D;
    ctx.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--select') || '#0b6bd3';
    counts.forEach((n, i) => { const bar = n ? Math.max(2, (150 * n) / most) : 0; ctx.fillRect((i * 640) / counts.length, 160 - bar, 640 / counts.length - 2, bar); });
    out.push(canvas, h('div', { class: 'axis faint' }, h('span', { text: numberText(s.min) }), h('span', { text: `${sample.counted.toLocaleString('en')} elements` }), h('span', { text: numberText(s.max) })));
  }
  if (heat) out.push(...heatMap(heat, sample, load));
  return out;
}

function heatMap(heat: NonNullable<TensorSample['heat']>, sample: TensorSample, load: (index: number[]) => void): HTMLElement[] {
  const height = heat.cells.length, width = heat.cells[0]?.length ?? 0;
  if (!width) return [];
  const canvas = h('canvas', { width, height, class: 'heat', role: 'img', 'aria-label': `heat map of a slice of ${heat.rows} by ${heat.columns}` });
  const ctx = canvas.getContext('2d') as CanvasRenderingContext2D, image = ctx.createImageData(width, height);
  const most = Math.max(1e-300, ...heat.cells.flat().map(value => Math.abs(value ?? 0)));
  heat.cells.forEach((row, y) => row.forEach((value, x) => {
    const t = value === null ? NaN : value / most, to = 4 * (y * width + x);
    const colour = Number.isNaN(t) ? [255, 0, 200] : t < 0 ? [247 - 214 * -t, 247 - 145 * -t, 247 - 75 * -t] : [247 - 69 * t, 247 - 223 * t, 247 - 204 * t];
    image.data.set([...colour, 255], to);
  }));
  ctx.putImageData(image, 0, 0);
  const pickers = heat.index.map((at, axis) => h('input', {
    type: 'number', min: 0, max: sample.sizes[axis] - 1, value: at, 'aria-label': `index in dimension ${axis}`,
    onchange: (event: Event) => { const next = [...heat.index]; next[axis] = Math.max(0, Math.floor(Number((event.target as HTMLInputElement).value)) || 0); load(next); },
  }));
  return [h('p', { class: 'faint' }, 'slice [', ...pickers.flatMap(picker => [picker, ', ']), `:, :] of ${heat.rows.toLocaleString('en')} × ${heat.columns.toLocaleString('en')}`), canvas];
}

/** Findings; remarks on what is no problem are folded. */
function checks(context: Context, findings: Finding[]): HTMLElement[] {
  const notes = findings.filter(finding => finding.kind === 'note'), rest = findings.filter(finding => finding.kind !== 'note');
  return [
    ...(rest.length ? [section('Check', ...more(rest.map(finding => findingRow(context, finding)), 10))] : []),
    ...(notes.length ? [section('Notes', h('details', {}, h('summary', { text: count(notes.length, 'remark') }), ...more(notes.map(finding => findingRow(context, finding)), 20)))] : []),
  ];
}

export function programPanel(context: Context, facts: Facts | null, changes: Change[] | null, into: HTMLElement): void {
  const { program, on, findings } = context, { picture } = program;
  const bytes = program.boxBytes[0], calls = picture.nodes.kind.reduce((sum, kind) => sum + (kind === OPERATION ? 1 : 0), 0);
  into.replaceChildren(
    h('p', { class: 'kicker', text: 'program' }), h('h2', { text: picture.texts[picture.boxes.type[0]].split('.').pop() || 'program' }),
    rows([['nodes', calls.toLocaleString('en')], ['tensors', `${picture.weights.name.length.toLocaleString('en')}, ${short(program.boxElements[0])} elements, ${bytesText(bytes)}`], ...(facts?.about ?? []).map(([key, text]): [string, Child] => [key, h('span', { class: 'wrap' }, ...broken(text))])]),
    picture.guessed ? h('p', { class: 'remark', text: 'The file does not say which module a node is from: modules are guessed from the names of parameters.' }) : '',
    ...(facts?.problems ?? []).map(text => h('p', { class: 'error', text })),
    facts?.call.length ? section('Call', h('pre', { class: 'call', text: facts.call.join('\n') })) : '',
    facts?.symbols.length ? section('Symbols', h('table', {}, ...facts.symbols.map(([name, range]) => h('tr', {}, h('th', { scope: 'row' }, link(name, () => on.symbol(name), 'symbol')), h('td', { text: range }))))) : '',
    ...checks(context, findings),
    changes && !changes.length ? section('Changes', h('p', { class: 'faint', text: 'no differences' })) : '',
    ...changesIn(context, 0),
    facts?.guards.length ? section('Guards', h('details', {}, h('summary', { text: count(facts.guards.length, 'condition') }), ...more(facts.guards.map(guard => h('pre', { text: guard })), 100))) : '',
    facts?.tree.length ? section('Inputs and outputs', h('div', { class: 'tree' }, ...more(facts.tree.map(([depth, key, kind]) => {
      const row = h('div', {}, h('span', { class: 'mono', text: key }), ' ', typed(kind, context));
      row.style.paddingLeft = `${Math.min(depth, 30) * 12}px`;
      return row;
    }), 60))) : '',
    facts ? section('Signature', h('details', {}, h('summary', { text: `${count(facts.inputs.length, 'input')}, ${count(facts.outputs.length, 'output')}` }),
      ...['inputs', 'outputs'].map(which => h('table', {}, h('caption', { text: which }), h('tbody', {}, ...more((which === 'inputs' ? facts.inputs : facts.outputs).map(row => h('tr', {}, ...row.map(text => h('td', { class: 'wrap', text })))), 200)))))) : '',
  );
}

export function symbolPanel(context: Context, symbol: string, facts: Facts | null, marked: number, into: HTMLElement): void {
  const range = facts?.symbols.find(([name]) => name === symbol)?.[1] ?? 'any';
  const word = new RegExp(`(^|\\W)${symbol.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}($|\\W)`);
  const guards = (facts?.guards ?? []).filter(guard => word.test(guard));
  into.replaceChildren(
    h('p', { class: 'kicker', text: 'symbol' }), h('h2', { text: symbol }),
    rows([['range', range], ['sizes', `values of ${count(marked, 'node')}`]]),
    section('Guards', ...(guards.length ? guards.slice(0, 200).map(text => h('pre', { text })) : [h('p', { class: 'faint', text: 'none names it' })])),
    h('div', { class: 'buttons' }, link('Clear', () => context.on.mark(''), 'button')),
  );
}
