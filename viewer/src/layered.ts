// Items with sizes and edges -> a layered drawing: places of items, orthogonal wires between them. Near-linear.
//
//   layers      longest path in the given order, with a bound on a layer's width; sources sink to their users
//   dummies     one chain for all edges of a value; edges that would need too many are cut into two stubs
//   order       barycentres, swept up and down
//   places      for each layer the closest places to where its neighbours want it (isotonic regression), swept
//   wires       a horizontal track for each value between two layers, none shared by two that overlap
//
// An edge is drawn as steps from layer to layer; each step knows the one before it, so that the way to one target can be
// followed back.

export interface Item {
  w: number; h: number;
  pin: 0 | 1 | 2; // 1: a port on the upper border, 2: on the lower border
  room: number; // width to keep free for the label of what it gives, from its middle to the right
  spine: number; // x within the item that the straight chain of all items goes through, NaN off that chain
}
export interface Edge {
  from: number; to: number;
  key: number; // edges from one item with one key share a wire
  out: number; // x of the port in `from`, NaN where any will do
  in: number;
  spine: boolean; // part of the straight chain
}
export interface Drawing {
  width: number; height: number;
  zero: number; // x of the straight chain
  x: Float64Array; y: Float64Array; // upper left corners of items
  steps: Float64Array; // 5 numbers each: x1 y1 yTrack x2 y2
  before: Int32Array; // step -> the step that leads to it, -1 at the source
  first: Int32Array; // step -> the edge it belongs to, for the first of those that share it
  last: Int32Array; // step -> the edge that ends with it, -1 where it goes on
  flags: Uint8Array; // step: 1 drawn against the flow, 2 a stub
}

const GAP_X = 18, GAP_DUMMY = 10, GAP_Y = 22, TRACK = 6, MAX_TRACKS = 40, STUB = 12, MANY = 64, SHORT = 3;

export function layered(items: Item[], edges: Edge[]): Drawing {
  const n = items.length;
  const flow = orient(items, edges);
  const layer = assignLayers(items, edges, flow);
  const net = new Net(items, edges, flow, layer);
  net.order();
  net.place();
  return n === 0 ? empty() : net.route();
}

function empty(): Drawing {
  return {
    width: 0, height: 0, zero: 0, x: new Float64Array(0), y: new Float64Array(0), steps: new Float64Array(0),
    before: new Int32Array(0), first: new Int32Array(0), last: new Int32Array(0), flags: new Uint8Array(0),
  };
}

/** For each edge whether it goes against the order of the items, which is the order in which they run. */
function orient(items: Item[], edges: Edge[]): Uint8Array {
  const back = new Uint8Array(edges.length);
  edges.forEach((edge, i) => {
    const from = items[edge.from].pin === 1 ? -1 : edge.from, to = items[edge.to].pin === 2 ? items.length : edge.to;
    back[i] = from > to ? 1 : 0;
  });
  return back;
}

interface Csr { start: Int32Array; list: Int32Array }

function csr(count: number, ends: ArrayLike<number>): Csr {
  const start = new Int32Array(count + 1);
  for (let i = 0; i < ends.length; i++) start[ends[i] + 1]++;
  for (let i = 0; i < count; i++) start[i + 1] += start[i];
  const fill = start.slice(), list = new Int32Array(ends.length);
  for (let i = 0; i < ends.length; i++) list[fill[ends[i]]++] = i;
  return { start, list };
}

