// Boxes of a picture -> boxes that can be drawn: plumbing is put into boxes of its own, and no box is part of a cycle.
//
//   plumbing   operators next to modules that work on no data of the model (masks, positions, sizes, checks)
//   cycles     a box whose nodes come before and after those of another box is split into parts, in the order of the data
//
// What works on data is found by following it from weights and floating-point inputs; no list of operators is needed.

import { topological } from './spine';
import { CALL, INPUT, MODULE, OPERATION, Picture, PLUMBING, REPEAT, SUBGRAPH } from './wire';

const LEAST_PLUMBING = 2, LEAST_IN_MODULE = 8, LEAST_ENDS = 5, ROUNDS = 8, MANY_READY = 200;
const FRESH = /^torch\.ops\.aten\.(new_\w+|\w+_like|sym_\w+)\./; // only the sizes or the dtype of an operand count

/** Change the boxes of a picture in place. */
export function structure(picture: Picture): void {
  if (picture.nodes.plumbing) return;
  picture.nodes.plumbing = [...findPlumbing(picture)];
  picture.boxes.note = picture.boxes.parent.map(() => '');
  numberCalls(picture);
  groupPlumbing(picture);
  groupEnds(picture);
  for (let round = 0; round < ROUNDS && splitCycles(picture); round++);
}

