// The backbone of a program: its longest chain of nodes, which a drawing puts into one straight column.

import { OPERATION, OUTPUT, Picture } from './wire';

/** The nodes in an order in which every edge goes forward; where a file has cycles, the rest in its own order. */
export function topological(count: number, from: ArrayLike<number>, to: ArrayLike<number>): Int32Array {
  const start = new Int32Array(count + 1), waiting = new Int32Array(count);
  for (let i = 0; i < from.length; i++) { start[from[i] + 1]++; waiting[to[i]]++; }
  for (let v = 0; v < count; v++) start[v + 1] += start[v];
  const fill = start.slice(), list = new Int32Array(from.length);
  for (let i = 0; i < from.length; i++) list[fill[from[i]]++] = to[i];
  const order = new Int32Array(count), done = new Uint8Array(count);
  let at = 0;
  // A stack, so that what follows from one another stays together.
  const ready: number[] = [];
  for (let v = count - 1; v >= 0; v--) if (!waiting[v]) ready.push(v);
  for (let next = 0; at < count;) {
    let v = ready.pop();
    if (v === undefined) {
      while (done[next]) next++;
      v = next;
    }
    if (done[v]) continue;
    done[v] = 1;
    order[at++] = v;
    for (let k = start[v + 1] - 1; k >= start[v]; k--) if (--waiting[list[k]] === 0 && !done[list[k]]) ready.push(list[k]);
  }
  return order;
}

/** As `topological`, but of what is ready the one with the least number comes first. */
export function ordered(count: number, from: ArrayLike<number>, to: ArrayLike<number>): Int32Array {
  const waiting = new Int32Array(count), users: number[][] = Array.from({ length: count }, () => []);
  for (let i = 0; i < from.length; i++) { users[from[i]].push(to[i]); waiting[to[i]]++; }
  const heap: number[] = [], order = new Int32Array(count), done = new Uint8Array(count);
  const push = (v: number): void => {
    let i = heap.push(v) - 1;
    for (let up = (i - 1) >> 1; i > 0 && heap[up] > heap[i]; i = up, up = (i - 1) >> 1) [heap[up], heap[i]] = [heap[i], heap[up]];
  };
  const pop = (): number => {
    const top = heap[0], last = heap.pop() as number;
    if (heap.length) {
      heap[0] = last;
      for (let i = 0, down = 1; down < heap.length; i = down, down = 2 * i + 1) {
        if (down + 1 < heap.length && heap[down + 1] < heap[down]) down++;
        if (heap[down] >= heap[i]) break;
        [heap[down], heap[i]] = [heap[i], heap[down]];
      }
    }
    return top;
  };
  for (let v = 0; v < count; v++) if (!waiting[v]) push(v);
  for (let at = 0, next = 0; at < count;) {
    while (!heap.length && done[next]) next++;
    const v = heap.length ? pop() : next;
    if (done[v]) continue;
    done[v] = 1;
    order[at++] = v;
    for (const user of users[v]) if (--waiting[user] === 0 && !done[user]) push(user);
  }
  return order;
}

/** The vertices of the longest chain, in their order. */
export function longestChain(weight: ArrayLike<number>, from: ArrayLike<number>, to: ArrayLike<number>): number[] {
  const count = weight.length, order = topological(count, from, to), place = new Int32Array(count);
  order.forEach((v, i) => { place[v] = i; });
  const into: number[][] = Array.from({ length: count }, () => []);
  for (let i = 0; i < from.length; i++) if (place[from[i]] < place[to[i]]) into[to[i]].push(from[i]);
  const length = new Float64Array(count), before = new Int32Array(count).fill(-1);
  let best = -1;
  for (const v of order) {
    for (const u of into[v]) if (before[v] < 0 || length[u] > length[before[v]]) before[v] = u;
    length[v] = weight[v] + (before[v] < 0 ? 0 : length[before[v]]);
    if (best < 0 || length[v] > length[best]) best = v;
  }
  const chain: number[] = [];
  for (let v = best; v >= 0; v = before[v]) chain.push(v);
  return chain.reverse();
}

/** The backbone: the longest chain of operations that work on the model's data, from an input to an output. */
export function backbone(picture: Picture): number[] {
  const { nodes, edges, values } = picture;
  return longestChain(nodes.kind.map((_, node) => nodeWeight(picture, node)), edges.source.map(value => values.node[value]), edges.target);
}

