// The page: loads a program, lays it out, and connects the picture, the sides, the address and the commands.

import { type Address, packOpen, readAddress, START, unpackOpen, writeAddress } from './address';
import { Card } from './card';
import { DARK, LIGHT } from './colours';
import { type Actions, bind } from './commands';
import { byId, bytesText, h } from './dom';
import { exportFigure, putOnPaper, svg } from './export';
import { keepCamera, setTheme, wantsDark, watch } from './kept';
import { showKeys } from './keys';
import { say, showFailure, toast } from './messages';
import { Navigation, type Page } from './navigation';
import { Painting, type Marks } from './painter';
import { Program } from './program';
import { groupChanges, inOrder, oldLabels, openChanges, STATUSES, statusOfBoxes, sums } from './review';
import { boxAround, findSelection, NONE } from './selection';
import { Sides } from './sides';
import { ask } from './source';
import { MAX_HITS, State } from './state';
import { structure } from './structure';
import './style.css';
import { Thread } from './thread';
import { Tinting } from './tinting';
import { View } from './view';
import { Change, Facts, Finding, Index, Picture, PLUMBING } from './wire';

const FIRST_ITEMS = 20, CHANGED_ITEMS = 150;

class App implements Page {
  private readonly state = new State();
  private readonly thread = new Thread();
  private readonly view: View;
  private readonly tinting: Tinting;
  private readonly navigation: Navigation;
  private readonly sides: Sides;
  private readonly card = new Card(byId('card'));

  constructor() {
    const dark = wantsDark();
    setTheme(dark, false);
    this.view = new View(byId('canvas'), byId('map'), dark ? DARK : LIGHT, {
      click: (item, event) => this.navigation.clicked(item, event),
      hover: event => {
        const at = event ? this.view.at(event) : null;
        this.card.over(this.state.program, this.view.painting, at && this.view.painting ? this.view.painting.hit(at.x, at.y) : -1, event, (painting, item) => this.tinting.lines(painting, item));
      },
      wire: value => this.navigation.chooseNode((this.state.program as Program).picture.values.node[value], true),
      moved: () => this.card.over(null, null, -1, null),
    });
    this.tinting = new Tinting(this.view, node => this.navigation.chooseNode(node, true), () => this.sides.list());
    this.navigation = new Navigation(this.state, this.view, this);
    this.sides = new Sides(this.state, this.navigation, this.tinting);
    bind(this.actions());
    addEventListener('beforeprint', () => putOnPaper(this.view));
    addEventListener('popstate', () => { if (this.state.index.programs.length) void this.show(readAddress(location.hash)).catch((error: Error) => this.fail(error)); });
  }

  async start(): Promise<void> {
    this.state.index = await ask<Index>('index');
    const { file, old, error, programs, notes } = this.state.index;
    const name = file.split(/[\\/]/).pop() || file;
    byId('file').textContent = old ? `${old.split(/[\\/]/).pop()} → ${name}` : name;
    byId('file').title = `${old ? `${old} → ` : ''}${file}  ${bytesText(this.state.index.bytes)}`;
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
    if (this.state.index.data) this.tinting.own = await ask<Record<string, Record<string, number>>>('data');
    byId('split').hidden = !old;
    const isExport = location.hash === '#export';
    await this.show(isExport ? START : readAddress(location.hash));
    if (this.state.index.data && this.state.program) await this.tinting.by(this.state.program, Object.keys(this.tinting.own)[0] ?? '');
    keepCamera(this.view);
    if (this.state.index.watch) void watch(this.view);
    if (isExport) await this.state.reviewed;
    if (isExport && this.view.painting) document.body.append(h('pre', { id: 'figure', hidden: true, text: svg(this.view.painting, LIGHT, null) }));
  }

  /** Make the page show what an address says. */
  private async show(address: Address): Promise<void> {
    const number = address.program < this.state.index.programs.length ? address.program : 0;
    const isNew = number !== this.state.number;
    if (isNew) await this.load(number);
    const program = this.state.program as Program, { boxes } = program.picture;
    this.state.open = address.open === 'all' ? new Set(boxes.kind.flatMap((kind, box) => (box && (kind !== PLUMBING || this.state.plumbing) ? [box] : []))) : new Set(unpackOpen(address.open || this.state.initial));
    this.state.tab = address.tab;
    this.state.mark = address.mark;
    const selection = findSelection(program, address);
    if (!selection) toast(`nothing here is called ${address.node || address.weight || address.path}`);
    this.state.selection = selection ?? NONE;
    if (this.state.selection.kind !== 'none' && this.state.selection.kind !== 'symbol') this.state.reveal(boxAround(program, this.state.selection));
    if (address.query !== this.state.query) { byId<HTMLInputElement>('search').value = address.query; this.state.query = address.query; this.state.hit = -1; }
    this.state.found = this.state.query ? program.search(this.state.query, MAX_HITS) : null;
    this.navigation.applyMark();
    await this.layout();
    this.refresh();
    const item = this.navigation.itemOfSelection();
    if (isNew && item >= 0) this.view.center(item, false); else if (item >= 0) this.view.show(item); else if (isNew) this.view.fit(false);
  }

