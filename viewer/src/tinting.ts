// Colors of nodes by a column of numbers, with legend, table and timeline; by the kind of the operator without one.

import { DARK } from './colours';
import { colored, type Column, columns, COSTS, DRIFT, drifts, legend, type Numbers, ofBoxes, table, timeline } from './data';
import { byId, h } from './dom';
import { toast } from './messages';
import type { Painting } from './painter';
import type { Program } from './program';
import { FOLDED, OPEN } from './scene';
import { ask } from './source';
import type { View } from './view';
import type { Change } from './wire';

export class Tinting {
  column: Column | null = null;
  own: Record<string, Record<string, number>> = {};
  private asked: Numbers = {};
  private number = 0;
  private boxes: ArrayLike<number> = [];
  private sorted = true;

  constructor(private readonly view: View, private readonly choose: (node: number) => void, private readonly relist: () => void) {}

  /** Offer the columns of a program. */
  offer(program: Program, number: number): void {
    this.asked = {};
    this.number = number;
    this.show(program, null);
    byId('color').replaceChildren(h('option', { value: '', text: 'Color: operators' }), ...[...Object.keys(this.own), ...COSTS, ...columns(program, {}, {}).map(({ name }) => name)].map(name => h('option', { value: name, text: name })));
  }

  /** Offer the drift of weights if there is any. */
  drift(program: Program, changes: Change[]): void {
    const found = drifts(program, changes);
    this.asked = { ...this.asked, ...found };
    if (found[DRIFT]) byId('color').children[0].after(h('option', { value: DRIFT, text: DRIFT }));
  }

  /** Color a painting that is new: nodes, and folded boxes by what is in them. The scale is that of what is drawn. */
  tint(painting: Painting): void {
    painting.tints = null;
    if (!this.column) return;
    const { of } = this.column, { kind, id } = painting.scene;
    const { tints, caption } = colored(this.column, Float64Array.from(kind, (is, i) => (is === OPEN ? NaN : (is === FOLDED ? this.boxes : of)[id[i]])), this.view.palette === DARK);
    painting.tints = tints;
    painting.captions = [...painting.captions.filter(({ title }) => title !== caption.title), caption];
    byId('legend').replaceChildren(legend(caption));
  }

  /** Color by a column, or by operators for ""; costs are asked for when they are wanted. */
  async by(program: Program, name: string): Promise<void> {
    if (COSTS.includes(name) && !this.asked[name]) {
      const { number } = this;
      try { const costs = await ask<Numbers>(`costs/${number}`); if (number === this.number) this.asked = { ...this.asked, ...costs }; } catch (error) { toast((error as Error).message); }
    }
    byId<HTMLSelectElement>('color').value = name;
    this.show(program, columns(program, this.own, this.asked).find(column => column.name === name) ?? null);
    this.relist();
    this.view.draw();
  }

  private show(program: Program, column: Column | null): void {
    const { painting } = this.view, before = this.column?.name;
    this.column = column;
    this.boxes = column ? ofBoxes(program, column) : [];
    byId('legend').hidden = !column;
    byId('timeline').hidden = !column || column.names !== null;
    if (painting && painting.program === program) {
      painting.captions = painting.captions.filter(({ title }) => title !== before);
      this.tint(painting);
    }
    this.paintTimeline(program);
  }

  paintTimeline(program: Program | null): void {
    const canvas = byId<HTMLCanvasElement>('timeline');
    if (this.column && !canvas.hidden && program) timeline(program, this.column, canvas, [this.view.palette.select, this.view.palette.ink], node => this.choose(node));
  }

  /** The number of a node or a box, as a line of its card. */
  lines(painting: Painting, item: number): string[] {
    const { column } = this, { kind, id } = painting.scene;
    if (!column || item < 0) return [];
    const value = (kind[item] === FOLDED || kind[item] === OPEN ? this.boxes : column.of)[id[item]];
    return Number.isNaN(value) ? [] : [`${column.name} ${column.text(value)}`];
  }

  /** The nodes with their numbers, for the list on the left. */
  table(program: Program): HTMLElement {
    return table(program, this.column as Column, this.sorted, node => this.choose(node), () => { this.sorted = !this.sorted; this.relist(); });
  }
}