function nodeWeight(picture: Picture, node: number): number {
  const kind = picture.nodes.kind[node];
  return kind === OPERATION ? (picture.nodes.plumbing[node] ? 1e-3 : 1) : kind === OUTPUT ? 1e-6 : 0;
}

/** For each box the chain of nodes that goes straight through it: part of the chain of the box around it, or its own longest. */
export class Chains {
  readonly ofNode: Int32Array; // number of the chain that a node is in, -1 for none
  readonly ofBox: Int32Array;
  readonly enters: Int32Array; // box -> the value with which its chain comes into it, -1 for none
  readonly leaves: Int32Array;
  readonly first: Int32Array; // box -> the first node of its chain in it
  readonly last: Int32Array;
  readonly next: Int32Array; // node -> the next one of its chain, -1 at the end

  constructor(picture: Picture, depth: ArrayLike<number>) {
    const { boxes, nodes, edges, values } = picture, count = nodes.kind.length;
    this.ofNode = new Int32Array(count).fill(-1);
    this.next = new Int32Array(count).fill(-1);
    this.ofBox = new Int32Array(boxes.parent.length).fill(-1);
    this.enters = new Int32Array(boxes.parent.length).fill(-1);
    this.leaves = new Int32Array(boxes.parent.length).fill(-1);
    this.first = new Int32Array(boxes.parent.length).fill(-1);
    this.last = new Int32Array(boxes.parent.length).fill(-1);
    const inside: number[][] = boxes.parent.map(() => []);
    nodes.box.forEach((box, node) => inside[box].push(node));
    const children: number[][] = boxes.parent.map(() => []);
    boxes.parent.forEach((parent, box) => { if (parent >= 0) children[parent].push(box); });
    const uses: number[][] = Array.from({ length: count }, () => []); // node -> numbers of edges to it
    edges.target.forEach((target, i) => uses[target].push(i));
    const order = boxes.parent.map((_, box) => box).sort((a, b) => depth[a] - depth[b]), local = new Int32Array(count).fill(-1);
    let chains = 0;
    for (const box of order) {
      if (this.ofBox[box] >= 0) continue;
      const members: number[] = [], stack = [box];
      while (stack.length) {
        const at = stack.pop() as number;
        for (const node of inside[at]) members.push(node);
        for (const child of children[at]) stack.push(child);
      }
      members.sort((a, b) => a - b).forEach((node, i) => { local[node] = i; });
      const from: number[] = [], to: number[] = [];
      for (const node of members) for (const i of uses[node]) {
        const source = local[values.node[edges.source[i]]];
        if (source >= 0) { from.push(source); to.push(local[node]); }
      }
      const chain = longestChain(members.map(node => nodeWeight(picture, node)), from, to).map(i => members[i]);
      for (const node of members) local[node] = -1;
      this.ofBox[box] = chains;
      chain.forEach((node, i) => {
        this.ofNode[node] = chains;
        this.next[node] = chain[i + 1] ?? -1;
        for (let at = nodes.box[node]; at !== box && at >= 0; at = boxes.parent[at]) this.ofBox[at] = chains;
      });
      chains++;
    }
    this.findPorts(picture, uses);
  }

  private findPorts(picture: Picture, uses: number[][]): void {
    const { boxes, nodes, edges, values } = picture;
    const isIn = (node: number, box: number): boolean => {
      for (let at = nodes.box[node]; at >= 0; at = boxes.parent[at]) if (at === box) return true;
      return false;
    };
    const users: number[][] = nodes.kind.map(() => []);
    edges.source.forEach((value, i) => users[values.node[value]].push(i));
    const before = new Int32Array(nodes.kind.length).fill(-1);
    this.next.forEach((next, node) => { if (next >= 0) before[next] = node; });
    this.ofNode.forEach((chain, node) => {
      if (chain < 0) return;
      for (let box = nodes.box[node]; box > 0 && this.ofBox[box] === chain; box = boxes.parent[box]) {
        if (before[node] < 0 || !isIn(before[node], box)) {
          const into = uses[node].find(i => values.node[edges.source[i]] === before[node]) ?? uses[node].find(i => !isIn(values.node[edges.source[i]], box));
          this.first[box] = node;
          this.enters[box] = into === undefined ? -1 : edges.source[into];
        }
        if (this.next[node] < 0 || !isIn(this.next[node], box)) {
          const out = users[node].find(i => edges.target[i] === this.next[node]) ?? users[node].find(i => !isIn(edges.target[i], box));
          this.last[box] = node;
          this.leaves[box] = out === undefined ? -1 : edges.source[out];
        }
      }
    });
  }
}
