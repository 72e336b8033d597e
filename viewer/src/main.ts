// The page: what is asked for, what is selected, what is open; everything else is told by this.

import { Address, packOpen, readAddress, START, unpackOpen, writeAddress } from './address';
import { icicle } from './bytes';
import { DARK, LIGHT } from './colours';
import { byId, bytesText, count, h } from './dom';
import { save, svg } from './export';
import { listenToKeys, neighbour, showKeys } from './keys';
import { changeList, hitList, moduleTree } from './outline';
import { Painting, type Marks } from './painter';
import { boxPanel, Context, link, nodePanel, programPanel, symbolPanel, tensorPanel } from './panels';
import { Hit, Program } from './program';
import { NODE, OPEN, operatorName } from './scene';
import { ask } from './source';
import './style.css';
import { Thread } from './thread';
import { View } from './view';
import type { Change, Facts, Finding, Index, Picture } from './wire';

const FIRST_ITEMS = 46, MAX_HITS = 300;

type Selection = { kind: 'none' } | { kind: 'node' | 'box' | 'weight'; id: number } | { kind: 'symbol'; name: string };

class App {
  private index: Index = { file: '', old: '', bytes: 0, programs: [], chunk: 256, live: false, error: '', notes: [] };
  private program: Program | null = null;
  private number = -1;
  private thread = new Thread();
  private open = new Set<number>();
  private initial = '';
  private selection: Selection = { kind: 'none' };
  private mark = '';
  private marked: Uint8Array | null = null;
  private pairs: [number, number][] = [];
  private query = '';
  private tab = 'graph';
  private by: 'bytes' | 'operators' = 'bytes';
  private top = 0;
  private facts: Facts | null = null;
  private findings: Finding[] = [];
  private changes: Change[] | null = null;
  private change = -1;
  private status: Uint8Array = new Uint8Array(0);
  private readonly view: View;

  constructor() {
    const dark = this.wantsDark();
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
    this.view = new View(byId('canvas'), byId('map'), dark ? DARK : LIGHT, {
      click: (item, event) => this.clicked(item, event),
      double: () => undefined,
      wire: value => this.chooseNode((this.program as Program).picture.values.node[value], true),
      moved: () => undefined,
    });
    this.listen();
  }

  private wantsDark(): boolean {
    try {
      const kept = localStorage.getItem('pt2-theme');
      if (kept) return kept === 'dark';
    } catch { /* a frame without storage */ }
    return matchMedia('(prefers-color-scheme: dark)').matches;
  }

  async start(): Promise<void> {
    this.index = await ask<Index>('index');
    const { file, old, error, programs, notes } = this.index;
    const name = file.split(/[\\/]/).pop() || file;
    byId('file').textContent = old ? `${old.split(/[\\/]/).pop()} → ${name}` : name;
    byId('file').title = `${old ? `${old} → ` : ''}${file}  ${bytesText(this.index.bytes)}`;
    document.title = `${name} · pt2 view`;
    if (error) throw new Error(error);
    byId('programs').replaceChildren(...(programs.length > 1 ? programs.map((text, i) => h('button', { type: 'button', text, title: text, onclick: () => this.go({ ...START, program: i }) })) : []));
    if (!programs.length) {
      document.documentElement.dataset.nodes = '0';
      document.documentElement.dataset.drawn = '0';
      byId('list').replaceChildren(h('ul', {}, ...notes.slice(1).map(text => h('li', { text }))));
      this.say(h('h2', { text: 'No program in this archive' }), h('p', { text: `It holds ${notes[0] ?? 'nothing'}; they are listed on the left.` }));
      document.documentElement.dataset.state = 'ready';
      return;
    }
    await this.show(readAddress(location.hash));
  }