function assignLayers(items: Item[], edges: Edge[], back: Uint8Array): Int32Array {
  const n = items.length, layer = new Int32Array(n);
  const upper = edges.map((edge, i) => (back[i] ? edge.to : edge.from));
  const lower = edges.map((edge, i) => (back[i] ? edge.from : edge.to));
  const into = csr(n, lower), outOf = csr(n, upper);
  let area = 0;
  for (const item of items) area += (item.w + GAP_X) * (item.h + GAP_Y + 30);
  const most = Math.max(1500, Math.sqrt(area) * 1.7);
  const used: number[] = [], next: number[] = [];
  const hasTop = items.some(item => item.pin === 1) ? 1 : 0;
  const free = (from: number): number => {
    let at = from;
    while (next[at] !== undefined && next[at] !== at) at = next[at];
    for (let i = from; i !== at && next[i] !== undefined;) { const after = next[i]; next[i] = at; i = after; }
    return at;
  };
  const put = (at: number, w: number): void => {
    used[at] = (used[at] ?? 0) + w;
    if (next[at] === undefined) next[at] = at;
    if (used[at] > most) next[at] = at + 1;
  };
  for (let v = 0; v < n; v++) {
    if (items[v].pin) continue;
    let low = hasTop;
    for (let k = into.start[v]; k < into.start[v + 1]; k++) {
      const u = upper[into.list[k]];
      low = Math.max(low, layer[u] + 1);
    }
    layer[v] = free(low);
    put(layer[v], items[v].w + GAP_X);
  }
  const hangs = new Int32Array(n); // the length of the chain that hangs on a source alone, each link of which has one user; 0: more hangs together
  for (let v = 0; v < n; v++) {
    const before = into.list.subarray(into.start[v], into.start[v + 1]).map(i => upper[i]);
    const isAlone = !items[v].pin && before.every(u => hangs[u] > 0 && outOf.start[u + 1] - outOf.start[u] === 1);
    hangs[v] = isAlone ? 1 + before.reduce((most, u) => Math.max(most, hangs[u]), 0) : 0;
  }
  for (let v = n - 1; v >= 0; v--) { // short ones, and what has more users than arguments, sink; a long one is a branch of the picture
    const ins = into.start[v + 1] - into.start[v], outs = outOf.start[v + 1] - outOf.start[v];
    if (items[v].pin || outs === 0 || (ins >= outs && !(hangs[v] && hangs[v] <= SHORT))) continue;
    let high = Infinity;
    for (let k = outOf.start[v]; k < outOf.start[v + 1]; k++) {
      const u = lower[outOf.list[k]];
      if (items[u].pin !== 2) high = Math.min(high, layer[u] - 1);
    }
    if (high === Infinity || high <= layer[v]) continue;
    const w = items[v].w + GAP_X;
    let at = high;
    while (at > layer[v] && (used[at] ?? 0) + w > most) at--;
    used[layer[v]] -= w;
    used[at] = (used[at] ?? 0) + w;
    layer[v] = at;
  }
  let bottom = -1;
  for (let v = 0; v < n; v++) if (!items[v].pin) bottom = Math.max(bottom, layer[v]);
  bottom = Math.max(bottom, hasTop - 1);
  for (let v = 0; v < n; v++) if (items[v].pin === 2) layer[v] = bottom + 1;
  return layer;
}

/** Items and dummies in layers, and the links between neighbours. */
class Net {
  readonly n: number;
  count: number; // of items and dummies
  layerOf: number[];
  width: number[];
  spine: number[]; // as of items; of dummies 0 or NaN
  links: { from: number; to: number; out: number; in: number; edge: number; before: number; last: boolean }[] = [];
  stubs: number[] = [];
  rows: Int32Array[] = [];
  x: Float64Array = new Float64Array(0);
  readonly main = new Set<number>(); // links of chains next to the straight one
  up: Csr = { start: new Int32Array(0), list: new Int32Array(0) };
  down: Csr = this.up;

  constructor(readonly items: Item[], readonly edges: Edge[], readonly back: Uint8Array, layer: Int32Array) {
    this.n = this.count = items.length;
    this.layerOf = Array.from(layer);
    this.width = items.map(item => Math.max(item.w, item.w / 2 + item.room));
    this.spine = items.map(item => item.spine);
    this.connect();
    const rows = 1 + this.layerOf.reduce((most, at) => Math.max(most, at), 0);
    const byLayer = csr(rows, this.layerOf);
    for (let r = 0; r < rows; r++) this.rows.push(byLayer.list.slice(byLayer.start[r], byLayer.start[r + 1]));
    this.up = csr(this.count, this.links.map(link => link.to));
    this.down = csr(this.count, this.links.map(link => link.from));
  }