  private async load(number: number): Promise<void> {
    document.documentElement.dataset.state = 'loading';
    this.state.number = number;
    this.state.program = null;
    this.state.facts = null;
    this.state.findings = [];
    this.state.changes = null;
    this.state.change = -1;
    this.state.top = 0;
    byId('programs').querySelectorAll('button').forEach((button, i) => button.setAttribute('aria-pressed', String(i === number)));
    const picture = await ask<Picture>(`program/${number}`);
    structure(picture);
    const opened = this.thread.picture(picture, FIRST_ITEMS);
    const program = new Program(picture);
    this.state.program = program;
    this.state.initial = packOpen(this.state.index.old ? openChanges(program, new Set(await opened), CHANGED_ITEMS) : await opened);
    this.tinting.offer(program, number);
    document.documentElement.dataset.nodes = String(picture.nodes.kind.filter(kind => kind === 0).length);
    this.state.status = this.state.index.old ? statusOfBoxes(program) : new Uint8Array(picture.boxes.parent.length);
    const still = (): boolean => this.state.number === number;
    ask<Facts>(`facts/${number}`).then(facts => { if (still()) { this.state.facts = facts; this.sides.arrived(); } }, (error: Error) => toast(error.message));
    ask<Finding[]>(`findings/${number}`).then(found => { if (still()) { this.state.findings = found; this.sides.arrived(); } }, () => undefined);
    if (this.state.index.old) this.state.reviewed = ask<Change[]>(`changes/${number}`).then(found => { if (still()) { this.state.groups = groupChanges(program, found); this.state.changes = inOrder(this.state.groups, found); oldLabels(found, program.stage.old); this.tinting.drift(program, found); this.caption(); this.sides.list(); this.sides.arrived(); } }, (error: Error) => toast(error.message));
  }

  /** Lay out what is open, and keep a box where it is on the screen. */
  async layout(anchor = -1): Promise<void> {
    const program = this.state.program as Program, { view } = this;
    const old = view.painting, before = anchor >= 0 ? old?.itemOf.get(-1 - anchor) : undefined;
    const reply = await this.thread.scene(this.state.open);
    if (!reply || program !== this.state.program) return;
    const painting = new Painting(program, reply.scene, this.state.status);
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
    if (!painting || !this.state.changes || painting.captions.some(caption => caption.title === title)) return;
    const { palette } = this.view, entries = sums(this.state.changes).map(([kind, text]): [string, string] => [palette.status[STATUSES.indexOf(kind)], text]);
    painting.captions.unshift({ title, from: entries.length ? '' : 'no differences', entries });
  }

  refreshMarks(): void {
    const { program } = this.state, { view } = this;
    if (!view.painting || !program) return;
    let marks: Marks | null = null;
    const found = this.state.marked ?? this.state.found?.marked ?? null;
    if (found) {
      const boxes = new Uint8Array(program.picture.boxes.parent.length);
      found.forEach((is, node) => { if (is) for (let box = program.picture.nodes.box[node]; box >= 0 && !boxes[box]; box = program.picture.boxes.parent[box]) boxes[box] = 1; });
      marks = { nodes: found, boxes, steps: view.painting.steps(this.state.pairs) };
    } else if (this.state.pairs.length) {
      const all = new Uint8Array(program.nodeCount).fill(1);
      marks = { nodes: all, boxes: new Uint8Array(program.picture.boxes.parent.length).fill(1), steps: view.painting.steps(this.state.pairs) };
    }
    view.marks = marks;
    view.selected = this.navigation.itemOfSelection();
    view.draw();
  }

  refresh(): void {
    this.sides.list();
    this.sides.panel();
    this.sides.tab();
    this.refreshMarks();
  }

  remember(replace = false): void {
    const hash = writeAddress(this.state.address());
    if (hash === location.hash) return;
    try { if (replace) history.replaceState(null, '', hash); else history.pushState(null, '', hash); } catch { /* a frame without an address */ }
  }

  private go(address: Address): void {
    this.state.query = '';
    try { history.pushState(null, '', writeAddress(address)); } catch { /* as above */ }
    void this.show(address).catch((error: Error) => this.fail(error));
  }

  /** What buttons and keys do. */
  private actions(): Actions {
    return {
      move: direction => this.navigation.move(direction),
      pan: (x, y) => this.view.pan(x, y),
      zoom: factor => this.view.zoom(factor),
      enter: () => {
        if (this.state.selection.kind === 'box') void this.navigation.toggle(this.state.selection.id);
        else if (this.state.selection.kind === 'node') byId('panel').focus();
        else this.navigation.move('down');
      },
      leave: () => this.navigation.leave(),
      fit: () => this.view.fit(), unfold: () => void this.navigation.openAll(true), fold: () => void this.navigation.openAll(false), theme: () => this.theme(),
      search: () => { byId('open-left').getAttribute('aria-expanded') === 'false' && byId('left').inert && byId('open-left').click(); byId<HTMLInputElement>('search').focus(); },
      help: () => showKeys(),
      mark: mark => { if (this.state.selection.kind === 'node') this.navigation.choose(this.state.selection, false, mark); },
      step: by => this.navigation.step(this.state.change + by),
      plumbing: () => this.navigation.togglePlumbing(),
      tab: tab => { this.state.tab = tab; this.sides.tab(); this.remember(); },
      find: text => this.navigation.search(text),
      hit: by => this.navigation.goToHit(by),
      next: by => { if (this.state.query) this.navigation.goToHit(by); else this.navigation.step(this.state.change + by); },
      export: (kind, width) => void exportFigure(this.view, this.state.index.file, kind, width),
      color: by => { if (this.state.program) void this.tinting.by(this.state.program, by); },
      split: () => this.split(),
      resized: () => { this.sides.tab(); this.tinting.paintTimeline(this.state.program); },
    };
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
    if (this.tinting.column && this.state.program) void this.tinting.by(this.state.program, this.tinting.column.name);
    this.view.draw();
  }

  fail(error: Error): void {
    showFailure(error);
    this.state.number = -1;
  }

  refreshList(): void { this.sides.list(); }

  refreshTab(): void { this.sides.tab(); }
}

const app = new App();
app.start().catch((error: Error) => app.fail(error));