  /** Make the page show what an address says. */
  private async show(address: Address): Promise<void> {
    const number = address.program < this.index.programs.length ? address.program : 0;
    const isNew = number !== this.number;
    if (isNew) await this.load(number);
    const program = this.program as Program, { boxes } = program.picture;
    this.open = address.open === 'all' ? new Set(boxes.parent.keys()) : new Set(unpackOpen(address.open || this.initial));
    this.tab = address.tab;
    this.mark = address.mark;
    this.selection = this.find(program, address);
    if (this.selection.kind === 'node') this.reveal(program.picture.nodes.box[this.selection.id]);
    if (this.selection.kind === 'box') this.reveal(this.selection.id, true);
    if (this.selection.kind === 'weight') this.reveal(program.picture.nodes.box[program.list(program.nodesOfWeight, this.selection.id)[0]] ?? 0);
    if (address.query !== this.query) { byId<HTMLInputElement>('search').value = address.query; this.query = address.query; }
    this.applyMark();
    await this.layout();
    this.refresh();
    const item = this.itemOfSelection();
    if (item >= 0) this.view.show(item, !isNew); else if (isNew) this.view.fit(false);
  }

  private find(program: Program, address: Address): Selection {
    const { nodes, boxes, weights, texts } = program.picture;
    if (address.mark.startsWith('symbol:')) return { kind: 'symbol', name: address.mark.slice(7) };
    const wanted = address.node || address.weight || address.path;
    if (!wanted) return { kind: 'none' };
    const column = address.node ? nodes.name : address.weight ? weights.name : boxes.path;
    const id = column.findIndex(text => texts[text] === wanted);
    if (id < 0) { this.toast(`nothing here is called ${wanted}`); return { kind: 'none' }; }
    return { kind: address.node ? 'node' : address.weight ? 'weight' : 'box', id };
  }

  private async load(number: number): Promise<void> {
    document.documentElement.dataset.state = 'loading';
    this.number = number;
    this.program = null;
    this.facts = null;
    this.findings = [];
    this.changes = null;
    this.change = -1;
    this.top = 0;
    byId('programs').querySelectorAll('button').forEach((button, i) => button.setAttribute('aria-pressed', String(i === number)));
    const picture = await ask<Picture>(`program/${number}`);
    const opened = this.thread.picture(picture, FIRST_ITEMS);
    const program = new Program(picture);
    this.program = program;
    this.initial = packOpen(await opened);
    document.documentElement.dataset.nodes = String(picture.nodes.kind.filter(kind => kind === 0).length);
    this.status = new Uint8Array(picture.boxes.parent.length);
    picture.nodes.status.forEach((status, node) => {
      if (status) for (let box = picture.nodes.box[node]; box >= 0; box = picture.boxes.parent[box]) this.status[box] = this.status[box] && this.status[box] !== status ? 3 : status;
    });
    const still = (): boolean => this.number === number;
    ask<Facts>(`facts/${number}`).then(facts => { if (still()) { this.facts = facts; this.arrived(); } }, (error: Error) => this.toast(error.message));
    ask<Finding[]>(`findings/${number}`).then(found => { if (still()) { this.findings = found; this.arrived(); } }, () => undefined);
    if (this.index.old) ask<Change[]>(`changes/${number}`).then(found => { if (still()) { this.changes = found; this.refreshList(); this.arrived(); } }, (error: Error) => this.toast(error.message));
  }

  /** Lay out what is open, and keep a box where it is on the screen. */
  private async layout(anchor = -1): Promise<void> {
    const program = this.program as Program, { view } = this;
    const old = view.painting, before = anchor >= 0 ? old?.itemOf.get(-1 - anchor) : undefined;
    const reply = await this.thread.scene(this.open);
    if (!reply || program !== this.program) return;
    const painting = new Painting(program, reply.scene, this.status);
    document.documentElement.dataset.layoutMs = reply.ms.toFixed(1);
    const after = anchor >= 0 ? painting.itemOf.get(-1 - anchor) : undefined;
    if (old && before !== undefined && after !== undefined) {
      const a = old.scene.at, b = painting.scene.at;
      const dx = b[4 * after] + b[4 * after + 2] / 2 - a[4 * before] - a[4 * before + 2] / 2;
      view.camera = { ...view.camera, x: view.camera.x + dx, y: view.camera.y + b[4 * after + 1] - a[4 * before + 1] };
    }
    view.painting = painting;
    this.refreshMarks();
    view.draw();
    requestAnimationFrame(() => requestAnimationFrame(() => { document.documentElement.dataset.state = 'ready'; }));
  }