/** The texts of types are `f32[8, 16]`, `bf16[]`, `SymInt(s0)`. */
const isFloating = (type: string): boolean => /^(f|bf|c)\d/.test(type);
const isTensor = (type: string): boolean => /^\w+\[/.test(type);

/** For each node 1 if it does not work on data of the model, 2 if it only checks something. */
function findPlumbing(picture: Picture): Uint8Array {
  const { nodes, values, edges, chips, weights, texts } = picture, count = nodes.kind.length;
  const from = edges.source.map(value => values.node[value]), order = topological(count, from, edges.target);
  const data = new Uint8Array(count), into = byTarget(count, edges.target, from);
  const tensor = new Uint8Array(count), floating = new Uint8Array(count), results = new Uint8Array(count);
  values.node.forEach((node, value) => {
    const type = texts[values.type[value]];
    results[node] = 1;
    if (isTensor(type)) tensor[node] = 1;
    if (isFloating(type)) floating[node] = 1;
  });
  const stored = (weight: number): boolean => /^(parameter|buffer)/.test(texts[weights.kind[weight]]) && isFloating(texts[weights.type[weight]]);
  chips.target.forEach((node, i) => { if (stored(chips.source[i])) data[node] = 1; });
  for (const node of order) {
    if (nodes.kind[node] === INPUT) data[node] = floating[node];
    else if (nodes.kind[node] !== OPERATION) data[node] = 1;
    else if (FRESH.test(texts[nodes.target[node]])) data[node] = 0;
    else if (!tensor[node]) data[node] = results[node] && /custom|object/i.test(texts[nodes.target[node]]) ? 1 : 0;
    else for (const source of into(node)) if (data[source]) data[node] = 1;
  }
  const users = new Int32Array(count);
  from.forEach(node => { users[node]++; });
  const found = new Uint8Array(count), called = new Set(picture.boxes.node);
  // A call with graphs is part of the model; a check is what nothing uses, or only checks use.
  for (let i = count - 1; i >= 0; i--) {
    const node = order[i];
    if (nodes.kind[node] !== OPERATION || data[node] || called.has(node)) continue;
    found[node] = users[node] === 0 && !tensor[node] ? 2 : 1;
    if (found[node] === 2) for (const source of into(node)) if (!data[source] && nodes.kind[source] === OPERATION) users[source]--;
  }
  return found;
}

function byTarget(count: number, targets: ArrayLike<number>, sources: ArrayLike<number>): (node: number) => Int32Array {
  const start = new Int32Array(count + 1), list = new Int32Array(targets.length);
  for (let i = 0; i < targets.length; i++) start[targets[i] + 1]++;
  for (let v = 0; v < count; v++) start[v + 1] += start[v];
  const fill = start.slice();
  for (let i = 0; i < targets.length; i++) list[fill[targets[i]]++] = sources[i];
  return node => list.subarray(start[node], start[node + 1]);
}

/** "call 2 of 3", for the boxes of one module. */
function numberCalls(picture: Picture): void {
  const { boxes, texts } = picture, calls = new Map<string, number[]>();
  boxes.path.forEach((path, box) => {
    if (boxes.kind[box] !== MODULE || box === 0) return;
    const name = texts[path].replace(/@\d+$/, ''), list = calls.get(name);
    if (list) list.push(box); else calls.set(name, [box]);
  });
  for (const list of calls.values()) {
    if (list.length > 1) list.forEach((box, i) => { boxes.note[box] = `call ${i + 1} of ${list.length}`; });
  }
}

function addBox(picture: Picture, like: number, parent: number, kind: number, name: string, path: string): number {
  const { boxes, texts } = picture, text = (what: string): number => texts.push(what) - 1;
  boxes.parent.push(parent);
  boxes.kind.push(kind);
  boxes.name.push(name ? text(name) : boxes.name[like]);
  boxes.type.push(kind === PLUMBING ? 0 : boxes.type[like]);
  boxes.path.push(text(path));
  boxes.repeat.push(0);
  boxes.note.push('');
  return boxes.node.push(-1) - 1;
}

/** Put plumbing into boxes: in each box its checks together, and next to modules what is connected. */
function groupPlumbing(picture: Picture): void {
  const { boxes, nodes, values, edges, texts } = picture, plumbing = nodes.plumbing;
  const holds = new Uint8Array(boxes.parent.length);
  boxes.parent.forEach((parent, box) => { if (parent >= 0 && (boxes.kind[box] === MODULE || boxes.kind[box] === REPEAT)) holds[parent] = 1; });
  const group = new Int32Array(nodes.kind.length).map((_, node) => node);
  const find = (node: number): number => {
    while (group[node] !== node) node = group[node] = group[group[node]];
    return node;
  };
  const checks = new Map<number, number>();
  plumbing.forEach((is, node) => {
    if (is !== 2) return;
    const first = checks.get(nodes.box[node]);
    if (first === undefined) checks.set(nodes.box[node], node); else group[find(node)] = find(first);
  });
  edges.target.forEach((target, i) => {
    const source = values.node[edges.source[i]];
    if (plumbing[source] !== plumbing[target] || !plumbing[source] || nodes.box[source] !== nodes.box[target]) return;
    group[find(target)] = find(source);
  });
  const used = new Set<number>(), unused = new Map<number, number>(); // what computes nothing that is used is one group, too
  edges.target.forEach((target, i) => { const source = values.node[edges.source[i]]; if (find(source) !== find(target)) used.add(find(source)); });
  plumbing.forEach((is, node) => {
    if (is !== 1 || used.has(find(node))) return;
    const first = unused.get(nodes.box[node]);
    if (first === undefined) unused.set(nodes.box[node], find(node)); else group[find(node)] = find(first);
  });
  const members = new Map<number, number[]>();
  plumbing.forEach((is, node) => {
    if (!is) return;
    const list = members.get(find(node));
    if (list) list.push(node); else members.set(find(node), [node]);
  });
  const users = outside(picture, find);
  const names = new Map<string, number>();
  for (const [first, list] of members) {
    const parent = nodes.box[first];
    if (list.length < (plumbing[first] === 2 ? 1 : holds[parent] ? LEAST_PLUMBING : LEAST_IN_MODULE)) continue;
    const name = plumbing[first] === 2 ? 'checks' : describe(picture, list, users.get(first) ?? []);
    const key = `${parent}/${name}`, before = names.get(key) ?? 0, above = texts[boxes.path[parent]];
    names.set(key, before + 1);
    const box = addBox(picture, parent, parent, PLUMBING, name, `${above ? `${above}.` : ''}(${name}${before ? ` ${before + 1}` : ''})`);
    for (const node of list) nodes.box[node] = box;
  }
}

/** Put inputs or outputs that are parts of one container, and those that update buffers, into a box. */
function groupEnds(picture: Picture): void {
  const { nodes, texts } = picture, groups = new Map<string, number[]>();
  nodes.kind.forEach((kind, node) => {
    if (kind === OPERATION || nodes.box[node] !== 0) return;
    const role = texts[nodes.target[node]], key = texts[nodes.note[node]];
    const name = /mutation/.test(role) ? role.replace(/_/g, ' ').replace('mutation', 'updates') : /^(.+?)[[.]/.exec(key)?.[1] ?? '';
    if (!name) return;
    const group = `${kind} ${name}`, list = groups.get(group);
    if (list) list.push(node); else groups.set(group, [node]);
  });
  for (const [group, list] of groups) {
    if (list.length < LEAST_ENDS) continue;
    const name = group.slice(2), box = addBox(picture, 0, 0, PLUMBING, name, `(${name})`);
    for (const node of list) nodes.box[node] = box;
  }
}

/** The uses of the results of each group by nodes that are not in it, without checks, as (value, target). */
function outside(picture: Picture, find: (node: number) => number): Map<number, [number, number][]> {
  const { values, edges, nodes } = picture, found = new Map<number, [number, number][]>();
  edges.target.forEach((target, i) => {
    const source = values.node[edges.source[i]];
    if (!nodes.plumbing[source] || nodes.plumbing[target] === 2 || find(source) === find(target)) return;
    const list = found.get(find(source));
    if (list) list.push([edges.source[i], target]); else found.set(find(source), [[edges.source[i], target]]);
  });
  return found;
}

/** What a group of plumbing computes, in a word or two. */
function describe(picture: Picture, list: number[], uses: [number, number][]): string {
  const { nodes, values, texts } = picture;
  const operators = [...new Set(list.map(node => texts[nodes.target[node]].replace(/^torch\.ops\.\w+\./, '')))];
  const has = (name: RegExp): boolean => operators.some(operator => name.test(operator));
  const types = uses.map(([value]) => texts[values.type[value]]);
  const intoAttention = uses.some(([, target]) => /attention/.test(texts[nodes.target[target]]));
  if (intoAttention || types.some(type => /^b8|^bool/.test(type))) return has(/^tri[lu]\b/) || (has(/^(le|lt|ge|gt)\.Tensor/) && has(/^arange\b/)) ? 'causal mask' : 'mask'; // positions are compared with positions
  if (types.length && types.every(type => /^Sym/.test(type))) return 'sizes';
  if (types.some(type => /^[iu]\d/.test(type))) return has(/^(arange|cumsum)\b/) ? 'positions' : 'indices';
  return types.some(isTensor) ? 'constants' : types.length ? 'sizes' : 'unused';
}

/** The thing under each end's box that stands next to the other: a node as it is, a box as -1 - box; null for one box. */
function sides(parent: number[], depth: Int32Array, boxA: number, nodeA: number, boxB: number, nodeB: number): [number, number] {
  let a = boxA, b = boxB, thingA = nodeA, thingB = nodeB;
  while (a !== b) {
    if (depth[a] >= depth[b]) { thingA = -1 - a; a = parent[a]; } else { thingB = -1 - b; b = parent[b]; }
  }
  return [thingA, thingB];
}

/** Split or dissolve the boxes that are part of a cycle; whether there were any. */
function splitCycles(picture: Picture): boolean {
  const { boxes, nodes, edges, values, carries } = picture, count = nodes.kind.length;
  const depth = new Int32Array(boxes.parent.length);
  for (let box = 0; box < depth.length; box++) for (let at = boxes.parent[box]; at >= 0; at = boxes.parent[at]) depth[box]++;
  const from: number[] = [], to: number[] = [];
  const number = (thing: number): number => (thing >= 0 ? thing : count - 1 - thing);
  const connect = (source: number, target: number): void => {
    const [a, b] = sides(boxes.parent, depth, nodes.box[source], source, nodes.box[target], target);
    if (a !== b) { from.push(number(a)); to.push(number(b)); }
  };
  edges.target.forEach((target, i) => connect(values.node[edges.source[i]], target));
  carries.target.forEach((target, i) => connect(carries.source[i], target));
  const component = components(count + boxes.parent.length, from, to), sizes = new Map<number, number>();
  component.forEach(c => sizes.set(c, (sizes.get(c) ?? 0) + 1));
  const cyclic = boxes.parent.map((_, box) => (sizes.get(component[count + box]) ?? 1) > 1);
  if (!cyclic.some(is => is)) return false;
  let changed = false;
  cyclic.forEach((is, box) => { if (is && boxes.kind[box] === REPEAT) { dissolve(picture, box); changed = true; } });
  return changed || splitComponents(picture, component, cyclic);
}

function dissolve(picture: Picture, box: number): void {
  const { boxes } = picture;
  boxes.parent.forEach((parent, child) => { if (parent === box) boxes.parent[child] = boxes.parent[box]; });
}

/** Tarjan's strongly connected components, without recursion. */
function components(count: number, from: number[], to: number[]): Int32Array {
  const start = new Int32Array(count + 1), list = new Int32Array(from.length);
  for (const v of from) start[v + 1]++;
  for (let v = 0; v < count; v++) start[v + 1] += start[v];
  const fill = start.slice();
  from.forEach((v, i) => { list[fill[v]++] = to[i]; });
  const index = new Int32Array(count).fill(-1), low = new Int32Array(count), component = new Int32Array(count).fill(-1);
  const stack: number[] = [], next = start.slice();
  let time = 0, found = 0;
  for (let root = 0; root < count; root++) {
    if (index[root] >= 0) continue;
    const path = [root];
    while (path.length) {
      const v = path[path.length - 1];
      if (index[v] < 0) { index[v] = low[v] = time++; stack.push(v); }
      let deeper = -1;
      for (; next[v] < start[v + 1] && deeper < 0; next[v]++) {
        const w = list[next[v]];
        if (index[w] < 0) deeper = w; else if (component[w] < 0) low[v] = Math.min(low[v], index[w]);
      }
      if (deeper >= 0) { path.push(deeper); continue; }
      path.pop();
      if (path.length) low[path[path.length - 1]] = Math.min(low[path[path.length - 1]], low[v]);
      if (low[v] !== index[v]) continue;
      for (let w = -1; w !== v;) { w = stack.pop() as number; component[w] = found; }
      found++;
    }
  }
  return component;
}

/** Split each cyclic box into runs of an order of its component's nodes that stays in one box as long as it can. */
function splitComponents(picture: Picture, component: Int32Array, cyclic: boolean[]): boolean {
  const { boxes, nodes, edges, values } = picture, count = nodes.kind.length;
  const thing = new Int32Array(count).fill(-1); // the outermost cyclic box around a node; boxes in it are split with it
  for (let node = 0; node < count; node++) for (let box = nodes.box[node]; box >= 0; box = boxes.parent[box]) if (cyclic[box]) thing[node] = box;
  const key = (node: number): number => (thing[node] >= 0 ? component[count + thing[node]] : component[node]);
  const waiting = new Int32Array(count), from: number[] = [], to: number[] = [];
  edges.target.forEach((target, i) => {
    const source = values.node[edges.source[i]];
    if (source !== target && key(source) === key(target)) { from.push(source); to.push(target); waiting[target]++; }
  });
  const users = byTarget(count, from, to), taken = new Uint8Array(count), part = new Int32Array(count);
  const ready = new Map<number, Map<number, number[]>>(); // component -> box (or -1 - node) -> nodes
  const put = (node: number): void => {
    const of = ready.get(key(node)) ?? new Map<number, number[]>(), at = thing[node] >= 0 ? thing[node] : -1 - node;
    ready.set(key(node), of);
    const list = of.get(at);
    if (list) list.push(node); else of.set(at, [node]);
  };
  for (let node = count - 1; node >= 0; node--) if (!waiting[node]) put(node);
  const parts = new Map<number, number>();
  for (const of of ready.values()) {
    while (of.size) {
      let at = [...of.keys()][0];
      if (of.size <= MANY_READY) for (const one of of.keys()) if (Math.min(...(of.get(one) as number[]).slice(-4)) < Math.min(...(of.get(at) as number[]).slice(-4))) at = one;
      const run = parts.get(at) ?? 0, list = of.get(at) as number[];
      parts.set(at, run + 1);
      while (list.length) {
        const node = list.pop() as number;
        if (taken[node]) continue;
        taken[node] = 1;
        part[node] = run;
        for (const user of users(node)) if (--waiting[user] === 0) put(user);
      }
      of.delete(at);
    }
  }
  let changed = false;
  const clones = new Map<string, number>();
  const clone = (box: number, outer: number, run: number): number => {
    const name = `${box} ${run}`, known = clones.get(name);
    if (known !== undefined) return known;
    const parent = box === outer ? boxes.parent[box] : clone(boxes.parent[box], outer, run);
    const made = addBox(picture, box, parent, boxes.kind[box], '', `${picture.texts[boxes.path[box]]}#${run + 1}`);
    if (boxes.kind[box] === CALL || boxes.kind[box] === SUBGRAPH) boxes.node[made] = boxes.node[box];
    boxes.note[made] = boxes.note[box];
    clones.set(name, made);
    return made;
  };
  for (let node = 0; node < count; node++) {
    if (thing[node] < 0 || !part[node]) continue;
    nodes.box[node] = clone(nodes.box[node], thing[node], part[node]);
    changed = true;
  }
  for (const [name, made] of clones) {
    const [box, run] = name.split(' ').map(Number), total = parts.get(box);
    if (total === undefined) continue;
    const call = boxes.note[box].replace(/(, )?part .*/, '');
    boxes.note[made] = `${call ? `${call}, ` : ''}part ${run + 1} of ${total}`;
    if (run === 1) boxes.note[box] = `${call ? `${call}, ` : ''}part 1 of ${total}`;
  }
  return changed;
}
