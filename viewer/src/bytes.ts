// Modules by bytes or by number of operators, as an icicle of buttons: the whole on top, its parts below.

import { bytesText, count, h } from './dom';
import type { Program } from './program';
import { operatorName } from './scene';

const ROW = 34, MAX_PARTS = 1500, LEAST_PX = 3;

export function icicle(program: Program, by: 'bytes' | 'operators', top: number, width: number, choose: (box: number) => void, dive: (box: number) => void): HTMLElement {
  const { boxes } = program.picture, size = (box: number): number => (by === 'bytes' ? program.boxBytes[box] : program.stage.inside[box]);
  const children = new Map<number, number[]>();
  boxes.parent.forEach((parent, box) => {
    if (parent < 0 || size(box) === 0) return;
    const list = children.get(parent);
    if (list) list.push(box); else children.set(parent, [box]);
  });
  const area = h('div', { class: 'icicle', role: 'group', 'aria-label': `modules by ${by}` }), total = Math.max(1, size(top));
  const queue = [{ box: top, x: 0, depth: 0 }];
  let parts = 0, deepest = 0;
  for (let i = 0; i < queue.length && parts < MAX_PARTS; i++) {
    const { box, x, depth } = queue[i], w = (size(box) / total) * width;
    if (w < LEAST_PX) continue;
    parts++;
    deepest = Math.max(deepest, depth);
    const name = program.text(boxes.name[box]) || operatorName(program.text(boxes.type[box])) || 'program';
    const amount = by === 'bytes' ? bytesText(size(box)) : count(size(box), 'op'), share = `${((100 * size(box)) / total).toPrecision(3)} %`;
    const button = h('button', {
      type: 'button', class: `part depth${depth % 4}`, title: `${program.boxPath(box) || 'program'}\n${amount}, ${share}`, 'aria-label': `${name}: ${amount}, ${share}`,
      onclick: () => choose(box), ondblclick: () => dive(box),
    }, w > 22 ? h('b', { text: name }) : '', w > 90 ? h('span', { text: ` ${amount}` }) : '');
    Object.assign(button.style, { left: `${x}px`, top: `${depth * ROW}px`, width: `${Math.max(1, w - 1)}px`, height: `${ROW - 2}px` });
    area.append(button);
    let at = x;
    for (const child of (children.get(box) ?? []).sort((a, b) => size(b) - size(a))) {
      queue.push({ box: child, x: at, depth: depth + 1 });
      at += (size(child) / total) * width;
    }
  }
  if (!parts) area.append(h('p', { class: 'faint', text: 'The file stores no weights.' }));
  area.style.height = `${(deepest + 1) * ROW + 8}px`;
  return area;
}