  private itemOfSelection(): number {
    const { painting } = this.view, program = this.program as Program;
    if (!painting || this.selection.kind === 'none' || this.selection.kind === 'symbol') return -1;
    let { kind, id } = this.selection;
    if (kind === 'weight') {
      const users = program.list(program.nodesOfWeight, id);
      if (users.length) [kind, id] = ['node', users[0]]; else [kind, id] = ['box', program.picture.weights.box[id]];
    }
    if (kind === 'node') {
      const item = painting.itemOf.get(id);
      if (item !== undefined) return item;
      id = program.picture.nodes.box[id];
    }
    for (let box = id; box >= 0; box = program.picture.boxes.parent[box]) {
      const item = painting.itemOf.get(-1 - box);
      if (item !== undefined) return item;
    }
    return -1;
  }

  /** Open everything around a box, and the box itself unless only what is around it must be seen. */
  private reveal(box: number, around = false): void {
    const { boxes } = (this.program as Program).picture;
    for (let at = around ? boxes.parent[box] : box; at > 0; at = boxes.parent[at]) this.open.add(at);
  }

  private applyMark(): void {
    const program = this.program as Program, { selection, mark } = this;
    this.marked = null;
    this.pairs = [];
    const { edges, values } = program.picture;
    if (mark.startsWith('symbol:')) {
      this.marked = program.sizedBy(mark.slice(7));
    } else if (selection.kind === 'node' && (mark === 'up' || mark === 'down' || mark === 'both')) {
      const up = mark === 'down' ? null : program.cone(selection.id, -1), down = mark === 'up' ? null : program.cone(selection.id, 1);
      this.marked = up && down ? up.map((one, i) => one | down[i]) : up ?? down;
      for (let i = 0; i < edges.source.length; i++) {
        const from = values.node[edges.source[i]], to = edges.target[i];
        if ((up && up[from] && up[to]) || (down && down[from] && down[to])) this.pairs.push([edges.source[i], to]);
      }
    } else if (selection.kind === 'node' && mark.startsWith('to:')) {
      const name = mark.slice(3), other = program.picture.nodes.name.findIndex(text => program.text(text) === name);
      const path = other >= 0 ? program.path(selection.id, other) : null;
      if (path) {
        this.marked = new Uint8Array(program.nodeCount);
        for (const node of path) this.marked[node] = 1;
        for (let i = 1; i < path.length; i++) for (const value of program.list(program.inputs, path[i])) if (values.node[value] === path[i - 1]) this.pairs.push([value, path[i]]);
        this.speak(`path of ${count(path.length, 'node')}`);
      } else this.toast('no path between these two');
    } else if (selection.kind === 'node') {
      for (const value of program.list(program.inputs, selection.id)) this.pairs.push([value, selection.id]);
      for (const value of program.list(program.results, selection.id)) for (const user of program.list(program.users, value)) this.pairs.push([value, user]);
    }
  }

  private refreshMarks(): void {
    const { view, program } = this;
    if (!view.painting || !program) return;
    let marks: Marks | null = null;
    const found = this.marked ?? (this.query ? program.search(this.query, 0).marked : null);
    if (found) {
      const boxes = new Uint8Array(program.picture.boxes.parent.length);
      found.forEach((is, node) => { if (is) for (let box = program.picture.nodes.box[node]; box >= 0 && !boxes[box]; box = program.picture.boxes.parent[box]) boxes[box] = 1; });
      marks = { nodes: found, boxes, steps: view.painting.steps(this.pairs) };
    } else if (this.pairs.length) {
      const all = new Uint8Array(program.nodeCount).fill(1);
      marks = { nodes: all, boxes: new Uint8Array(program.picture.boxes.parent.length).fill(1), steps: view.painting.steps(this.pairs) };
    }
    view.marks = marks;
    view.selected = this.itemOfSelection();
    view.draw();
  }

  private context(): Context {
    return {
      program: this.program as Program, number: this.number, chunk: this.index.chunk, live: this.index.live,
      symbols: this.facts?.symbols.map(([name]) => name) ?? [], findings: this.findings,
      on: {
        node: node => this.chooseNode(node, true), box: box => this.chooseBox(box), weight: weight => this.choose({ kind: 'weight', id: weight }, true),
        symbol: name => { this.mark = `symbol:${name}`; this.choose({ kind: 'symbol', name }, false, this.mark); },
        mark: mark => { if (mark || this.selection.kind !== 'symbol') this.choose(this.selection, false, mark); else this.choose({ kind: 'none' }, false, ''); },
        toggle: box => void this.toggle(box), file: text => this.search(text),
      },
    };
  }