  /** Chains of dummies, one for the edges of a wire. */
  private connect(): void {
    const { edges, back, layerOf } = this;
    const wires = new Map<number, number[]>();
    edges.forEach((edge, i) => {
      const name = back[i] ? -1 - i : pair(edge.from, edge.key);
      const wire = wires.get(name);
      if (wire) wire.push(i); else wires.set(name, [i]);
    });
    const upper = (i: number): number => (back[i] ? edges[i].to : edges[i].from);
    const lower = (i: number): number => (back[i] ? edges[i].from : edges[i].to);
    const spans: number[] = [];
    for (const wire of wires.values()) spans.push(wire.reduce((most, i) => Math.max(most, layerOf[lower(i)] - layerOf[upper(i)]), 0));
    const limit = spanLimit(spans, 3 * this.n + 4000);
    const into = new Int32Array(this.n); // how many edges end at an item: of very many, only short ones are drawn whole
    for (let i = 0; i < edges.length; i++) into[lower(i)]++;
    for (const wire of wires.values()) {
      const start = upper(wire[0]);
      const chain: number[] = [start];
      const lastLink: number[] = [-1];
      wire.sort((a, b) => layerOf[lower(a)] - layerOf[lower(b)]);
      for (const i of wire) {
        const end = lower(i), span = layerOf[end] - layerOf[start];
        if (span > limit || span < 1 || (span > 1 && into[end] > MANY)) { this.stubs.push(i); continue; }
        while (chain.length < span) {
          const dummy = this.count++;
          this.layerOf.push(layerOf[start] + chain.length);
          this.width.push(0);
          this.spine.push(NaN);
          const from = chain[chain.length - 1];
          this.links.push({
            from, to: dummy, out: from < this.n ? this.port(i, true) : 0, in: 0, edge: i, before: lastLink[chain.length - 1], last: false,
          });
          lastLink.push(this.links.length - 1);
          chain.push(dummy);
        }
        if (edges[i].spine) for (let k = 1; k < span; k++) this.spine[chain[k]] = 0;
        const from = chain[span - 1];
        this.links.push({
          from, to: end, out: from < this.n ? this.port(i, true) : 0, in: this.port(i, false), edge: i, before: lastLink[span - 1], last: true,
        });
      }
    }
  }

  private port(i: number, upper: boolean): number {
    return upper === !this.back[i] ? this.edges[i].out : this.edges[i].in;
  }

  order(): void {
    const position = new Float64Array(this.count);
    for (const row of this.rows) row.forEach((v, i) => { position[v] = i; });
    const big = this.count > 20000;
    const sweeps = big ? 4 : 10;
    const score = new Float64Array(this.count);
    let best: Int32Array[] | null = null, fewest = Infinity;
    for (let sweep = 0; sweep <= sweeps; sweep++) {
      if (!big) {
        const crossings = this.crossings(position);
        if (crossings < fewest) { fewest = crossings; best = this.rows.map(row => row.slice()); }
        if (fewest === 0) break;
      }
      if (sweep === sweeps) break;
      const downwards = sweep % 2 === 0;
      const side = downwards ? this.up : this.down;
      for (let k = 1; k < this.rows.length; k++) {
        const row = this.rows[downwards ? k : this.rows.length - 1 - k];
        for (let i = 0; i < row.length; i++) {
          const v = row[i], start = side.start[v], end = side.start[v + 1];
          if (start === end) { score[v] = i; continue; }
          let sum = 0;
          for (let e = start; e < end; e++) {
            const link = this.links[side.list[e]];
            const other = downwards ? link.from : link.to, offset = downwards ? link.out : link.in;
            sum += position[other] + (offset > 0 && this.width[other] > 0 ? offset / this.width[other] - 0.5 : 0);
          }
          // Places in a row of another length mean other things.
          const otherRow = this.rows[(downwards ? k : this.rows.length - 1 - k) + (downwards ? -1 : 1)].length;
          score[v] = ((sum / (end - start) + 0.5) / otherRow) * row.length - 0.5;
        }
        if (row.length > 1) row.sort((a, b) => score[a] - score[b] || position[a] - position[b]);
        for (let i = 0; i < row.length; i++) position[row[i]] = i;
      }
    }
    if (best) this.rows = best;
  }

