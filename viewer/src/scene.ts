// A picture and the boxes that are open -> everything there is to draw, in one plane. Runs in a worker.
//
// Each open box is laid out by itself, from the innermost outwards, and kept: folding one box lays out again only those
// around it. What goes into or out of a box goes through a port on its border, one for each value.

import { Drawing, Edge, Item, layered } from './layered';
import { Chains, ordered } from './spine';
import { CALL, INPUT, MODULE, OPERATION, Picture, PLUMBING, REMOVED, REPEAT, SUBGRAPH } from './wire';

export const FOLDED = 0, NODE = 1, OPEN = 2;

export interface Scene {
  width: number; height: number;
  spine: number; // x of the straight chain
  main: number; // width without what is drawn next to the picture
  kind: Uint8Array; // of items: FOLDED, NODE, OPEN; open boxes before what is in them
  id: Int32Array; // box or node
  at: Float32Array; // 4 numbers each: x y w h
  steps: Float32Array; // 5 numbers each, as in `layered`
  before: Int32Array;
  value: Int32Array; // step -> the first value of its edge, -1 for "carries"
  more: Int32Array; // step -> how many values the edge stands for
  end: Int32Array; // step -> item it ends at: a node as it is, a box as -2 - box, a port on a lower border as -1e9 - box; else -1
  start: Int32Array; // step -> item it begins at, in the same way; -1 in the middle
  flags: Uint8Array; // as in `layered`; 4: carries
  merged: Int32Array; // pairs: step, a further value that its edge stands for
  insets: Int32Array; // pairs: item of a folded box, item of one of the equal modules in it, drawn open next to the picture
}

const PAD = 14, TITLE = 24, PORTS = 4, INSET_GAP = 48, INSET_ITEMS = 22, WIDE = 1080, NARROW = 260;
const FIRST_SAMPLE = 0.1, SECOND_SAMPLE = 0.25; // parts of a program that equal modules are at least, so that one of them is shown
const CHAR = 6.7;

export function operatorName(target: string): string {
  const parts = target.replace(/^torch\.ops\./, '').split('.');
  if (parts.length >= 3 && target.startsWith('torch.ops.')) return parts[1];
  return parts[parts.length - 1] || target;
}

