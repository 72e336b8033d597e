// A picture with what is asked of it again and again: neighbours, cones, paths, search, symbols.

import { parseQuery, type Field, type Term } from './query';
import { operatorName, Stage } from './scene';
import { OPERATION, OUTPUT, Picture, SUBGRAPH } from './wire';

interface Csr { start: Int32Array; list: Int32Array }

function group(count: number, keys: ArrayLike<number>, values: ArrayLike<number>): Csr {
  const start = new Int32Array(count + 1);
  for (let i = 0; i < keys.length; i++) start[keys[i] + 1]++;
  for (let i = 0; i < count; i++) start[i + 1] += start[i];
  const fill = start.slice(), list = new Int32Array(keys.length);
  for (let i = 0; i < keys.length; i++) list[fill[keys[i]]++] = values[i];
  return { start, list };
}

export interface Hit { kind: 'node' | 'box' | 'weight'; id: number; title: string; note: string; where: string }
export interface Found { hits: Hit[]; marked: Uint8Array; total: number; problem: string }

export class Program {
  readonly stage: Stage;
  readonly users: Csr; // value -> nodes
  readonly inputs: Csr; // node -> values
  readonly results: Csr; // node -> values
  readonly next: Csr; // node -> nodes
  readonly previous: Csr;
  readonly returned: Csr; // node -> outputs of the graphs that it carries
  readonly weightsOf: Csr; // node -> weights
  readonly nodesOfWeight: Csr;
  readonly nodeCount: number;
  readonly boxBytes: Float64Array; // of the records of what a box holds, each record once
  readonly boxElements: Float64Array;

  constructor(readonly picture: Picture) {
    this.stage = new Stage(picture);
    const { boxes, edges, values, nodes, chips, weights, carries } = picture, n = (this.nodeCount = nodes.kind.length);
    this.users = group(values.node.length, edges.source, edges.target);
    this.inputs = group(n, edges.target, edges.source);
    this.results = group(n, values.node, values.node.map((_, i) => i));
    const from = [...edges.source.map(value => values.node[value]), ...carries.source], to = [...edges.target, ...carries.target];
    this.next = group(n, from, to);
    this.previous = group(n, to, from);
    const outputs = nodes.kind.flatMap((kind, node) => (kind === OUTPUT && boxes.kind[nodes.box[node]] === SUBGRAPH ? [node] : []));
    this.returned = group(n, outputs.map(node => boxes.node[nodes.box[node]]), outputs);
    this.weightsOf = group(n, chips.target, chips.source);
    this.nodesOfWeight = group(weights.name.length, chips.source, chips.target);
    this.boxBytes = new Float64Array(picture.boxes.parent.length);
    this.boxElements = new Float64Array(picture.boxes.parent.length);
    weights.box.forEach((box, weight) => {
      for (let at = box; at >= 0; at = picture.boxes.parent[at]) {
        if (weights.first[weight] === weight) this.boxBytes[at] += weights.bytes[weight];
        this.boxElements[at] += weights.elements[weight];
      }
    });
  }

  text(number: number): string { return this.picture.texts[number]; }
  nodeName(node: number): string { return this.text(this.picture.nodes.name[node]); }
  boxPath(box: number): string { return this.text(this.picture.boxes.path[box]); }

  list(csr: Csr, of: number): Int32Array { return csr.list.subarray(csr.start[of], csr.start[of + 1]); }

  /** The nodes that a node depends on (-1) or that depend on it (1), itself among them; of a node with graphs, on their outputs. */
  cone(node: number, direction: -1 | 1): Uint8Array {
    const marked = new Uint8Array(this.nodeCount), stack = [node], { boxes, nodes } = this.picture;
    const visit = (other: number): void => { if (!marked[other]) { marked[other] = 1; stack.push(other); } };
    marked[node] = 1;
    while (stack.length) {
      const at = stack.pop() as number;
      this.list(direction < 0 ? this.previous : this.next, at).forEach(visit);
      if (direction < 0) this.list(this.returned, at).forEach(visit);
      else if (nodes.kind[at] === OUTPUT && boxes.kind[nodes.box[at]] === SUBGRAPH) {
        // What uses the caller's results depends on this output; its other graphs do not.
        const caller = boxes.node[nodes.box[at]];
        marked[caller] = 1;
        for (const value of this.list(this.results, caller)) this.list(this.users, value).forEach(visit);
      }
    }
    return marked;
  }

  /** The nodes on a shortest way from one to another, with the flow or else against it; null where there is none. */
  path(from: number, to: number): number[] | null {
    for (const [a, b] of [[from, to], [to, from]]) {
      const before = new Int32Array(this.nodeCount).fill(-2), queue = [a];
      before[a] = -1;
      for (let i = 0; i < queue.length && before[b] === -2; i++) {
        for (const other of this.list(this.next, queue[i])) if (before[other] === -2) { before[other] = queue[i]; queue.push(other); }
      }
      if (before[b] === -2) continue;
      const found = [];
      for (let at = b; at !== -1; at = before[at]) found.push(at);
      return found.reverse();
    }
    return null;
  }