  private crossings(position: Float64Array): number {
    let total = 0;
    for (const row of this.rows) {
      const ends: number[] = [];
      let width = 0;
      for (const v of row) {
        const targets: number[] = [];
        for (let e = this.down.start[v]; e < this.down.start[v + 1]; e++) targets.push(position[this.links[this.down.list[e]].to]);
        targets.sort((a, b) => a - b);
        for (const target of targets) { ends.push(target); width = Math.max(width, target + 1); }
      }
      const tree = new Int32Array(width + 2);
      for (let i = 0; i < ends.length; i++) {
        let sum = 0;
        for (let k = ends[i] + 1; k > 0; k -= k & -k) sum += tree[k];
        total += i - sum;
        for (let k = ends[i] + 1; k <= width; k += k & -k) tree[k]++;
      }
    }
    return total;
  }

  place(): void {
    this.x = new Float64Array(this.count);
    for (const row of this.rows) {
      let at = 0;
      for (const v of row) { this.x[v] = at; at += this.width[v] + this.gap(v); }
      for (const v of row) this.x[v] -= at / 2;
    }
    const sweeps = this.count > 20000 ? 5 : 9;
    for (let sweep = 0; sweep < sweeps; sweep++) {
      const mode = sweep === sweeps - 1 ? 2 : sweep % 2;
      for (let k = 0; k < this.rows.length; k++) this.fit(this.rows[mode === 1 ? this.rows.length - 1 - k : k], mode);
    }
  }

  private gap(v: number): number { return v < this.n ? GAP_X : GAP_DUMMY; }

  private middle(v: number, offset: number): number {
    return Number.isNaN(offset) ? (v < this.n ? this.items[v].w / 2 : 0) : offset;
  }

