// The page: what is asked for, what is selected, what is open; everything else is told by this.

import { Address, packOpen, readAddress, START, unpackOpen, writeAddress } from './address';
import { icicle } from './bytes';
import { Card } from './card';
import { DARK, LIGHT } from './colours';
import { byId, bytesText, h } from './dom';
import { type Actions, bind } from './commands';
import { exportFigure, svg } from './export';
import { keepCamera, setTheme, wantsDark, watch } from './kept';
import { neighbour, showKeys } from './keys';
import { say, showFailure, speak, toast } from './messages';
import { changeList, hitList, moduleTree } from './outline';
import { Painting, type Marks } from './painter';
import { boxPanel, Context, link, nodePanel, programPanel, symbolPanel, tensorPanel } from './panels';
import { Found, Hit, Program } from './program';
import { boxesOfChanges, type ChangeGroup, groupChanges, inOrder, oldLabels, openChanges, STATUSES, statusOfBoxes, sums } from './review';
import { NODE, OPEN, operatorName } from './scene';
import { boxAround, findSelection, itemOf, marking, NONE, type Selection } from './selection';
import { ask } from './source';
import { structure } from './structure';
import './style.css';
import { Thread } from './thread';
import { Tinting } from './tinting';
import { View } from './view';
import { Change, Facts, Finding, Index, Picture, PLUMBING } from './wire';

const FIRST_ITEMS = 20, CHANGED_ITEMS = 150, MAX_HITS = 300;

class App {
  private index: Index = { file: '', old: '', bytes: 0, programs: [], chunk: 256, live: false, data: false, watch: false, error: '', notes: [] };
  private program: Program | null = null;
  private number = -1;
  private thread = new Thread();
  private open = new Set<number>();
  private initial = '';
  private selection: Selection = NONE;
  private mark = '';
  private marked: Uint8Array | null = null;
  private pairs: [number, number][] = [];
  private query = '';
  private plumbing = false;
  private tab = 'graph';
  private by: 'bytes' | 'operators' = 'bytes';
  private top = 0;
  private facts: Facts | null = null;
  private findings: Finding[] = [];
  private changes: Change[] | null = null;
  private groups: ChangeGroup[] = [];
  private change = -1;
  private found: Found | null = null; // what the search found
  private hit = -1;
  private reviewed: Promise<void> = Promise.resolve(); // when the changes are there
  private status: Uint8Array = new Uint8Array(0);
  private readonly view: View;
  private readonly tinting: Tinting;
  private readonly card = new Card(byId('card'));