  private refresh(): void {
    this.refreshList();
    this.refreshPanel();
    this.refreshTab();
    this.refreshMarks();
  }

  /** What came later is put into the panel, unless someone may be at work in it. */
  private arrived(): void {
    if (this.selection.kind !== 'weight') this.refreshPanel();
  }

  private refreshPanel(): void {
    if (!this.program) return;
    const panel = byId('panel'), { selection } = this, context = this.context();
    panel.scrollTop = 0;
    if (selection.kind === 'node') nodePanel(context, selection.id, panel);
    else if (selection.kind === 'box' && selection.id > 0) boxPanel(context, selection.id, this.open.has(selection.id), panel);
    else if (selection.kind === 'weight') tensorPanel(context, selection.id, panel);
    else if (selection.kind === 'symbol') symbolPanel(context, selection.name, this.facts, (this.marked ?? new Uint8Array()).reduce((sum, one) => sum + one, 0), panel);
    else programPanel(context, this.facts, this.changes, panel);
  }

  private refreshList(): void {
    const { program } = this, list = byId('list');
    if (!program) return;
    byId('steps').hidden = !this.changes?.length || !!this.query;
    if (this.query) {
      const { hits, total } = program.search(this.query, MAX_HITS);
      list.replaceChildren(hitList(hits, total, hit => this.chooseHit(hit)));
    } else if (this.changes) list.replaceChildren(changeList(this.changes, this.change, index => this.step(index)));
    else list.replaceChildren(moduleTree(program, this.open, box => void this.toggle(box), box => this.chooseBox(box)));
  }

  private refreshTab(): void {
    const isBytes = this.tab === 'bytes', area = byId('bytes');
    byId('tab-graph').setAttribute('aria-pressed', String(!isBytes));
    byId('tab-bytes').setAttribute('aria-pressed', String(isBytes));
    area.hidden = !isBytes;
    if (!isBytes || !this.program) return;
    const program = this.program, choice = (by: 'bytes' | 'operators', text: string): HTMLElement =>
      h('button', { type: 'button', 'aria-pressed': String(this.by === by), text, onclick: () => { this.by = by; this.refreshTab(); } });
    const dive = (box: number): void => { this.top = box; this.refreshTab(); };
    area.replaceChildren(
      h('div', { class: 'tabs', role: 'group', 'aria-label': 'Measure' }, choice('bytes', 'by bytes'), choice('operators', 'by operators')),
      h('p', { class: 'faint' }, 'A click selects a module, a double click goes into it. ', this.top ? link('back to the whole', () => dive(0)) : ''),
      icicle(program, this.by, this.top, Math.max(320, area.clientWidth - 32), box => this.choose({ kind: 'box', id: box }, false), dive));
  }

  private address(): Address {
    const { selection, program } = this;
    const open = this.open.size >= (program?.picture.boxes.parent.length ?? 1) - 1 && this.open.size > 0 ? 'all' : packOpen(this.open);
    return {
      program: this.number, tab: this.tab, mark: this.mark, query: this.query,
      path: program && selection.kind === 'box' ? program.boxPath(selection.id) : '',
      node: program && selection.kind === 'node' ? program.nodeName(selection.id) : '',
      weight: program && selection.kind === 'weight' ? program.text(program.picture.weights.name[selection.id]) : '',
      open: open === this.initial ? '' : open || '0',
    };
  }

  private remember(replace = false): void {
    const hash = writeAddress(this.address());
    if (hash === location.hash) return;
    try { if (replace) history.replaceState(null, '', hash); else history.pushState(null, '', hash); } catch { /* a frame without an address */ }
  }

  private go(address: Address): void {
    this.query = '';
    try { history.pushState(null, '', writeAddress(address)); } catch { /* as above */ }
    void this.show(address).catch((error: Error) => this.fail(error));
  }

  private choose(selection: Selection, show: boolean, mark = ''): void {
    this.selection = selection;
    this.mark = mark;
    this.applyMark();
    const { program } = this;
    const needs = program && selection.kind === 'node' ? program.picture.nodes.box[selection.id]
      : program && selection.kind === 'weight' ? program.picture.nodes.box[program.list(program.nodesOfWeight, selection.id)[0] ?? -1] ?? 0 : 0;
    const size = this.open.size;
    if (show && needs > 0) this.reveal(needs);
    const after = (): void => {
      this.refresh();
      this.remember();
      if (show) { if (this.tab !== 'graph') { this.tab = 'graph'; this.refreshTab(); } this.view.show(this.itemOfSelection()); }
      this.speakSelection();
    };
    if (this.open.size !== size) void this.layout().then(after); else after();
  }