  /** Puts a row as close to where its neighbours want it as order and widths let it. */
  private fit(row: Int32Array, mode: number): void {
    const n = row.length, mean = new Float64Array(n), weight = new Float64Array(n), size = new Int32Array(n);
    let top = 0, offset = 0;
    const offsets = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      const v = row[i];
      let sum = 0, total = 0;
      if (mode !== 1) for (let e = this.up.start[v]; e < this.up.start[v + 1]; e++) {
        const link = this.links[this.up.list[e]];
        // What comes from nowhere stands where it is used, and does not pull: a row of sums would drift to one side.
        const isSource = this.up.start[link.from] === this.up.start[link.from + 1];
        const force = link.from >= this.n && v >= this.n ? 5000 : link.from >= this.n || v >= this.n ? 2 : isSource ? 0.02 : 1;
        sum += force * (this.x[link.from] + this.middle(link.from, link.out) - this.middle(v, link.in));
        total += force;
      }
      if (mode !== 0) for (let e = this.down.start[v]; e < this.down.start[v + 1]; e++) {
        const link = this.links[this.down.list[e]];
        const force = link.to >= this.n && v >= this.n ? 5000 : link.to >= this.n || v >= this.n ? 2 : 1;
        sum += force * (this.x[link.to] + this.middle(link.to, link.in) - this.middle(v, link.out));
        total += force;
      }
      offsets[i] = offset;
      const isFixed = !Number.isNaN(this.spine[v]);
      mean[top] = (isFixed ? -this.spine[v] : total ? sum / total : this.x[v]) - offset;
      weight[top] = isFixed ? 1e12 : (total || 0.1) * (this.up.start[v] === this.up.start[v + 1] ? 0.02 : 1);
      size[top] = 1;
      offset += this.width[v] + (this.gap(v) + (i + 1 < n ? this.gap(row[i + 1]) : 0)) / 2;
      top++;
      while (top > 1 && mean[top - 2] > mean[top - 1]) {
        const both = weight[top - 2] + weight[top - 1];
        mean[top - 2] = (mean[top - 2] * weight[top - 2] + mean[top - 1] * weight[top - 1]) / both;
        weight[top - 2] = both;
        size[top - 2] += size[top - 1];
        top--;
      }
    }
    for (let block = 0, i = 0; block < top; block++) {
      for (let k = 0; k < size[block]; k++, i++) this.x[row[i]] = mean[block] + offsets[i];
    }
  }

  /** Chains next to the straight one, longest first: an item stands below the one with the longest way to it. */
  private chains(): number[][] {
    const length = new Float64Array(this.count), next = new Int32Array(this.count).fill(-1), main = new Int32Array(this.count).fill(-1);
    const isFree = (v: number): boolean => Number.isNaN(this.spine[v]);
    for (const row of this.rows) for (const v of row) {
      if (!isFree(v)) continue;
      for (let e = this.up.start[v]; e < this.up.start[v + 1]; e++) {
        const u = this.links[this.up.list[e]].from;
        if (isFree(u)) length[v] = Math.max(length[v], length[u] + 1e-6);
      }
      if (v < this.n && !this.items[v].pin) length[v]++;
    }
    const order = [...length.keys()].filter(v => length[v] > 0).sort((a, b) => length[b] - length[a]);
    for (const v of order) {
      for (let at = v; main[at] < 0;) {
        let best = -1;
        for (let e = this.up.start[at]; e < this.up.start[at + 1]; e++) {
          const u = this.links[this.up.list[e]].from;
          if (isFree(u) && next[u] < 0 && (best < 0 || length[u] > length[best])) best = u;
        }
        if (best < 0) break;
        next[best] = at;
        main[at] = best;
        at = best;
      }
    }
    const found: number[][] = [];
    for (let v = 0; v < this.count; v++) {
      if (main[v] >= 0 || next[v] < 0) continue;
      const chain = [v];
      for (let at = next[v]; at >= 0; at = next[at]) chain.push(at);
      if (chain.some(at => at < this.n && !this.items[at].pin)) found.push(chain);
    }
    return found.sort((a, b) => b.length - a.length);
  }

  /** Items of a chain next to the straight one come below one another, as far as there is room. */
  private alignChains(): void {
    const place = new Int32Array(this.count);
    for (const row of this.rows) row.forEach((v, i) => { place[v] = i; });
    for (const chain of this.chains()) {
      const middles = chain.map(v => this.x[v] + this.anchor(v)).sort((a, b) => a - b), median = middles[middles.length >> 1];
      this.align(chain, place, median, median);
      for (let k = 1; k < chain.length; k++) for (let e = this.up.start[chain[k]]; e < this.up.start[chain[k] + 1]; e++) if (this.links[this.up.list[e]].from === chain[k - 1]) this.main.add(this.up.list[e]);
    }
  }

  /** Where a chain goes through an item or dummy. */
  private anchor(v: number): number { return v < this.n && !this.items[v].pin ? this.items[v].w / 2 : 0; }

  /** With ports known, lines become straight: each run of dummies goes where all of them can stand in one column. */
  private straighten(): void {
    const place = new Int32Array(this.count);
    for (const row of this.rows) row.forEach((v, i) => { place[v] = i; });
    const bends = (v: number): boolean => Number.isNaN(this.spine[v]) && (v >= this.n || this.items[v].pin > 0);
    for (let v = 0; v < this.count; v++) {
      if (!bends(v)) continue;
      const above = this.up.start[v] < this.up.start[v + 1] ? this.links[this.up.list[this.up.start[v]]] : null;
      if (above && bends(above.from)) continue; // in the middle of a run
      const run = [v];
      let below: typeof above = null;
      for (let at = v; ;) {
        below = null;
        let next = -1;
        for (let e = this.down.start[at]; e < this.down.start[at + 1]; e++) {
          const link = this.links[this.down.list[e]];
          if (bends(link.to)) { if (next < 0) next = link.to; } else below ??= link;
        }
        if (next < 0) break;
        run.push(next);
        at = next;
      }
      const from = above ? this.x[above.from] + this.middle(above.from, above.out) : NaN;
      const to = below ? this.x[below.to] + this.middle(below.to, below.in) : NaN;
      this.align(run, place, from, to);
    }
  }

  /** Puts a run of dummies into as few columns as their neighbours leave room for. */
  private align(run: number[], place: Int32Array, from: number, to: number): void {
    let start = 0, low = -Infinity, high = Infinity;
    const settle = (end: number): void => {
      let x = start === 0 && from >= low && from <= high ? from : end === run.length && to >= low && to <= high ? to : NaN;
      if (Number.isNaN(x)) {
        const wanted = start === 0 && !Number.isNaN(from) ? from : end === run.length && !Number.isNaN(to) ? to : start > 0 ? this.x[run[start - 1]] + this.anchor(run[start - 1]) : this.x[run[start]] + this.anchor(run[start]);
        x = Math.max(low, Math.min(high, wanted));
      }
      for (let k = start; k < end; k++) this.x[run[k]] = x - this.anchor(run[k]);
    };
    run.forEach((v, k) => {
      const row = this.rows[this.layerOf[v]], i = place[v];
      const least = i > 0 ? this.x[row[i - 1]] + this.width[row[i - 1]] + 8 + this.anchor(v) : -Infinity;
      const most = i + 1 < row.length ? this.x[row[i + 1]] - 8 - this.width[v] + this.anchor(v) : Infinity;
      if (least > most) { settle(k); start = k + 1; low = -Infinity; high = Infinity; return; }
      if (Math.max(low, least) > Math.min(high, most)) { settle(k); start = k; low = least; high = most; return; }
      low = Math.max(low, least);
      high = Math.min(high, most);
    });
    if (start < run.length) settle(run.length);
  }

  route(): Drawing {
    const { n, items, rows, links } = this;
    this.alignChains();
    this.spreadPorts();
    this.straighten();
    const x = new Float64Array(n), y = new Float64Array(n);
    let left = Infinity, right = -Infinity;
    for (let v = 0; v < this.count; v++) {
      left = Math.min(left, this.x[v]);
      right = Math.max(right, this.x[v] + this.width[v]);
    }
    const top = new Float64Array(rows.length), bottom = new Float64Array(rows.length);
    const count = links.length + 2 * this.stubs.length;
    const steps = new Float64Array(5 * count), before = new Int32Array(count), first = new Int32Array(count);
    const last = new Int32Array(count).fill(-1), flags = new Uint8Array(count);
    const leaving: number[][] = rows.map(() => []);
    links.forEach((link, i) => leaving[this.layerOf[link.from]].push(i));
    let at = 0;
    for (let r = 0; r < rows.length; r++) {
      let high = 0;
      for (const v of rows[r]) if (v < n) high = Math.max(high, items[v].h);
      top[r] = at;
      bottom[r] = at + high;
      for (const v of rows[r]) if (v < n) { x[v] = this.x[v] - left; y[v] = items[v].pin ? at : at + (high - items[v].h) / 2; }
      const tracks = this.tracks(leaving[r]);
      const ports = r === 0 && rows[r].every(v => v >= n || items[v].pin) && high === 0;
      const roomy = ports ? 14 : GAP_Y;
      at += high + roomy + TRACK * Math.min(MAX_TRACKS, tracks.count);
      for (const i of leaving[r]) {
        steps[5 * i + 2] = bottom[r] + roomy * 0.7 + TRACK * ((tracks.track.get(i) ?? 0) % MAX_TRACKS);
      }
    }
    const height = bottom[rows.length - 1];
    links.forEach((link, i) => {
      steps[5 * i] = this.x[link.from] + this.middle(link.from, link.out) - left;
      steps[5 * i + 1] = link.from < n ? y[link.from] + items[link.from].h : top[this.layerOf[link.from]];
      steps[5 * i + 3] = this.x[link.to] + this.middle(link.to, link.in) - left;
      steps[5 * i + 4] = link.to < n ? y[link.to] : top[this.layerOf[link.to]];
      before[i] = link.before;
      first[i] = link.edge;
      if (link.last) last[i] = link.edge;
      flags[i] = this.back[link.edge];
    });
    this.stubs.forEach((edge, k) => this.stub(edge, links.length + 2 * k, x, y, { steps, before, first, last, flags }));
    return { width: Math.max(0, right - left), height, zero: -left, x, y, steps, before, first, last, flags };
  }

  /** A cut edge: a short line out of one item and into another. */
  private stub(
    edge: number, at: number, x: Float64Array, y: Float64Array,
    into: { steps: Float64Array; before: Int32Array; first: Int32Array; last: Int32Array; flags: Uint8Array },
  ): void {
    const { from, to, out, in: inner } = this.edges[edge];
    const x1 = x[from] + this.middle(from, out), y1 = y[from] + this.items[from].h;
    const x2 = x[to] + this.middle(to, inner), y2 = y[to];
    into.steps.set([x1, y1, y1 + STUB / 2, x1, y1 + STUB, x2, y2 - STUB, y2 - STUB / 2, x2, y2], 5 * at);
    into.before[at] = -1;
    into.before[at + 1] = at;
    into.first[at] = into.first[at + 1] = into.last[at + 1] = edge;
    into.flags[at] = into.flags[at + 1] = 2;
  }

  /** Ports of items that leave them open, beside one another in the order of the other ends. */
  private spreadPorts(): void {
    for (let v = 0; v < this.n; v++) {
      if (this.items[v].pin) continue;
      const w = this.items[v].w;
      const ins: number[] = [];
      for (let e = this.up.start[v]; e < this.up.start[v + 1]; e++) {
        const link = this.links[this.up.list[e]];
        if (link.to === v && Number.isNaN(link.in)) ins.push(this.up.list[e]);
      }
      ins.sort((a, b) => this.end(a, true) - this.end(b, true));
      const places = spread(ins.map(i => this.end(i, true) - this.x[v]), w, Math.max(ins.findIndex(i => this.edges[this.links[i].edge].spine), Number.isNaN(this.spine[v]) ? ins.findIndex(i => this.main.has(i)) : -1));
      ins.forEach((i, k) => { this.links[i].in = places[k]; });
      const outs = new Map<number, number[]>();
      for (let e = this.down.start[v]; e < this.down.start[v + 1]; e++) {
        const i = this.down.list[e], link = this.links[i];
        if (!Number.isNaN(link.out)) continue;
        const key = this.back[link.edge] ? -1 - link.edge : this.edges[link.edge].key;
        const group = outs.get(key);
        if (group) group.push(i); else outs.set(key, [i]);
      }
      const groups = [...outs.values()].map(group => ({ group, x: group.reduce((sum, i) => sum + this.end(i, false), 0) / group.length }));
      groups.sort((a, b) => a.x - b.x);
      const wide = Math.min(14, (w - 12) / Math.max(1, groups.length - 1));
      const straight = groups.findIndex(({ group }) => group.some(i => this.edges[this.links[i].edge].spine));
      const main = straight < 0 ? groups.findIndex(({ group }) => group.some(i => this.main.has(i))) : straight;
      const shift = main < 0 ? (groups.length - 1) / 2 : main, most = Math.max(shift, groups.length - 1 - shift);
      const step = main < 0 ? wide : Math.min(14, (w / 2 - 6) / Math.max(1, most));
      groups.forEach(({ group }, k) => { for (const i of group) this.links[i].out = w / 2 + (k - shift) * step; });
    }
  }

  private end(i: number, upper: boolean): number {
    const link = this.links[i], v = upper ? link.from : link.to;
    return this.x[v] + this.middle(v, upper ? link.out : link.in);
  }

  /** A track for the links of each wire that go sideways between two rows; those on one track do not overlap. */
  private tracks(leaving: number[]): { count: number; track: Map<number, number> } {
    const spans = new Map<number, { low: number; high: number; links: number[]; start: number }>();
    for (const i of leaving) {
      const link = this.links[i];
      const a = this.end(i, true), b = this.end(i, false);
      const name = this.back[link.edge] ? -1 - link.edge : pair(link.from, this.edges[link.edge].key);
      const span = spans.get(name);
      if (span) { span.low = Math.min(span.low, a, b); span.high = Math.max(span.high, a, b); span.links.push(i); }
      else spans.set(name, { low: Math.min(a, b), high: Math.max(a, b), links: [i], start: a });
    }
    const track = new Map<number, number>();
    const busy: number[] = [];
    const sideways = [...spans.values()].filter(span => {
      const straight = span.high - span.low < 0.5;
      if (straight) for (const i of span.links) track.set(i, 0);
      return !straight;
    });
    if (sideways.length <= (this.count > 20000 ? 40 : 300)) return { count: fewCrossings(sideways, track), track };
    sideways.sort((a, b) => a.low - b.low);
    for (const span of sideways) {
      let at = 0;
      const tried = Math.min(busy.length, 4 * MAX_TRACKS);
      while (at < tried && busy[at] > span.low - 4) at++;
      busy[at] = span.high;
      for (const i of span.links) track.set(i, at);
    }
    return { count: busy.length, track };
  }
}