  /** The nodes with a value whose type has a symbol in it. */
  sizedBy(symbol: string): Uint8Array {
    const marked = new Uint8Array(this.nodeCount), { values, texts } = this.picture;
    const name = symbol.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    const whole = new RegExp(`(^|[^\\w])${name}($|[^\\w])`);
    const known = new Map<number, boolean>();
    values.type.forEach((type, value) => {
      let has = known.get(type);
      if (has === undefined) { has = whole.test(texts[type]); known.set(type, has); }
      if (has) marked[values.node[value]] = 1;
    });
    return marked;
  }

  /** Nodes, modules and weights that meet all terms of a query (`query.ts`). */
  search(query: string, most: number): Found {
    const { nodes, boxes, values, texts, weights } = this.picture, marked = new Uint8Array(this.nodeCount), hits: Hit[] = [];
    const found: Found = { hits, marked, total: 0, problem: '' };
    let terms: Term[] = [];
    try { terms = parseQuery(query); } catch (error) { found.problem = (error as Error).message; }
    if (!terms.length) return found;
    // Each text of the table is looked at once for each term, whatever uses it.
    const tests = terms.map(term => { const is = new Uint8Array(texts.length); texts.forEach((text, i) => { if (term.test(text)) is[i] = 1; }); return is; });
    const meets = (fields: Partial<Record<Field, number[]>>): boolean => terms.every((term, k) => {
      const is = tests[k], of = term.field === 'any' ? Object.values(fields).flat() : fields[term.field] ?? [];
      return of.some(text => is[text]);
    });
    const add = (hit: Hit): void => { found.total++; if (hits.length < most) hits.push(hit); };
    boxes.path.forEach((path, box) => {
      if (!box || boxes.kind[box] !== 0 || !this.stage.inside[box]) return;
      const own = [boxes.name[box], boxes.type[box]], isOwn = terms.some((term, k) => own.some(text => tests[k][text]) || (term.field === 'module' && tests[k][path]));
      if (isOwn && meets({ module: [...own, path] })) add({ kind: 'box', id: box, title: texts[path], note: texts[boxes.type[box]].split('.').pop() ?? '', where: '' });
    });
    weights.name.forEach((name, weight) => {
      if (!meets({ name: [name], shape: [weights.type[weight]], dtype: [weights.type[weight]] })) return;
      add({ kind: 'weight', id: weight, title: texts[name], note: texts[weights.type[weight]], where: '' });
      for (const node of this.list(this.nodesOfWeight, weight)) marked[node] = 1;
    });
    for (let node = 0; node < this.nodeCount; node++) {
      const own = [...this.list(this.results, node)], types = own.map(value => values.type[value]), box = nodes.box[node];
      const self = [nodes.name[node], nodes.target[node], nodes.source[node], nodes.note[node], ...types, ...own.map(value => values.name[value])];
      if (!terms.some((term, k) => term.field === 'module' || self.some(text => tests[k][text]))) continue;
      if (!meets({ op: [nodes.target[node]], name: [nodes.name[node], ...own.map(value => values.name[value])], shape: types, dtype: types, file: [nodes.source[node]], module: [boxes.path[box], boxes.type[box]], any: [nodes.note[node]] })) continue;
      marked[node] = 1;
      const type = own.length ? texts[types[0]] : '';
      add({ kind: 'node', id: node, title: texts[nodes.name[node]], note: `${nodes.kind[node] === OPERATION ? operatorName(texts[nodes.target[node]]) : texts[nodes.target[node]]}  ${type}`, where: texts[boxes.path[box]] });
    }
    return found;
  }

  /** Operator -> how often it is called in a box. */
  operators(box: number): [string, number][] {
    const counts = new Map<string, number>();
    const stack = [box];
    while (stack.length) {
      const at = stack.pop() as number;
      for (const node of this.stage.nodesOf[at]) {
        if (this.picture.nodes.kind[node] !== OPERATION) continue;
        const name = this.text(this.picture.nodes.target[node]).replace(/^torch\.ops\./, '');
        counts.set(name, (counts.get(name) ?? 0) + 1);
      }
      stack.push(...this.stage.children[at]);
    }
    return [...counts].sort((a, b) => b[1] - a[1]);
  }

  /** The boxes around a node or a box, outermost first, without the root. */
  around(box: number): number[] {
    const found = [];
    for (let at = box; at > 0; at = this.picture.boxes.parent[at]) found.push(at);
    return found.reverse();
  }
}
