// The panel, the list and the tab of sizes: what they show of the state.

import { icicle } from './bytes';
import { byId, h } from './dom';
import { Navigation } from './navigation';
import { changeList, hitList, moduleTree } from './outline';
import { boxPanel, Context, link, nodePanel, programPanel, symbolPanel, tensorPanel } from './panels';
import { Program } from './program';
import { MAX_HITS, State } from './state';
import { Tinting } from './tinting';

export class Sides {
  constructor(private readonly state: State, private readonly navigation: Navigation, private readonly tinting: Tinting) {}

  context(): Context {
    return {
      program: this.state.program as Program, number: this.state.number, chunk: this.state.index.chunk, live: this.state.index.live,
      symbols: this.state.facts?.symbols.map(([name]) => name) ?? [], findings: this.state.findings, changes: this.state.changes ?? [],
      on: {
        node: node => this.navigation.chooseNode(node, true), box: box => this.navigation.chooseBox(box), weight: weight => this.navigation.choose({ kind: 'weight', id: weight }, true),
        symbol: name => { this.state.mark = `symbol:${name}`; this.navigation.choose({ kind: 'symbol', name }, false, this.state.mark); },
        mark: mark => { if (mark || this.state.selection.kind !== 'symbol') this.navigation.choose(this.state.selection, false, mark); else this.navigation.choose({ kind: 'none' }, false, ''); },
        toggle: box => void this.navigation.toggle(box), file: text => this.navigation.search(text),
      },
    };
  }

  /** What came later is put into the panel, unless someone may be at work in it. */
  arrived(): void {
    if (this.state.selection.kind !== 'weight') this.panel();
  }

  panel(): void {
    if (!this.state.program) return;
    const panel = byId('panel'), { selection } = this.state, context = this.context();
    panel.scrollTop = 0;
    if (selection.kind === 'node') nodePanel(context, selection.id, panel);
    else if (selection.kind === 'box' && selection.id > 0) boxPanel(context, selection.id, this.state.open.has(selection.id), panel);
    else if (selection.kind === 'weight') tensorPanel(context, selection.id, panel);
    else if (selection.kind === 'symbol') symbolPanel(context, selection.name, this.state.facts, (this.state.marked ?? new Uint8Array()).reduce((sum, one) => sum + one, 0), panel);
    else programPanel(context, this.state.facts, this.state.changes, panel);
  }

  list(): void {
    const { program } = this.state, list = byId('list');
    if (!program) return;
    byId('steps').hidden = !this.state.changes?.length && !this.state.query;
    if (this.state.query) list.replaceChildren(hitList(this.state.found ?? program.search(this.state.query, MAX_HITS), this.state.hit, index => { this.state.hit = index - 1; this.navigation.goToHit(1); }));
    else if (this.tinting.column) list.replaceChildren(this.tinting.table(program));
    else if (this.state.changes) list.replaceChildren(changeList(this.state.groups, this.state.changes, this.state.change, index => this.navigation.step(index)));
    else list.replaceChildren(moduleTree(program, this.state.open, this.state.selection.kind === 'box' ? this.state.selection.id : -1, box => void this.navigation.toggle(box), box => this.navigation.chooseBox(box)));
  }

  tab(): void {
    const isBytes = this.state.tab === 'bytes', area = byId('bytes');
    byId('tab-graph').setAttribute('aria-pressed', String(!isBytes));
    byId('tab-bytes').setAttribute('aria-pressed', String(isBytes));
    area.hidden = !isBytes;
    if (!isBytes || !this.state.program) return;
    const program = this.state.program, choice = (by: 'bytes' | 'operators', text: string): HTMLElement =>
      h('button', { type: 'button', 'aria-pressed': String(this.state.by === by), text, onclick: () => { this.state.by = by; this.tab(); } });
    const dive = (box: number): void => { this.state.top = box; this.tab(); };
    area.replaceChildren(
      h('div', { class: 'tabs', role: 'group', 'aria-label': 'Measure' }, choice('bytes', 'by bytes'), choice('operators', 'by operators')),
      h('p', { class: 'faint' }, 'A click selects a module, a double click goes into it. ', this.state.top ? link('back to the whole', () => dive(0)) : ''),
      icicle(program, this.state.by, this.state.top, Math.max(320, area.clientWidth - 32), box => this.navigation.choose({ kind: 'box', id: box }, false), dive));
  }
}