/** Tracks such that of wires going to one side none crosses another: the one that starts farthest on that side is highest. */
function fewCrossings(spans: { low: number; high: number; links: number[]; start: number }[], track: Map<number, number>): number {
  const isRight = (span: { low: number; high: number; start: number }): boolean => span.low + span.high >= 2 * span.start;
  const order = [...spans].sort((a, b) => (isRight(a) ? -a.start : a.start) - (isRight(b) ? -b.start : b.start));
  const right = order.filter(isRight), left = order.filter(span => !isRight(span));
  const placed: { low: number; high: number; at: number; side: boolean }[] = [];
  let count = 0;
  for (const span of [...right, ...left]) {
    const side = isRight(span), near = placed.filter(other => other.low < span.high + 4 && other.high > span.low - 4);
    let at = near.reduce((most, other) => (other.side === side ? Math.max(most, other.at + 1) : most), 0);
    while (near.some(other => other.at === at)) at++;
    placed.push({ low: span.low, high: span.high, at, side });
    for (const i of span.links) track.set(i, at);
    count = Math.max(count, at + 1);
  }
  return count;
}

/** Ports as close to where they are wanted (in order) as the width of an item and their distance from one another let. */
function spread(wanted: number[], w: number, main = -1): number[] {
  if (main >= 0) {
    const step = Math.min(13, (w / 2 - 8) / Math.max(1, main, wanted.length - 1 - main));
    return wanted.map((_, k) => w / 2 + (k - main) * step);
  }
  const n = wanted.length, edge = Math.min(8, w / 4), step = Math.min(13, (w - 2 * edge) / Math.max(1, n - 1));
  const found: number[] = [];
  for (let k = 0; k < n; k++) found.push(Math.max(edge + k * step, k ? found[k - 1] + step : 0, Math.min(w - edge, wanted[k])));
  for (let k = n - 1; k >= 0; k--) found[k] = Math.min(found[k], k < n - 1 ? found[k + 1] - step : w - edge);
  // One far-off neighbour is no reason to leave the middle.
  return n === 1 && (wanted[0] < edge || wanted[0] > w - edge) ? [w / 2] : found;
}

/** One number for an item or dummy and a key, which may be negative. */
function pair(from: number, key: number): number { return from * 0x4000000 + key + 0x2000000; }

/** The longest span such that the chains of all wires up to it stay within a number of dummies. */
function spanLimit(spans: number[], budget: number): number {
  const sorted = [...spans].sort((a, b) => a - b);
  let total = 0;
  for (const span of sorted) {
    total += Math.max(0, span - 1);
    if (total > budget) return Math.max(1, span - 1);
  }
  return Infinity;
}