  private chooseNode(node: number, show: boolean): void { this.choose({ kind: 'node', id: node }, show); }

  private chooseBox(box: number): void {
    const size = this.open.size;
    if (box > 0) this.reveal(box, true);
    const after = (): void => { this.choose(box > 0 ? { kind: 'box', id: box } : { kind: 'none' }, false); this.view.show(this.itemOfSelection()); };
    if (this.open.size !== size) void this.layout().then(after); else after();
  }

  private chooseHit(hit: Hit): void {
    if (hit.kind === 'box') this.chooseBox(hit.id); else this.choose({ kind: hit.kind, id: hit.id }, true);
  }

  private step(index: number): void {
    if (!this.changes?.length) return;
    this.change = (index + this.changes.length) % this.changes.length;
    const change = this.changes[this.change];
    if (change.node >= 0) this.choose({ kind: 'node', id: change.node }, true);
    else if (change.weight >= 0) this.choose({ kind: 'weight', id: change.weight }, true);
    else this.refreshList();
    this.speak(`${change.kind} ${change.area} ${change.name}`);
  }

  private async toggle(box: number): Promise<void> {
    if (!this.program || box <= 0) return;
    if (this.open.has(box)) this.open.delete(box); else {
      this.reveal(box);
      for (let only = this.program.stage.children[box]; only.length === 1 && !this.program.stage.nodesOf[this.program.picture.boxes.parent[only[0]]].length; only = this.program.stage.children[only[0]]) this.open.add(only[0]);
    }
    this.selection = { kind: 'box', id: box };
    this.mark = '';
    this.applyMark();
    await this.layout(box);
    this.refresh();
    this.remember();
    this.speak(`${this.open.has(box) ? 'unfolded' : 'folded'} ${this.program.boxPath(box)}`);
  }

  private async openAll(all: boolean): Promise<void> {
    if (!this.program) return;
    this.open = all ? new Set(this.program.picture.boxes.parent.keys()) : new Set();
    this.open.delete(0);
    document.documentElement.dataset.state = 'loading';
    await this.layout();
    this.refresh();
    this.remember();
    this.view.fit();
  }

  private clicked(item: number, event: MouseEvent): void {
    const scene = this.view.painting?.scene;
    if (!scene) return;
    if (item < 0) { this.choose({ kind: 'none' }, false); return; }
    const id = scene.id[item], kind = scene.kind[item];
    if (kind === NODE) {
      if (event.shiftKey && this.selection.kind === 'node') this.choose(this.selection, false, `to:${(this.program as Program).nodeName(id)}`);
      else this.chooseNode(id, false);
      return;
    }
    if (kind === OPEN) {
      const y = this.view.at(event).y - scene.at[4 * item + 1];
      if (y > 26) { this.choose({ kind: 'box', id }, false); return; } // inside: select; its title: fold
    }
    void this.toggle(id);
  }

  search(text: string): void {
    byId<HTMLInputElement>('search').value = text;
    this.query = text.trim();
    this.refreshList();
    this.refreshMarks();
    this.remember(true);
  }

  /** Keys: to a neighbour, into a box, out of it. */
  move(direction: 'up' | 'down' | 'left' | 'right'): void {
    const { painting } = this.view;
    if (!painting) return;
    const item = neighbour(painting, this.itemOfSelection(), direction, this.view.camera);
    if (item < 0) return;
    const id = painting.scene.id[item];
    if (painting.scene.kind[item] === NODE) this.choose({ kind: 'node', id }, false); else this.choose({ kind: 'box', id }, false);
    this.view.show(item);
  }

