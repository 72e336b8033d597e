// A picture and the boxes that are open -> everything there is to draw, in one plane. Runs in a worker.
//
// Each open box is laid out by itself, from the innermost outwards, and kept: folding one box lays out again only those
// around it. What goes into or out of a box goes through a port on its border, one for each value.

import { Drawing, Edge, Item, layered } from './layered';
import { CALL, INPUT, OPERATION, Picture, REMOVED, REPEAT } from './wire';

export const FOLDED = 0, NODE = 1, OPEN = 2;

export interface Scene {
  width: number; height: number;
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
}

const PAD = 14, TITLE = 24;
const CHAR = 6.7;

/** What a node is called in the picture. */
export function nodeLabel(picture: Picture, node: number): string {
  const { nodes, texts } = picture;
  if (nodes.kind[node] !== OPERATION) return shorten(texts[nodes.name[node]].split('/').pop() ?? '', 28);
  return shorten(operatorName(texts[nodes.target[node]]), 28);
}

export function operatorName(target: string): string {
  const parts = target.replace(/^torch\.ops\./, '').split('.');
  if (parts.length >= 3 && target.startsWith('torch.ops.')) return parts[1];
  return parts[parts.length - 1] || target;
}

export function shorten(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 7)}…${text.slice(-6)}`;
}

export function boxTitle(picture: Picture, box: number): string {
  const name = picture.texts[picture.boxes.name[box]];
  const kind = picture.texts[picture.boxes.type[box]].split('.').pop() ?? '';
  if (picture.boxes.kind[box] === CALL) return shorten(operatorName(picture.texts[picture.boxes.type[box]]), 30);
  if (!name) return shorten(kind, 30) || 'program';
  return shorten(kind ? `${name} · ${kind}` : name, 44);
}

export class Stage {
  readonly parent: Int32Array;
  readonly depth: Int32Array;
  readonly inside: Int32Array; // box -> nodes in it, at any depth
  readonly firstNode: Int32Array;
  readonly children: number[][];
  readonly nodesOf: number[][];
  readonly chips: Int32Array;
  private readonly ranks: Float64Array;
  private readonly kept = new Map<string, Laid>();

  constructor(readonly picture: Picture) {
    const { boxes, nodes } = picture, count = boxes.parent.length;
    this.parent = Int32Array.from(boxes.parent);
    this.depth = new Int32Array(count).fill(-1);
    this.inside = new Int32Array(count);
    this.firstNode = new Int32Array(count).fill(0x7fffffff);
    this.children = boxes.parent.map(() => []);
    this.nodesOf = boxes.parent.map(() => []);
    for (let box = 0; box < count; box++) {
      let depth = 0;
      for (let at = this.parent[box]; at >= 0 && depth < 1000; at = this.parent[at]) depth++;
      this.depth[box] = depth;
    }
    nodes.box.forEach((box, node) => {
      this.nodesOf[box].push(node);
      for (let at = box; at >= 0; at = this.parent[at]) {
        this.inside[at]++;
        this.firstNode[at] = Math.min(this.firstNode[at], node);
      }
    });
    for (let box = 1; box < count; box++) if (this.inside[box]) this.children[this.parent[box]].push(box);
    for (const list of this.children) list.sort((a, b) => this.firstNode[a] - this.firstNode[b]);
    this.ranks = this.rankAll();
    this.chips = new Int32Array(nodes.kind.length);
    for (const node of picture.chips.target) this.chips[node]++;
  }

  nodeSize(node: number): { w: number; h: number; room: number } {
    const label = nodeLabel(this.picture, node);
    const chips = Math.min(3, this.chips[node]);
    return { w: Math.max(48, label.length * CHAR + 18, chips * 58 + 8), h: chips ? 40 : 24, room: this.picture.nodes.kind[node] === 2 ? 0 : 84 };
  }

  boxSize(box: number): { w: number; h: number; room: number } {
    const times = this.picture.boxes.repeat[box] > 1 ? 6 : 0;
    return { w: Math.max(120, (boxTitle(this.picture, box).length + times) * CHAR + 30), h: 46, room: 84 };
  }

  /** The open box or the visible thing in it that holds a node: from the node outwards to the root. */
  scene(open: Set<number>): Scene {
    const isOpen = new Uint8Array(this.parent.length);
    isOpen[0] = 1;
    const visible = (box: number): boolean => {
      for (let at = box; at > 0; at = this.parent[at]) if (!open.has(at)) return false;
      return true;
    };
    for (const box of open) if (box > 0 && box < isOpen.length && this.inside[box] && visible(box)) isOpen[box] = 1;
    const plans = this.plan(isOpen);
    const order = [...plans.keys()].sort((a, b) => this.depth[b] - this.depth[a]);
    const laid = new Map<number, Laid>();
    for (const box of order) laid.set(box, this.lay(box, plans.get(box) as Plan, laid, isOpen));
    return this.flatten(laid);
  }

  /** What stands in each open box and what goes between these things. */
  private plan(isOpen: Uint8Array): Map<number, Plan> {
    const { picture, parent } = this, { nodes } = picture, nodeCount = nodes.kind.length;
    const plans = new Map<number, Plan>();
    const boxSlot = new Int32Array(parent.length), nodeSlot = new Int32Array(nodeCount);
    isOpen.forEach((open, box) => {
      if (!open) return;
      const things: number[] = [...this.nodesOf[box], ...this.children[box].map(child => -1 - child)];
      const start = (thing: number): number => (thing >= 0 ? this.rank(thing) : this.rankOfBox(-1 - thing));
      things.sort((a, b) => start(a) - start(b));
      things.forEach((thing, slot) => { if (thing >= 0) nodeSlot[thing] = slot; else boxSlot[-1 - thing] = slot; });
      plans.set(box, new Plan(things));
    });
    const outermost = new Int32Array(nodeCount); // node -> the outermost folded box around it, or -1
    const home = new Int32Array(nodeCount); // node -> the innermost open box around that
    for (let node = 0; node < nodeCount; node++) {
      let folded = -1;
      for (let at = nodes.box[node]; at >= 0; at = parent[at]) if (!isOpen[at]) folded = at;
      outermost[node] = folded;
      home[node] = folded < 0 ? nodes.box[node] : parent[folded];
    }
    const connect = (value: number, from: number, to: number): void => {
      if (outermost[from] >= 0 && outermost[from] === outermost[to]) return;
      let a = home[from], b = home[to];
      let slotA = outermost[from] >= 0 ? boxSlot[outermost[from]] : nodeSlot[from];
      let slotB = outermost[to] >= 0 ? boxSlot[outermost[to]] : nodeSlot[to];
      let closedA = true, closedB = true;
      while (a !== b) {
        if (this.depth[a] >= this.depth[b]) {
          (plans.get(a) as Plan).leave(slotA, value);
          slotA = boxSlot[a];
          closedA = false;
          a = parent[a];
        } else {
          (plans.get(b) as Plan).enter(slotB, value);
          slotB = boxSlot[b];
          closedB = false;
          b = parent[b];
        }
      }
      (plans.get(a) as Plan).between(slotA, slotB, value, closedA && closedB);
    };
    const { edges, values, carries } = picture;
    for (let i = 0; i < edges.source.length; i++) connect(edges.source[i], values.node[edges.source[i]], edges.target[i]);
    for (let i = 0; i < carries.source.length; i++) connect(-2 - carries.source[i], carries.source[i], carries.target[i]);
    return plans;
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
    const items: Item[] = plan.things.map(thing => {
      const open = thing < 0 ? laid.get(-1 - thing) : undefined;
      const size = open ? { w: open.w, h: open.h, room: 84 } : thing < 0 ? this.boxSize(-1 - thing) : this.nodeSize(thing);
      return { ...size, pin: 0 };
    });
    const ins = [...plan.ins.keys()], outs = [...plan.outs.keys()], n = items.length;
    for (let i = 0; i < ins.length; i++) items.push({ w: 0, h: 0, pin: 1, room: 0 });
    for (let i = 0; i < outs.length; i++) items.push({ w: 0, h: 0, pin: 2, room: 0 });
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
        from, to, key: link.value, out: open ? (open.outs.get(link.value) ?? NaN) : from >= n ? 0 : NaN,
        in: below ? (below.ins.get(link.value) ?? NaN) : to >= n ? 0 : NaN,
      };
    });
    const drawing = layered(items, edges);
    const root = box === 0;
    const title = root ? 0 : boxTitle(this.picture, box).length * CHAR + 70;
    const w = Math.max(drawing.width + 2 * PAD, title), shift = (w - drawing.width) / 2;
    const result: Laid = {
      id: this.kept.size + 1, box, plan, drawing, n, inner, shift, w, h: drawing.height + TITLE + 2 * PAD, ins: new Map(), outs: new Map(),
    };
    ins.forEach((value, i) => result.ins.set(value, drawing.x[n + i] + shift));
    outs.forEach((value, i) => result.outs.set(value, drawing.x[n + ins.length + i] + shift));
    if (this.kept.size > 4000) this.kept.clear();
    this.kept.set(name, result);
    return result;
  }

  private flatten(laid: Map<number, Laid>): Scene {
    let items = 0, steps = 0, merged = 0;
    for (const one of laid.values()) {
      items += one.n;
      steps += one.drawing.before.length + one.plan.ins.size + one.plan.outs.size;
      for (const link of one.plan.links) merged += link.more.length;
    }
    const scene: Scene = {
      width: 0, height: 0, kind: new Uint8Array(items), id: new Int32Array(items), at: new Float32Array(4 * items),
      steps: new Float32Array(5 * steps), before: new Int32Array(steps), value: new Int32Array(steps), more: new Int32Array(steps),
      end: new Int32Array(steps).fill(-1), start: new Int32Array(steps).fill(-1), flags: new Uint8Array(steps), merged: new Int32Array(2 * merged),
    };
    let item = 0, step = 0, extra = 0;
    const stack: { one: Laid; x: number; y: number }[] = [{ one: laid.get(0) as Laid, x: 0, y: 0 }];
    scene.width = stack[0].one.w;
    scene.height = stack[0].one.h;
    while (stack.length) {
      const { one, x, y } = stack.pop() as { one: Laid; x: number; y: number };
      const { drawing, plan } = one, dx = x + one.shift, dy = y + TITLE + PAD;
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
  id: number; box: number; plan: Plan; drawing: Drawing; n: number; inner: Laid[]; shift: number; w: number; h: number;
  ins: Map<number, number>; outs: Map<number, number>;
}

interface Link { from: number; to: number; value: number; more: number[] }

/** The things in one open box, and the links between them and its border (-1). */
class Plan {
  readonly links: Link[] = [];
  readonly ins = new Map<number, number>();
  readonly outs = new Map<number, number>();
  private readonly seen = new Map<number, Link>();
  private readonly targets = new Map<number, Set<number>>();

  constructor(readonly things: number[]) {}

  enter(to: number, value: number): void {
    this.ins.set(value, 1);
    this.add(-1, to, value, false);
  }

  leave(from: number, value: number): void {
    this.outs.set(value, 1);
    this.add(from, -1, value, false);
  }

  between(from: number, to: number, value: number, closed: boolean): void {
    if (from !== to) this.add(from, to, value, closed);
  }

  /** Links between two folded things are one line, however many values it stands for. */
  private add(from: number, to: number, value: number, merge: boolean): void {
    // Of what is not merged a value goes once from one thing to another; few values go to many things.
    const key = merge ? (from + 1) * 0x4000000 + to + 1 : -1 - ((from + 1) * 0x4000000 + value + 0x2000000);
    if (!merge) { this.addOnce(key, from, to, value); return; }
    const known = this.seen.get(key);
    if (!known) {
      const link = { from, to, value, more: [] };
      this.seen.set(key, link);
      this.links.push(link);
    } else if (known.value !== value && !known.more.includes(value)) known.more.push(value);
  }

  private addOnce(key: number, from: number, to: number, value: number): void {
    const targets = this.targets.get(key);
    if (targets?.has(to)) return;
    if (targets) targets.add(to); else this.targets.set(key, new Set([to]));
    this.links.push({ from, to, value, more: [] });
  }
}

/** The boxes to open at first: as many as fit, from the outside inwards, no repeated layers. */
export function firstOpen(stage: Stage, most: number): Set<number> {
  const { boxes } = stage.picture, open = new Set<number>();
  let shown = stage.nodesOf[0].length + stage.children[0].length;
  const queue = [...stage.children[0]];
  for (let i = 0; i < queue.length; i++) {
    const box = queue[i];
    const more = stage.nodesOf[box].length + stage.children[box].length - 1;
    const repeated = boxes.kind[box] === REPEAT || boxes.repeat[box] > 1;
    if (repeated || shown + more > most) continue;
    shown += more;
    open.add(box);
    queue.push(...stage.children[box]);
  }
  return open;
}
