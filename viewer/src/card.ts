// The card next to the pointer: what an item is, in a few lines.

import { count, h } from './dom';
import { NODE } from './scene';
import type { Painting } from './painter';
import type { Program } from './program';
import { short } from './painter';
import { OPERATION, PLUMBING } from './wire';

const DELAY_MS = 180;

export class Card {
  private timer = 0;
  private item = -1;

  constructor(private readonly element: HTMLElement) {}

  /** Show what is under the pointer after a moment; hide the card over nothing. */
  over(program: Program | null, painting: Painting | null, item: number, event: PointerEvent | null, extra: (painting: Painting, item: number) => string[] = () => []): void {
    clearTimeout(this.timer);
    if (!program || !painting || item < 0 || !event) { this.item = -1; this.element.hidden = true; return; }
    if (item === this.item && !this.element.hidden) return;
    this.element.hidden = true;
    this.timer = window.setTimeout(() => {
      this.item = item;
      this.element.replaceChildren(...lines(program, painting, item), ...extra(painting, item).map(text => h('div', { text })));
      this.element.hidden = false;
      const around = (this.element.parentElement as Element).getBoundingClientRect(), own = this.element.getBoundingClientRect();
      const x = event.clientX - around.left + 16, y = event.clientY - around.top + 16;
      this.element.style.left = `${Math.max(4, Math.min(x, around.width - own.width - 8))}px`;
      this.element.style.top = `${Math.max(4, y + own.height > around.height ? y - own.height - 28 : y)}px`;
    }, DELAY_MS);
  }
}

function lines(program: Program, painting: Painting, item: number): HTMLElement[] {
  const { picture, stage } = program, id = painting.scene.id[item];
  const line = (key: string, text: string): HTMLElement[] => (text ? [h('div', {}, h('span', { class: 'faint', text: `${key} ` }), h('span', { class: 'wrap', text }))] : []);
  if (painting.scene.kind[item] !== NODE) {
    const { boxes } = picture, kind = boxes.kind[id];
    return [
      h('b', { text: program.text(boxes.name[id]) || 'program' }), ...line('class', program.text(boxes.type[id])), ...line('path', kind === PLUMBING ? '' : program.boxPath(id)), ...line('', boxes.note[id]),
      ...line('holds', `${count(stage.inside[id], 'operator')}${program.boxElements[id] ? `, ${short(program.boxElements[id])} parameters` : ''}`),
      ...(boxes.repeat[id] > 1 ? line('', `${boxes.repeat[id]} equal modules`) : []),
    ];
  }
  const { nodes, values, weights } = picture, isCall = nodes.kind[id] === OPERATION, results = [...program.list(program.results, id)];
  return [
    h('b', { text: stage.label(id) }), ...line(isCall ? 'operator' : 'role', program.text(nodes.target[id]).replace(/^torch\.ops\./, '')), ...line('name', program.nodeName(id)),
    ...line('arguments', isCall ? program.text(nodes.note[id]) : ''),
    ...[...new Set(program.list(program.inputs, id))].slice(0, 4).flatMap(value => line('takes', `${program.text(values.name[value])}: ${program.text(values.type[value])}`)),
    ...stage.weightsOf[id].slice(0, 4).flatMap(weight => line('weight', `${program.text(weights.name[weight])}: ${program.text(weights.type[weight])}`)),
    ...results.slice(0, 3).flatMap(value => line('gives', program.text(values.type[value]))),
    ...line('module', program.around(nodes.box[id]).filter(box => picture.boxes.kind[box] === 0).map(box => program.boxPath(box)).pop() ?? ''), ...line('source', program.text(nodes.source[id])),
  ];
}