  private keys(): void {
    listenToKeys({
      move: direction => this.move(direction),
      pan: (x, y) => this.view.pan(x, y),
      zoom: factor => this.view.zoom(factor),
      enter: () => {
        if (this.selection.kind === 'box') void this.toggle(this.selection.id);
        else if (this.selection.kind === 'node') byId('panel').focus();
        else this.move('down');
      },
      leave: () => {
        if (this.mark || this.query) { this.search(''); this.choose(this.selection.kind === 'symbol' ? { kind: 'none' } : this.selection, false); return; }
        const { selection, program } = this;
        if (!program || selection.kind === 'none') return;
        const box = selection.kind === 'node' ? program.picture.nodes.box[selection.id] : selection.kind === 'box' ? program.picture.boxes.parent[selection.id] : 0;
        this.choose(box > 0 ? { kind: 'box', id: box } : { kind: 'none' }, false);
      },
      fit: () => this.view.fit(), unfold: () => void this.openAll(true), fold: () => void this.openAll(false), theme: () => this.theme(),
      search: () => byId<HTMLInputElement>('search').focus(), help: () => showKeys(),
      mark: mark => { if (this.selection.kind === 'node') this.choose(this.selection, false, mark); },
      step: by => this.step(this.change + by),
    });
  }

  private theme(): void {
    const dark = this.view.palette !== DARK;
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
    this.view.palette = dark ? DARK : LIGHT;
    try { localStorage.setItem('pt2-theme', dark ? 'dark' : 'light'); } catch { /* a frame without storage */ }
    this.view.draw();
  }

  private listen(): void {
    const on = (id: string, action: () => void): void => byId(id).addEventListener('click', action);
    on('fold', () => void this.openAll(false));
    on('unfold', () => void this.openAll(true));
    on('fit', () => this.view.fit());
    on('theme', () => this.theme());
    on('help', () => showKeys());
    on('previous-change', () => this.step(this.change - 1));
    on('next-change', () => this.step(this.change + 1));
    for (const tab of ['graph', 'bytes']) on(`tab-${tab}`, () => { this.tab = tab; this.refreshTab(); this.remember(); });
    const name = (): string => `${(this.index.file.split(/[\\/]/).pop() ?? 'program').replace(/[^\w.-]/g, '_').slice(0, 80)}`;
    on('svg', () => {
      const { view } = this;
      if (view.painting) save(`${name()}.svg`, new Blob([svg(view.painting, view.camera, view.width, view.height, view.palette, view.marks)], { type: 'image/svg+xml' }));
    });
    on('png', () => this.view.canvas.toBlob(blob => { if (blob) save(`${name()}.png`, blob); }, 'image/png'));
    let timer = 0;
    const search = byId<HTMLInputElement>('search');
    search.addEventListener('input', () => { clearTimeout(timer); timer = window.setTimeout(() => this.search(search.value), 120); });
    search.addEventListener('keydown', event => {
      if (event.key === 'Enter' && this.program) { clearTimeout(timer); this.search(search.value); const [first] = this.program.search(this.query, 1).hits; if (first) this.chooseHit(first); }
      if (event.key === 'Escape') { this.search(''); byId('canvas').focus(); }
    });
    addEventListener('popstate', () => { if (this.index.programs.length) void this.show(readAddress(location.hash)).catch((error: Error) => this.fail(error)); });
    addEventListener('resize', () => this.refreshTab());
    this.keys();
  }

  private speakSelection(): void {
    const { selection, program } = this;
    if (!program) return;
    if (selection.kind === 'node') this.speak(`${operatorName(program.text(program.picture.nodes.target[selection.id]))} ${program.nodeName(selection.id)}`);
    if (selection.kind === 'box') this.speak(`module ${program.boxPath(selection.id)}, ${program.stage.inside[selection.id]} nodes`);
  }

  private speak(text: string): void { byId('spoken').textContent = text.slice(0, 300); }

  private say(...content: Node[]): void {
    const message = byId('message');
    message.className = '';
    message.replaceChildren(...content);
    message.hidden = false;
  }

  private toast(text: string): void {
    const message = byId('message');
    message.className = 'toast';
    message.textContent = text.slice(0, 600);
    message.hidden = false;
    setTimeout(() => { if (message.className === 'toast') message.hidden = true; }, 6000);
  }

  fail(error: Error): void {
    this.say(h('h2', { text: 'This cannot be shown' }), h('p', { class: 'error', text: error.message }));
    byId('message').className = 'failed';
    document.documentElement.dataset.state = 'error';
    this.number = -1;
  }
}

const app = new App();
app.start().catch((error: Error) => app.fail(error));