  constructor() {
    const dark = wantsDark();
    setTheme(dark, false);
    this.view = new View(byId('canvas'), byId('map'), dark ? DARK : LIGHT, {
      click: (item, event) => this.clicked(item, event),
      hover: event => {
        const at = event ? this.view.at(event) : null;
        this.card.over(this.program, this.view.painting, at && this.view.painting ? this.view.painting.hit(at.x, at.y) : -1, event, (painting, item) => this.tinting.lines(painting, item));
      },
      wire: value => this.chooseNode((this.program as Program).picture.values.node[value], true),
      moved: () => this.card.over(null, null, -1, null),
    });
    this.tinting = new Tinting(this.view, node => this.chooseNode(node, true), () => this.refreshList());
    bind(this.actions());
    addEventListener('popstate', () => { if (this.index.programs.length) void this.show(readAddress(location.hash)).catch((error: Error) => this.fail(error)); });
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
      say(h('h2', { text: 'No program in this archive' }), h('p', { text: `It holds ${notes[0] ?? 'nothing'}; they are listed on the left.` }));
      document.documentElement.dataset.state = 'ready';
      return;
    }
    if (this.index.data) this.tinting.own = await ask<Record<string, Record<string, number>>>('data');
    byId('split').hidden = !old;
    const isExport = location.hash === '#export';
    await this.show(isExport ? START : readAddress(location.hash));
    if (this.index.data && this.program) await this.tinting.by(this.program, Object.keys(this.tinting.own)[0] ?? '');
    keepCamera(this.view);
    if (this.index.watch) void watch(this.view);
    if (isExport) await this.reviewed;
    if (isExport && this.view.painting) document.body.append(h('pre', { id: 'figure', hidden: true, text: svg(this.view.painting, LIGHT, null) }));
  }

  /** Make the page show what an address says. */
  private async show(address: Address): Promise<void> {
    const number = address.program < this.index.programs.length ? address.program : 0;
    const isNew = number !== this.number;
    if (isNew) await this.load(number);
    const program = this.program as Program, { boxes } = program.picture;
    this.open = address.open === 'all' ? new Set(boxes.kind.flatMap((kind, box) => (box && (kind !== PLUMBING || this.plumbing) ? [box] : []))) : new Set(unpackOpen(address.open || this.initial));
    this.tab = address.tab;
    this.mark = address.mark;
    const selection = findSelection(program, address);
    if (!selection) toast(`nothing here is called ${address.node || address.weight || address.path}`);
    this.selection = selection ?? NONE;
    if (this.selection.kind !== 'none' && this.selection.kind !== 'symbol') this.reveal(boxAround(program, this.selection));
    if (address.query !== this.query) { byId<HTMLInputElement>('search').value = address.query; this.query = address.query; this.hit = -1; }
    this.found = this.query ? program.search(this.query, MAX_HITS) : null;
    this.applyMark();
    await this.layout();
    this.refresh();
    const item = this.itemOfSelection();
    if (isNew && item >= 0) this.view.center(item, false); else if (item >= 0) this.view.show(item); else if (isNew) this.view.fit(false);
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
    structure(picture);
    const opened = this.thread.picture(picture, FIRST_ITEMS);
    const program = new Program(picture);
    this.program = program;
    this.initial = packOpen(this.index.old ? openChanges(program, new Set(await opened), CHANGED_ITEMS) : await opened);
    this.tinting.offer(program, number);
    document.documentElement.dataset.nodes = String(picture.nodes.kind.filter(kind => kind === 0).length);
    this.status = this.index.old ? statusOfBoxes(program) : new Uint8Array(picture.boxes.parent.length);
    const still = (): boolean => this.number === number;
    ask<Facts>(`facts/${number}`).then(facts => { if (still()) { this.facts = facts; this.arrived(); } }, (error: Error) => toast(error.message));
    ask<Finding[]>(`findings/${number}`).then(found => { if (still()) { this.findings = found; this.arrived(); } }, () => undefined);
    if (this.index.old) this.reviewed = ask<Change[]>(`changes/${number}`).then(found => { if (still()) { this.groups = groupChanges(program, found); this.changes = inOrder(this.groups, found); oldLabels(found, program.stage.old); this.tinting.drift(program, found); this.caption(); this.refreshList(); this.arrived(); } }, (error: Error) => toast(error.message));
  }

  /** Lay out what is open, and keep a box where it is on the screen. */
  private async layout(anchor = -1): Promise<void> {
    const program = this.program as Program, { view } = this;
    const old = view.painting, before = anchor >= 0 ? old?.itemOf.get(-1 - anchor) : undefined;
    const reply = await this.thread.scene(this.open);
    if (!reply || program !== this.program) return;
    const painting = new Painting(program, reply.scene, this.status);
    this.caption(painting);
    this.tinting.tint(painting);
    document.documentElement.dataset.items = String(reply.scene.kind.length);
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

  /** What an exported figure of two files says below the picture. */
  private caption(painting = this.view.painting): void {
    const title = byId('file').textContent ?? '';
    if (!painting || !this.changes || painting.captions.some(caption => caption.title === title)) return;
    const { palette } = this.view, entries = sums(this.changes).map(([kind, text]): [string, string] => [palette.status[STATUSES.indexOf(kind)], text]);
    painting.captions.unshift({ title, from: entries.length ? '' : 'no differences', entries });
  }

  private itemOfSelection(): number {
    return this.program ? itemOf(this.program, this.view.painting, this.selection) : -1;
  }

  /** Open everything around a box, and the box itself unless only what is around it must be seen. */
  private reveal(box: number, around = false): void {
    const { boxes } = (this.program as Program).picture;
    for (let at = around ? boxes.parent[box] : box; at > 0; at = boxes.parent[at]) this.open.add(at);
  }

  private applyMark(): void {
    const { marked, pairs, said, problem } = marking(this.program as Program, this.selection, this.mark);
    this.marked = marked;
    this.pairs = pairs;
    if (said) speak(said);
    if (problem) toast(problem);
  }

  private refreshMarks(): void {
    const { view, program } = this;
    if (!view.painting || !program) return;
    let marks: Marks | null = null;
    const found = this.marked ?? this.found?.marked ?? null;
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
      symbols: this.facts?.symbols.map(([name]) => name) ?? [], findings: this.findings, changes: this.changes ?? [],
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
    byId('steps').hidden = !this.changes?.length && !this.query;
    if (this.query) list.replaceChildren(hitList(this.found ?? program.search(this.query, MAX_HITS), this.hit, index => { this.hit = index - 1; this.goToHit(1); }));
    else if (this.tinting.column) list.replaceChildren(this.tinting.table(program));
    else if (this.changes) list.replaceChildren(changeList(this.groups, this.changes, this.change, index => this.step(index)));
    else list.replaceChildren(moduleTree(program, this.open, this.selection.kind === 'box' ? this.selection.id : -1, box => void this.toggle(box), box => this.chooseBox(box)));
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
    const all = (program?.picture.boxes.kind ?? []).filter((kind, box) => box && kind !== PLUMBING).length;
    const open = all > 0 && this.open.size >= all && [...this.open].filter(box => program?.picture.boxes.kind[box] !== PLUMBING).length === all ? 'all' : packOpen(this.open);
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

  private choose(selection: Selection, show: boolean, mark = '', then: (() => void) | null = null): void {
    this.selection = selection;
    this.mark = mark;
    this.applyMark();
    const { program } = this;
    const needs = program && selection.kind !== 'box' ? boxAround(program, selection) : 0;
    const size = this.open.size;
    if (show && needs > 0) this.reveal(needs);
    const after = (): void => {
      this.refresh();
      this.remember();
      if (show) { if (this.tab !== 'graph') { this.tab = 'graph'; this.refreshTab(); } this.view.show(this.itemOfSelection()); }
      this.speakSelection();
      then?.();
    };
    if (this.open.size !== size) void this.layout().then(after); else after();
  }

  private chooseNode(node: number, show: boolean): void { this.choose({ kind: 'node', id: node }, show); }

  private chooseBox(box: number, then: (() => void) | null = null): void {
    const size = this.open.size;
    if (box > 0) this.reveal(box, !this.program?.stage.aside[box]);
    const after = (): void => { this.choose(box > 0 ? { kind: 'box', id: box } : NONE, false); if (then) then(); else this.view.show(this.itemOfSelection()); };
    if (this.open.size !== size) void this.layout().then(after); else after();
  }

  private chooseHit(hit: Hit): void {
    if (hit.kind === 'box') this.chooseBox(hit.id); else this.choose({ kind: hit.kind, id: hit.id }, true);
  }

  private step(index: number): void {
    if (!this.changes?.length) return;
    this.change = (index + this.changes.length) % this.changes.length;
    const change = this.changes[this.change];
    const seen = (): void => { const item = this.itemOfSelection(); if (item >= 0) this.view.center(item); else this.view.fit(); };
    if (change.node >= 0) this.choose({ kind: 'node', id: change.node }, true, '', seen);
    else if (change.weight >= 0) this.choose({ kind: 'weight', id: change.weight }, true, '', seen);
    else {
      const box = boxesOfChanges(this.program as Program)(change);
      if (box > 0) this.chooseBox(box, seen); else { this.choose(NONE, false); this.view.fit(); }
    }
    byId('list').querySelector('.current')?.scrollIntoView({ block: 'nearest' });
    speak(`${change.kind} ${change.area} ${change.name}`);
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
    if (this.open.has(box)) this.view.show(this.itemOfSelection());
    speak(`${this.open.has(box) ? 'unfolded' : 'folded'} ${this.program.boxPath(box)}`);
  }

  private async openAll(all: boolean): Promise<void> {
    if (!this.program) return;
    const { kind } = this.program.picture.boxes;
    this.open = new Set(all ? kind.flatMap((is, box) => (box && (is !== PLUMBING || this.plumbing) ? [box] : [])) : []);
    document.documentElement.dataset.state = 'loading';
    await this.layout();
    this.refresh();
    this.remember();
    this.view.fit();
  }

  /** Show the operators that are folded as plumbing, or fold them again. */
  private togglePlumbing(): void {
    if (!this.program) return;
    this.plumbing = !this.plumbing;
    byId('plumbing').setAttribute('aria-pressed', String(this.plumbing));
    this.program.picture.boxes.kind.forEach((kind, box) => { if (kind === PLUMBING) { if (this.plumbing) this.open.add(box); else this.open.delete(box); } });
    void this.layout().then(() => { this.refresh(); this.remember(); });
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
    if (text.trim() !== this.query) this.hit = -1;
    this.query = text.trim();
    this.found = this.query && this.program ? this.program.search(this.query, MAX_HITS) : null;
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

  /** What buttons and keys do. */
  private actions(): Actions {
    return {
      move: direction => this.move(direction),
      pan: (x, y) => this.view.pan(x, y),
      zoom: factor => this.view.zoom(factor),
      enter: () => {
        if (this.selection.kind === 'box') void this.toggle(this.selection.id);
        else if (this.selection.kind === 'node') byId('panel').focus();
        else this.move('down');
      },
      leave: () => this.leave(),
      fit: () => this.view.fit(), unfold: () => void this.openAll(true), fold: () => void this.openAll(false), theme: () => this.theme(),
      search: () => { byId('open-left').getAttribute('aria-expanded') === 'false' && byId('left').inert && byId('open-left').click(); byId<HTMLInputElement>('search').focus(); },
      help: () => showKeys(),
      mark: mark => { if (this.selection.kind === 'node') this.choose(this.selection, false, mark); },
      step: by => this.step(this.change + by),
      plumbing: () => this.togglePlumbing(),
      tab: tab => { this.tab = tab; this.refreshTab(); this.remember(); },
      find: text => this.search(text),
      hit: by => this.goToHit(by),
      next: by => { if (this.query) this.goToHit(by); else this.step(this.change + by); },
      export: (kind, width) => void exportFigure(this.view, this.index.file, kind, width),
      color: by => { if (this.program) void this.tinting.by(this.program, by); },
      split: () => this.split(),
      resized: () => { this.refreshTab(); this.tinting.paintTimeline(this.program); },
    };
  }

  /** Clear marks and search first; then go to the module around what is selected. */
  private leave(): void {
    if (this.mark || this.query) { this.search(''); this.choose(this.selection.kind === 'symbol' ? NONE : this.selection, false); return; }
    const { selection, program } = this;
    if (!program || selection.kind === 'none') return;
    const box = selection.kind === 'node' ? program.stage.boxOf[selection.id] : selection.kind === 'box' ? program.picture.boxes.parent[selection.id] : 0;
    this.choose(box > 0 ? { kind: 'box', id: box } : NONE, false);
  }

  private goToHit(by: number): void {
    const hits = this.found?.hits ?? [];
    if (!hits.length) return;
    this.hit = this.hit < 0 ? (by > 0 ? 0 : hits.length - 1) : (this.hit + by + hits.length) % hits.length;
    this.chooseHit(hits[this.hit]);
    byId('list').querySelector('.current')?.scrollIntoView({ block: 'nearest' });
  }

  /** Old and new next to one another, under one camera. */
  private split(): void {
    this.view.split = !this.view.split;
    byId('split').setAttribute('aria-pressed', String(this.view.split));
    this.view.draw();
  }

  private theme(): void {
    const dark = this.view.palette !== DARK;
    setTheme(dark, true);
    this.view.palette = dark ? DARK : LIGHT;
    if (this.tinting.column && this.program) void this.tinting.by(this.program, this.tinting.column.name);
    this.view.draw();
  }

  private speakSelection(): void {
    const { selection, program } = this;
    if (!program) return;
    if (selection.kind === 'node') speak(`${operatorName(program.text(program.picture.nodes.target[selection.id]))} ${program.nodeName(selection.id)}`);
    if (selection.kind === 'box') speak(`module ${program.boxPath(selection.id)}, ${program.stage.inside[selection.id]} nodes`);
  }

  fail(error: Error): void {
    showFailure(error);
    this.number = -1;
  }
}

const app = new App();
app.start().catch((error: Error) => app.fail(error));