export function shorten(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 7)}…${text.slice(-6)}`;
}

/** A box is called by its name and class; a repeated call or a part says which one it is. */
export function boxTitle(picture: Picture, box: number): string {
  const { boxes, texts } = picture, name = texts[boxes.name[box]], kind = texts[boxes.type[box]].split('.').pop() ?? '';
  if (boxes.kind[box] === CALL) return shorten(operatorName(texts[boxes.type[box]]), 30);
  const note = boxes.note[box] ? `, ${boxes.note[box]}` : '';
  if (!name) return (shorten(kind, 30) || 'program') + note;
  return shorten(kind ? `${name} · ${kind}` : name, 44) + note;
}

export class Stage {
  readonly old = new Map<string, string>(); // what labels of the old program say, where that differs (`review.ts`)
  readonly parent: Int32Array;
  readonly depth: Int32Array;
  readonly inside: Int32Array; // box -> nodes in it, at any depth
  readonly firstNode: Int32Array;
  readonly children: number[][];
  readonly modules: number[][]; // as `children`, with modules of one operation
  readonly nodesOf: number[][];
  readonly weightsOf: number[][]; // node -> its weights
  readonly boxOf: Int32Array; // node -> the box it is drawn in: not that of a module of its own
  readonly alone: Uint8Array; // box -> whether it is a module of one operation, drawn as that
  readonly aside: Uint8Array; // box -> whether it is plumbing that nothing uses: drawn only if it is open
  readonly chains: Chains;
  private readonly firstValue: Int32Array;
  private readonly ranks: Float64Array;
  private readonly kept = new Map<string, Laid>();
  private bottom = 0;

  constructor(readonly picture: Picture) {
    const { boxes, nodes } = picture, count = boxes.parent.length;
    this.parent = Int32Array.from(boxes.parent);
    this.depth = new Int32Array(count).fill(-1);
    this.inside = new Int32Array(count);
    this.firstNode = new Int32Array(count).fill(0x7fffffff);
    this.children = boxes.parent.map(() => []);
    this.modules = boxes.parent.map(() => []);
    this.nodesOf = boxes.parent.map(() => []);
    for (let box = 0; box < count; box++) {
      let depth = 0;
      for (let at = this.parent[box]; at >= 0 && depth < 1000; at = this.parent[at]) depth++;
      this.depth[box] = depth;
    }
    nodes.box.forEach((box, node) => {
      for (let at = box; at >= 0; at = this.parent[at]) {
        this.inside[at]++;
        this.firstNode[at] = Math.min(this.firstNode[at], node);
      }
    });
    this.weightsOf = nodes.kind.map(() => []);
    picture.chips.target.forEach((node, i) => this.weightsOf[node].push(picture.chips.source[i]));
    this.firstValue = new Int32Array(nodes.kind.length).fill(-1);
    for (let value = picture.values.node.length - 1; value >= 0; value--) this.firstValue[picture.values.node[value]] = value;
    this.alone = this.findAlone();
    this.aside = this.findAside();
    this.boxOf = Int32Array.from(nodes.box, box => { while (this.alone[box]) box = this.parent[box]; return box; });
    this.boxOf.forEach((box, node) => this.nodesOf[box].push(node));
    this.chains = new Chains(picture, this.depth);
    for (let box = 1; box < count; box++) if (this.inside[box] && !this.alone[box]) this.children[this.parent[box]].push(box);
    for (let box = 1; box < count; box++) if (this.inside[box]) this.modules[this.parent[box]].push(box);
    for (const list of [...this.children, ...this.modules]) list.sort((a, b) => this.firstNode[a] - this.firstNode[b]);
    this.ranks = this.rankAll();
  }

  /** Modules of one operation; what contains nothing but such a module is one, too. */
  private findAlone(): Uint8Array {
    const { boxes } = this.picture, alone = new Uint8Array(boxes.parent.length);
    for (let box = 1; box < alone.length; box++) alone[box] = boxes.kind[box] === MODULE && this.inside[box] === 1 ? 1 : 0;
    return alone;
  }

  /** Boxes of operators whose results nothing else uses, such as checks, unless they differ in a comparison. */
  private findAside(): Uint8Array {
    const { boxes, nodes, edges, values } = this.picture, aside = Uint8Array.from(boxes.kind, kind => (kind === PLUMBING ? 1 : 0));
    nodes.box.forEach((box, node) => { if (nodes.kind[node] !== OPERATION || nodes.status[node]) aside[box] = 0; });
    edges.target.forEach((target, i) => {
      const box = nodes.box[values.node[edges.source[i]]];
      if (box !== nodes.box[target]) aside[box] = 0;
    });
    return aside;
  }

  /** What a node is called: module · operator, its important arguments; an input or output by the caller's name for it. */
  label(node: number, isOld = false): string {
    const { nodes, boxes, texts } = this.picture, target = (isOld && this.old.get(`target ${node}`)) || texts[nodes.target[node]];
    const note = isOld && (this.old.has(`target ${node}`) || this.old.has(`arguments ${node}`)) ? '' : texts[nodes.note[node]];
    if (nodes.kind[node] !== OPERATION) return shorten(note || (texts[nodes.name[node]].split('/').pop() ?? ''), 34);
    const operator = operatorName(target), names: string[] = [];
    let call = '';
    for (let box = nodes.box[node]; this.alone[box]; box = this.parent[box]) {
      names.unshift(texts[boxes.name[box]]);
      call = /^call (\d+) of (\d+)/.test(boxes.note[box]) ? ` ${boxes.note[box].replace(/call (\d+) of (\d+).*/, '$1/$2')}` : call;
    }
    const module = names.join('.'), own = module && module.toLowerCase() !== operator.replace(/_$/, '') ? `${shorten(module, 26)}${call} · ` : '';
    return shorten(`${own}${operator}${own ? '' : call}${note ? ` ${note}` : ''}`, 48);
  }

  /** The shapes of the weights that a node uses, one text each: `64×3×7×7`. */
  weightShapes(node: number, isOld = false): string[] {
    const { weights, texts } = this.picture, type = (weight: number): string => (isOld && this.old.get(`weight ${weight}`)) || texts[weights.type[weight]];
    return this.weightsOf[node].map(weight => /^\w*\[(.*?)\]/.exec(type(weight))?.[1].replace(/, /g, '×') || 'scalar');
  }

  nodeSize(node: number): { w: number; h: number; room: number } {
    const label = this.label(node), { nodes } = this.picture;
    const shapes = this.weightsOf[node].length ? Math.min(190, this.weightShapes(node).slice(0, 3).join(' ').length * 5.5 + 20) : 0;
    const high = shapes > 0 || this.alone[nodes.box[node]] === 1;
    return { w: Math.max(48, label.length * CHAR + 18, shapes), h: high ? 30 : 24, room: this.room(node) };
  }

  /** Width to the right of the middle for the type of what a node gives. */
  private room(node: number): number {
    const { values, texts } = this.picture, value = this.firstValue[node];
    return value < 0 ? 0 : Math.min(96, shorten(texts[values.type[value]], 24).length * 6.1) + 8;
  }

  boxSize(box: number): { w: number; h: number; room: number } {
    const times = this.picture.boxes.repeat[box] > 1 ? 6 : 0;
    return { w: Math.max(120, (boxTitle(this.picture, box).length + times) * CHAR + 30), h: 46, room: 100 };
  }

  /** Everything to draw for a set of open boxes. */
  scene(open: Set<number>): Scene {
    const isOpen = new Uint8Array(this.parent.length);
    isOpen[0] = 1;
    const visible = (box: number, root: number): boolean => {
      for (let at = box; at !== root; at = this.parent[at]) if (at <= 0 ? root !== 0 : !open.has(at)) return false;
      return true;
    };
    const wanted = [...open].filter(box => box > 0 && box < isOpen.length && this.inside[box] && !this.alone[box]);
    for (const box of wanted) if (visible(box, 0)) isOpen[box] = 1;
    const laid = this.layAll(isOpen, 0), insets: { around: number; laid: Map<number, Laid>; box: number }[] = [];
    for (const box of wanted) {
      const around = this.parent[box];
      if (isOpen[box] || isOpen[around] || this.sample(around) !== box || !isOpen[this.parent[around]]) continue;
      const inner = new Uint8Array(isOpen.length);
      for (const other of wanted) if (visible(other, box)) inner[other] = 1;
      inner[box] = 1;
      insets.push({ around, laid: this.layAll(inner, box), box });
    }
    return this.flatten(laid, insets);
  }

  /** The first of the equal modules in a box, which can be shown for all; -1 if it has none. */
  sample(box: number): number {
    const { boxes } = this.picture;
    return box > 0 && (boxes.kind[box] === REPEAT || boxes.repeat[box] > 1) ? this.children[box][0] ?? -1 : -1;
  }

  private layAll(isOpen: Uint8Array, root: number): Map<number, Laid> {
    const plans = this.plan(isOpen, root), laid = new Map<number, Laid>();
    const order = [...plans.keys()].sort((a, b) => this.depth[b] - this.depth[a]);
    for (const box of order) laid.set(box, this.lay(box, plans.get(box) as Plan, laid, isOpen));
    return laid;
  }

  /** What stands in each open box and what goes between these things. */
  private plan(isOpen: Uint8Array, root: number): Map<number, Plan> {
    const { picture, parent } = this, { nodes } = picture, nodeCount = nodes.kind.length;
    const plans = new Map<number, Plan>();
    const boxSlot = new Int32Array(parent.length), nodeSlot = new Int32Array(nodeCount);
    isOpen.forEach((open, box) => {
      if (!open) return;
      const things: number[] = [...this.nodesOf[box], ...this.children[box].filter(child => isOpen[child] || !this.aside[child]).map(child => -1 - child)];
      const start = (thing: number): number => (thing >= 0 ? this.rank(thing) : this.rankOfBox(-1 - thing));
      things.sort((a, b) => start(a) - start(b));
      things.forEach((thing, slot) => { if (thing >= 0) nodeSlot[thing] = slot; else boxSlot[-1 - thing] = slot; });
      plans.set(box, new Plan(things));
    });
    const outermost = new Int32Array(nodeCount); // node -> the outermost folded box around it, or -1
    const home = new Int32Array(nodeCount); // node -> the innermost open box around that
    for (let node = 0; node < nodeCount; node++) {
      let folded = -1, at = this.boxOf[node];
      for (; at >= 0 && at !== root; at = parent[at]) if (!isOpen[at]) folded = at;
      outermost[node] = folded;
      home[node] = at < 0 ? -1 : folded < 0 ? this.boxOf[node] : parent[folded];
    }
    const depth = (box: number): number => (box < 0 ? -1 : this.depth[box]), above = (box: number): number => (box === root ? -1 : parent[box]);
    const bundles = this.bundle(outermost);
    const connect = (value: number, from: number, to: number): void => {
      let a = home[from], b = home[to];
      if ((a < 0 && b < 0) || this.aside[outermost[from]] || this.aside[outermost[to]]) return;
      if (a >= 0 && b >= 0 && outermost[from] >= 0 && outermost[from] === outermost[to]) return;
      let slotA = outermost[from] >= 0 ? boxSlot[outermost[from]] : nodeSlot[from];
      let slotB = outermost[to] >= 0 ? boxSlot[outermost[to]] : nodeSlot[to];
      const lead = bundles(from, to) ?? value;
      let closedA = true, closedB = true;
      while (a !== b) {
        if (depth(a) >= depth(b)) {
          (plans.get(a) as Plan).leave(slotA, lead, value);
          slotA = boxSlot[a];
          closedA = false;
          a = above(a);
        } else {
          (plans.get(b) as Plan).enter(slotB, lead, value);
          slotB = boxSlot[b];
          closedB = false;
          b = above(b);
        }
      }
      if (a >= 0) (plans.get(a) as Plan).between(slotA, slotB, lead, value, closedA && closedB);
    };
    const { edges, values, carries } = picture;
    for (let i = 0; i < edges.source.length; i++) connect(edges.source[i], values.node[edges.source[i]], edges.target[i]);
    for (let i = 0; i < carries.source.length; i++) connect(-2 - carries.source[i], carries.source[i], carries.target[i]);
    for (const plan of plans.values()) plan.sort();
    return plans;
  }

  /** Of two nodes in folded boxes the value whose line stands for all values from one box to the other. */
  private bundle(outermost: Int32Array): (from: number, to: number) => number | undefined {
    const { edges, values } = this.picture, lead = new Map<number, number>(), main = new Set([...this.chains.enters, ...this.chains.leaves]);
    const key = (from: number, to: number): number => outermost[from] * 0x4000000 + outermost[to];
    edges.source.forEach((value, i) => {
      const from = values.node[value], to = edges.target[i];
      if (outermost[from] < 0 || outermost[to] < 0) return;
      const known = lead.get(key(from, to));
      if (known === undefined || (main.has(value) && !main.has(known))) lead.set(key(from, to), value);
    });
    return (from, to) => (outermost[from] < 0 || outermost[to] < 0 ? undefined : lead.get(key(from, to)));
  }

  /** Outputs come last in their graph, inputs first; otherwise the order of execution, what is gone after its arguments. */
  private rankAll(): Float64Array {
    const { nodes, edges, values } = this.picture;
    const ranks = Float64Array.from(nodes.kind, (kind, node) => (kind === INPUT ? node - 1e9 : kind === OPERATION ? node : node + 1e9));
    const gone = nodes.status.some(status => status === REMOVED);
    if (!gone) return ranks;
    const last = new Float64Array(ranks.length).fill(-1);
    edges.target.forEach((target, i) => {
      if (nodes.status[target] !== REMOVED) return;
      const from = values.node[edges.source[i]];
      if (nodes.kind[from] === OPERATION) last[target] = Math.max(last[target], ranks[from]);
      ranks[target] = last[target] + 1e-3 + target * 1e-9;
    });
    return ranks;
  }

  private rank(node: number): number { return this.ranks[node]; }

  private rankOfBox(box: number): number { return this.firstNode[box]; }

  private lay(box: number, plan: Plan, laid: Map<number, Laid>, isOpen: Uint8Array): Laid {
    const inner = plan.things.filter(thing => thing < 0 && isOpen[-1 - thing]).map(thing => laid.get(-1 - thing) as Laid);
    const name = `${box}:${inner.map(one => one.id).join(',')}`;
    const known = this.kept.get(name);
    if (known) return known;
    const { chains } = this, chain = chains.ofBox[box];
    const isMain = (thing: number): boolean => (thing >= 0 ? chains.ofNode[thing] : chains.ofBox[-1 - thing]) === chain;
    const items: Item[] = plan.things.map(thing => {
      const open = thing < 0 ? laid.get(-1 - thing) : undefined;
      const size = open ? { w: open.w, h: open.h, room: 100 } : thing < 0 ? this.boxSize(-1 - thing) : this.nodeSize(thing);
      return { ...size, pin: 0, spine: isMain(thing) ? open?.zero ?? size.w / 2 : NaN };
    });
    const ins = [...plan.ins.keys()], outs = [...plan.outs.keys()], n = items.length;
    for (const value of ins) items.push({ w: 0, h: 0, pin: 1, room: 0, spine: value === chains.enters[box] ? 0 : NaN });
    for (const value of outs) items.push({ w: 0, h: 0, pin: 2, room: 0, spine: value === chains.leaves[box] ? 0 : NaN });
    const slot = new Map<number, number>();
    ins.forEach((value, i) => slot.set(value, n + i));
    const outSlot = new Map<number, number>();
    outs.forEach((value, i) => outSlot.set(value, n + ins.length + i));
    const edges: Edge[] = plan.links.map(link => {
      const from = link.from < 0 ? (slot.get(link.value) as number) : link.from;
      const to = link.to < 0 ? (outSlot.get(link.value) as number) : link.to;
      const open = from < n && plan.things[from] < 0 ? laid.get(-1 - plan.things[from]) : undefined;
      const below = to < n && plan.things[to] < 0 ? laid.get(-1 - plan.things[to]) : undefined;
      return {
        spine: this.isStraight(box, items, plan, link, from, to),
        from, to, key: link.value, out: open ? (open.outs.get(link.value) ?? NaN) : from >= n ? 0 : NaN,
        in: below ? (below.ins.get(link.value) ?? NaN) : to >= n ? 0 : NaN,
      };
    });
    const drawing = layered(items, edges);
    const root = box === 0;
    const title = root ? 0 : boxTitle(this.picture, box).length * CHAR + 70;
    const w = Math.max(drawing.width + 2 * PAD, title), shift = (w - drawing.width) / 2;
    const result: Laid = {
      id: this.kept.size + 1, box, plan, drawing, n, inner, shift, w, zero: drawing.zero + shift, top: (root ? 0 : TITLE) + (ins.length ? PORTS : PAD), h: 0, ins: new Map(), outs: new Map(),
    };
    result.h = result.top + drawing.height + (outs.length ? PORTS : PAD);
    ins.forEach((value, i) => result.ins.set(value, drawing.x[n + i] + shift));
    outs.forEach((value, i) => result.outs.set(value, drawing.x[n + ins.length + i] + shift));
    if (this.kept.size > 4000) this.kept.clear();
    this.kept.set(name, result);
    return result;
  }

  /** Whether a link is part of the chain that goes straight through a box: it joins two neighbours of the chain. */
  private isStraight(box: number, items: Item[], plan: Plan, link: Link, from: number, to: number): boolean {
    if (Number.isNaN(items[from].spine) || Number.isNaN(items[to].spine)) return false;
    const { chains } = this, a = link.from < 0 ? 0 : plan.things[link.from], b = link.to < 0 ? 0 : plan.things[link.to];
    if (link.from < 0) return this.holds(b, chains.first[box]);
    const last = a >= 0 ? a : chains.last[-1 - a];
    if (link.to < 0) return this.holds(a, chains.last[box]);
    return last >= 0 && chains.next[last] >= 0 && this.holds(b, chains.next[last]);
  }

  /** Whether a thing is a node or a box around it. */
  private holds(thing: number, node: number): boolean {
    if (thing >= 0) return thing === node;
    for (let box = node < 0 ? -1 : this.boxOf[node]; box >= 0; box = this.parent[box]) if (box === -1 - thing) return true;
    return false;
  }

  private flatten(main: Map<number, Laid>, insets: { around: number; laid: Map<number, Laid>; box: number }[]): Scene {
    let items = insets.length, steps = 0, merged = 0;
    const laid = new Map([main, ...insets.map(inset => inset.laid)].flatMap(map => [...map]));
    for (const one of laid.values()) {
      items += one.n;
      steps += one.drawing.before.length + one.plan.ins.size + one.plan.outs.size;
      for (const link of one.plan.links) merged += link.more.length;
    }
    const scene: Scene = {
      width: 0, height: 0, spine: (laid.get(0) as Laid).zero, main: (laid.get(0) as Laid).w, kind: new Uint8Array(items), id: new Int32Array(items), at: new Float32Array(4 * items),
      steps: new Float32Array(5 * steps), before: new Int32Array(steps), value: new Int32Array(steps), more: new Int32Array(steps),
      end: new Int32Array(steps).fill(-1), start: new Int32Array(steps).fill(-1), flags: new Uint8Array(steps), merged: new Int32Array(2 * merged),
      insets: new Int32Array(2 * insets.length),
    };
    let item = 0, step = 0, extra = 0;
    const stack: { one: Laid; x: number; y: number }[] = [{ one: laid.get(0) as Laid, x: 0, y: 0 }];
    scene.width = stack[0].one.w;
    scene.height = stack[0].one.h;
    let placed = 0;
    for (;;) {
      if (!stack.length) {
        // Next to the picture, as high as the box that it is a sample of, one below another.
        const inset = insets[placed];
        if (!inset) break;
        const one = inset.laid.get(inset.box) as Laid, folded = scene.id.subarray(0, item).findIndex((id, i) => id === inset.around && scene.kind[i] === FOLDED);
        const right = (laid.get(0) as Laid).w + INSET_GAP, y = Math.max(placed ? this.bottom + PAD : PAD, scene.at[4 * folded + 1] + scene.at[4 * folded + 3] / 2 - one.h / 2);
        scene.kind[item] = OPEN;
        scene.id[item] = inset.box;
        scene.at.set([right, y, one.w, one.h], 4 * item);
        scene.insets.set([folded, item], 2 * placed++);
        item++;
        stack.push({ one, x: right, y });
        this.bottom = y + one.h;
        scene.width = Math.max(scene.width, right + one.w + PAD);
        scene.height = Math.max(scene.height, this.bottom + PAD);
      }
      const { one, x, y } = stack.pop() as { one: Laid; x: number; y: number };
      const { drawing, plan } = one, dx = x + one.shift, dy = y + one.top;
      plan.things.forEach((thing, i) => {
        const inner = thing < 0 ? laid.get(-1 - thing) : undefined;
        const size = inner ?? (thing < 0 ? this.boxSize(-1 - thing) : this.nodeSize(thing));
        scene.kind[item] = inner ? OPEN : thing < 0 ? FOLDED : NODE;
        scene.id[item] = thing < 0 ? -1 - thing : thing;
        scene.at.set([dx + drawing.x[i], dy + drawing.y[i], size.w, size.h], 4 * item);
        item++;
        if (inner) stack.push({ one: inner, x: dx + drawing.x[i], y: dy + drawing.y[i] });
      });
      const base = step;
      const code = (slot: number, isEnd: boolean): number =>
        slot < 0 ? (isEnd ? -1_000_000_000 - one.box : -1) : plan.things[slot] >= 0 ? plan.things[slot] : -1 + plan.things[slot];
      for (let i = 0; i < drawing.before.length; i++, step++) {
        for (let k = 0; k < 5; k++) scene.steps[5 * step + k] = drawing.steps[5 * i + k] + (k === 0 || k === 3 ? dx : dy);
        scene.before[step] = drawing.before[i] < 0 ? -1 : base + drawing.before[i];
        const link = plan.links[drawing.last[i] >= 0 ? drawing.last[i] : drawing.first[i]];
        scene.value[step] = link.value;
        scene.more[step] = link.more.length + 1;
        scene.flags[step] = drawing.flags[i] | (link.value < -1 ? 4 : 0);
        if (drawing.before[i] < 0) scene.start[step] = code(link.from, false);
        if (drawing.last[i] >= 0) {
          scene.end[step] = code(link.to, true);
          for (const value of link.more) { scene.merged[extra++] = step; scene.merged[extra++] = value; }
        }
      }
      // From the border to where the drawing begins, and back to it at the end.
      let port = 0;
      for (const [sides, from, to, down] of [[plan.ins, y, dy, 1], [plan.outs, dy + drawing.height, y + one.h, 0]] as const) {
        for (const value of sides.keys()) {
          const px = dx + drawing.x[one.n + port++];
          scene.steps.set([px, from, (from + to) / 2, px, to], 5 * step);
          scene.before[step] = -1;
          scene.value[step] = value;
          scene.more[step] = 1;
          scene.flags[step] = (value < -1 ? 4 : 0) | 8;
          scene.end[step] = down ? -1 : -1_000_000_000 - one.box;
          step++;
        }
      }
    }
    return scene;
  }
}

interface Laid {
  id: number; box: number; plan: Plan; drawing: Drawing; n: number; inner: Laid[]; shift: number; w: number; top: number; h: number; zero: number;
  ins: Map<number, number>; outs: Map<number, number>;
}

interface Link { from: number; to: number; value: number; more: number[] }

/** The things in one open box, and the links between them and its border (-1). */
class Plan {
  readonly links: Link[] = [];
  readonly ins = new Map<number, number>();
  readonly outs = new Map<number, number>();
  private readonly seen = new Map<number, Link>();
  private readonly targets = new Map<number, Map<number, Link>>();

  constructor(readonly things: number[]) {}

  /** Add a line of the value `lead`, which stands for another value, too. */
  enter(to: number, lead: number, value: number): void {
    this.ins.set(lead, 1);
    this.addOnce(-1, to, lead, value);
  }

  leave(from: number, lead: number, value: number): void {
    this.outs.set(lead, 1);
    this.addOnce(from, -1, lead, value);
  }

  between(from: number, to: number, lead: number, value: number, closed: boolean): void {
    if (from === to) return;
    if (closed) this.merge(from, to, value); else this.addOnce(from, to, lead, value);
  }

  /** The things in an order in which all links go forward, as far as there is one, and otherwise as they are executed. */
  sort(): void {
    const inner = this.links.filter(link => link.from >= 0 && link.to >= 0);
    if (inner.every(link => link.from < link.to)) return;
    const order = ordered(this.things.length, inner.map(link => link.from), inner.map(link => link.to)), place = new Int32Array(order.length);
    order.forEach((slot, i) => { place[slot] = i; });
    const things = [...order].map(slot => this.things[slot]);
    things.forEach((thing, i) => { this.things[i] = thing; });
    for (const link of this.links) {
      if (link.from >= 0) link.from = place[link.from];
      if (link.to >= 0) link.to = place[link.to];
    }
  }

  /** Links between two folded things are one line, however many values it stands for. */
  private merge(from: number, to: number, value: number): void {
    const key = (from + 1) * 0x4000000 + to + 1, known = this.seen.get(key);
    if (known) { join(known, value); return; }
    const link: Link = { from, to, value, more: [] };
    this.seen.set(key, link);
    this.links.push(link);
  }

  /** Of what is not merged a value goes once from one thing to another; few values go to many things. */
  private addOnce(from: number, to: number, lead: number, value: number): void {
    const key = (from + 1) * 0x4000000 + lead + 0x2000000, targets = this.targets.get(key) ?? new Map<number, Link>(), known = targets.get(to);
    if (known) { join(known, value); return; }
    const link: Link = { from, to, value: lead, more: value === lead ? [] : [value] };
    this.targets.set(key, targets.set(to, link));
    this.links.push(link);
  }
}

function join(link: Link, value: number): void {
  if (link.value !== value && !link.more.includes(value)) link.more.push(value);
}

/** The boxes to open at first: as many as fit, from the outside inwards, but those in `shut`; of equal modules the first one, next to the rest. */
export function firstOpen(stage: Stage, most: number, shut: ReadonlySet<number> = new Set()): Set<number> {
  const open = new Set<number>(), { kind, type } = stage.picture.boxes, all = stage.inside[0];
  const size = (box: number): number => stage.nodesOf[box].length + stage.children[box].filter(child => kind[child] !== PLUMBING).length;
  // Of a layer that has equal ones next to it, those are shown.
  const isOne = (box: number): boolean => stage.children[stage.parent[box]].some(other => kind[other] === REPEAT && type[other] === type[box]);
  // A module without modules is a detail, unless it is most of the program.
  const isLeaf = (box: number): boolean => kind[box] === MODULE && !stage.modules[box].some(child => kind[child] !== PLUMBING) && 2 * stage.inside[box] < all;
  // Two large parts next to one another, such as an encoder and a decoder, are both opened.
  const isTower = (box: number): boolean => stage.children[stage.parent[box]].every(other => other === box || type[other] !== type[box] || stage.inside[other] > 0.2 * all)
    && stage.inside[box] > 0.2 * all && stage.children[stage.parent[box]].some(other => other !== box && kind[other] === MODULE && stage.inside[other] > 0.2 * all);
  let shown = size(0);
  // Modules of one class at one depth, and the graphs of one call, are opened together or not at all.
  const fill = (start: number[], limit: number): void => {
    for (let level = start; level.length;) {
      const classes = new Map<string, number[]>();
      for (const box of level) {
        if (kind[box] === PLUMBING || stage.sample(box) >= 0) continue;
        const name = kind[box] === MODULE && type[box] ? `class ${type[box]}` : kind[box] === SUBGRAPH ? `graphs of ${stage.parent[box]}` : `box ${box}`, list = classes.get(name);
        if (list) list.push(box); else classes.set(name, [box]);
      }
      const opened: number[] = [];
      for (const list of classes.values()) {
        const more = list.reduce((sum, box) => sum + size(box) - 1, 0), only = more <= 0 || shown + more <= limit || (list.every(isTower) && shown + more <= 3 * limit);
        if (!only || list.some(box => isOne(box) || shut.has(box)) || list.every(isLeaf)) continue;
        shown += more;
        opened.push(...list.filter(box => !isLeaf(box)));
      }
      for (const box of opened) open.add(box);
      level = opened.flatMap(box => stage.children[box]);
    }
  };
  fill(stage.children[0], most);
  const isSeen = (box: number): boolean => box <= 0 || (open.has(box) && isSeen(stage.parent[box]));
  const samples = stage.parent.map((_, box) => box).filter(box => stage.sample(box) >= 0 && isSeen(stage.parent[box])).sort((a, b) => stage.inside[b] - stage.inside[a]);
  const alike = (box: number): string => `${type[stage.sample(box)]} ${stage.inside[stage.sample(box)]}`; // one of these is enough
  const isLarge = (box: number, i: number): boolean => stage.inside[box] > (i ? SECOND_SAMPLE : FIRST_SAMPLE) * all;
  for (const box of samples.filter((box, i) => samples.findIndex(other => alike(other) === alike(box)) === i).slice(0, 2).filter(isLarge)) {
    const sample = stage.sample(box);
    open.add(sample);
    shown = size(sample);
    fill(stage.children[sample], INSET_ITEMS);
  }
  // What is next to the picture stays in sight: details of a wide one are folded, and towers if it is too wide by itself.
  // What there is room for then is found anew.
  const isDetail = (box: number): boolean => stage.sample(stage.parent[box]) !== box && stage.children[box].every(child => !open.has(child) && !open.has(stage.sample(child)));
  const scene = stage.scene(open);
  if (scene.width <= WIDE) return open;
  let widest = -1, width = NARROW;
  scene.kind.forEach((is, i) => {
    const box = scene.id[i];
    if (is === OPEN && box > 0 && isDetail(box) && (scene.main > WIDE || !isTower(box)) && scene.at[4 * i + 2] > width) { widest = box; width = scene.at[4 * i + 2]; }
  });
  return widest < 0 ? open : firstOpen(stage, most, new Set([...shut, widest]));
}
