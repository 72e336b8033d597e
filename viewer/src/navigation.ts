// Choosing, opening, searching and stepping: what changes the state, and what of the page is drawn again.

import { byId } from './dom';
import { neighbour } from './keys';
import { speak, toast } from './messages';
import { Hit, Program } from './program';
import { boxesOfChanges } from './review';
import { NODE, OPEN, operatorName } from './scene';
import { boxAround, itemOf, marking, NONE, type Selection } from './selection';
import { MAX_HITS, State } from './state';
import { View } from './view';
import { PLUMBING } from './wire';

/** What navigation asks of the page. */
export interface Page {
  layout(anchor?: number): Promise<void>;
  refresh(): void;
  refreshList(): void;
  refreshTab(): void;
  refreshMarks(): void;
  remember(replace?: boolean): void;
}

export class Navigation {
  constructor(private readonly state: State, private readonly view: View, private readonly page: Page) {}

  itemOfSelection(): number {
    return this.state.program ? itemOf(this.state.program, this.view.painting, this.state.selection) : -1;
  }

  applyMark(): void {
    const { marked, pairs, said, problem } = marking(this.state.program as Program, this.state.selection, this.state.mark);
    this.state.marked = marked;
    this.state.pairs = pairs;
    if (said) speak(said);
    if (problem) toast(problem);
  }

  choose(selection: Selection, show: boolean, mark = '', then: (() => void) | null = null): void {
    this.state.selection = selection;
    this.state.mark = mark;
    this.applyMark();
    const { program } = this.state;
    const needs = program && selection.kind !== 'box' ? boxAround(program, selection) : 0;
    const size = this.state.open.size;
    if (show && needs > 0) this.state.reveal(needs);
    const after = (): void => {
      this.page.refresh();
      this.page.remember();
      if (show) { if (this.state.tab !== 'graph') { this.state.tab = 'graph'; this.page.refreshTab(); } this.view.show(this.itemOfSelection()); }
      this.speakSelection();
      then?.();
    };
    if (this.state.open.size !== size) void this.page.layout().then(after); else after();
  }

  chooseNode(node: number, show: boolean): void { this.choose({ kind: 'node', id: node }, show); }

  chooseBox(box: number, then: (() => void) | null = null): void {
    const size = this.state.open.size;
    if (box > 0) this.state.reveal(box, !this.state.program?.stage.aside[box]);
    const after = (): void => { this.choose(box > 0 ? { kind: 'box', id: box } : NONE, false); if (then) then(); else this.view.show(this.itemOfSelection()); };
    if (this.state.open.size !== size) void this.page.layout().then(after); else after();
  }

  chooseHit(hit: Hit): void {
    if (hit.kind === 'box') this.chooseBox(hit.id); else this.choose({ kind: hit.kind, id: hit.id }, true);
  }

  step(index: number): void {
    if (!this.state.changes?.length) return;
    this.state.change = (index + this.state.changes.length) % this.state.changes.length;
    const change = this.state.changes[this.state.change];
    const seen = (): void => { const item = this.itemOfSelection(); if (item >= 0) this.view.center(item); else this.view.fit(); };
    if (change.node >= 0) this.choose({ kind: 'node', id: change.node }, true, '', seen);
    else if (change.weight >= 0) this.choose({ kind: 'weight', id: change.weight }, true, '', seen);
    else {
      const box = boxesOfChanges(this.state.program as Program)(change);
      if (box > 0) this.chooseBox(box, seen); else { this.choose(NONE, false); this.view.fit(); }
    }
    byId('list').querySelector('.current')?.scrollIntoView({ block: 'nearest' });
    speak(`${change.kind} ${change.area} ${change.name}`);
  }

  async toggle(box: number): Promise<void> {
    if (!this.state.program || box <= 0) return;
    if (this.state.open.has(box)) this.state.open.delete(box); else {
      this.state.reveal(box);
      for (let only = this.state.program.stage.children[box]; only.length === 1 && !this.state.program.stage.nodesOf[this.state.program.picture.boxes.parent[only[0]]].length; only = this.state.program.stage.children[only[0]]) this.state.open.add(only[0]);
    }
    this.state.selection = { kind: 'box', id: box };
    this.state.mark = '';
    this.applyMark();
    await this.page.layout(box);
    this.page.refresh();
    this.page.remember();
    if (this.state.open.has(box)) this.view.show(this.itemOfSelection());
    speak(`${this.state.open.has(box) ? 'unfolded' : 'folded'} ${this.state.program.boxPath(box)}`);
  }

  async openAll(all: boolean): Promise<void> {
    if (!this.state.program) return;
    const { kind } = this.state.program.picture.boxes;
    this.state.open = new Set(all ? kind.flatMap((is, box) => (box && (is !== PLUMBING || this.state.plumbing) ? [box] : [])) : []);
    document.documentElement.dataset.state = 'loading';
    await this.page.layout();
    this.page.refresh();
    this.page.remember();
    this.view.fit();
  }

  /** Show the operators that are folded as plumbing, or fold them again. */
  togglePlumbing(): void {
    if (!this.state.program) return;
    this.state.plumbing = !this.state.plumbing;
    byId('plumbing').setAttribute('aria-pressed', String(this.state.plumbing));
    this.state.program.picture.boxes.kind.forEach((kind, box) => { if (kind === PLUMBING) { if (this.state.plumbing) this.state.open.add(box); else this.state.open.delete(box); } });
    void this.page.layout().then(() => { this.page.refresh(); this.page.remember(); });
  }

  clicked(item: number, event: MouseEvent): void {
    const scene = this.view.painting?.scene;
    if (!scene) return;
    if (item < 0) { this.choose({ kind: 'none' }, false); return; }
    const id = scene.id[item], kind = scene.kind[item];
    if (kind === NODE) {
      if (event.shiftKey && this.state.selection.kind === 'node') this.choose(this.state.selection, false, `to:${(this.state.program as Program).nodeName(id)}`);
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
    if (text.trim() !== this.state.query) this.state.hit = -1;
    this.state.query = text.trim();
    this.state.found = this.state.query && this.state.program ? this.state.program.search(this.state.query, MAX_HITS) : null;
    this.page.refreshList();
    this.page.refreshMarks();
    this.page.remember(true);
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

  /** Clear marks and search first; then go to the module around what is selected. */
  leave(): void {
    if (this.state.mark || this.state.query) { this.search(''); this.choose(this.state.selection.kind === 'symbol' ? NONE : this.state.selection, false); return; }
    const { selection, program } = this.state;
    if (!program || selection.kind === 'none') return;
    const box = selection.kind === 'node' ? program.stage.boxOf[selection.id] : selection.kind === 'box' ? program.picture.boxes.parent[selection.id] : 0;
    this.choose(box > 0 ? { kind: 'box', id: box } : NONE, false);
  }

  goToHit(by: number): void {
    const hits = this.state.found?.hits ?? [];
    if (!hits.length) return;
    this.state.hit = this.state.hit < 0 ? (by > 0 ? 0 : hits.length - 1) : (this.state.hit + by + hits.length) % hits.length;
    this.chooseHit(hits[this.state.hit]);
    byId('list').querySelector('.current')?.scrollIntoView({ block: 'nearest' });
  }

  speakSelection(): void {
    const { selection, program } = this.state;
    if (!program) return;
    if (selection.kind === 'node') speak(`${operatorName(program.text(program.picture.nodes.target[selection.id]))} ${program.nodeName(selection.id)}`);
    if (selection.kind === 'box') speak(`module ${program.boxPath(selection.id)}, ${program.stage.inside[selection.id]} nodes`);
  }
}
