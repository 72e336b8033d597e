// What the page shows: the program, what is open, selected, marked and searched for.

import { type Address, packOpen } from './address';
import { Found, Program } from './program';
import { type ChangeGroup } from './review';
import { NONE, type Selection } from './selection';
import { Change, Facts, Finding, Index, PLUMBING } from './wire';

export const MAX_HITS = 300;

export class State {
  index: Index = { file: '', old: '', bytes: 0, programs: [], chunk: 256, live: false, data: false, watch: false, error: '', notes: [] };
  program: Program | null = null;
  number = -1;
  open = new Set<number>();
  initial = '';
  selection: Selection = NONE;
  mark = '';
  marked: Uint8Array | null = null;
  pairs: [number, number][] = [];
  query = '';
  plumbing = false;
  tab = 'graph';
  by: 'bytes' | 'operators' = 'bytes';
  top = 0;
  facts: Facts | null = null;
  findings: Finding[] = [];
  changes: Change[] | null = null;
  groups: ChangeGroup[] = [];
  change = -1;
  found: Found | null = null; // what the search found
  hit = -1;
  reviewed: Promise<void> = Promise.resolve(); // when the changes are there
  status: Uint8Array = new Uint8Array(0);

  address(): Address {
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

  /** Open everything around a box, and the box itself unless only what is around it must be seen. */
  reveal(box: number, around = false): void {
    const { boxes } = (this.program as Program).picture;
    for (let at = around ? boxes.parent[box] : box; at > 0; at = boxes.parent[at]) this.open.add(at);
  }
}
