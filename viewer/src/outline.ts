// The list on the left: the tree of modules, hits of a search, changes to step through.

import { Child, count, h } from './dom';
import { link } from './panels';
import type { Hit, Program } from './program';
import { operatorName } from './scene';
import { Change, REPEAT } from './wire';

const MOST = 400;

export function moduleTree(program: Program, open: Set<number>, toggle: (box: number) => void, choose: (box: number) => void): HTMLElement {
  const { boxes } = program.picture;
  const list = h('ul', { class: 'modules' });
  let shown = 0;
  const add = (box: number, depth: number): void => {
    if (shown++ > 4000) return;
    const children = program.stage.children[box], name = program.text(boxes.name[box]) || operatorName(program.text(boxes.type[box]));
    const kind = program.text(boxes.type[box]).split('.').pop() ?? '', repeat = boxes.kind[box] === REPEAT || boxes.repeat[box] > 1 ? ` × ${boxes.repeat[box]}` : '';
    const arrow = h('button', { type: 'button', class: 'arrow', 'aria-expanded': String(open.has(box)), 'aria-label': `${open.has(box) ? 'Fold' : 'Unfold'} ${name}`, onclick: () => toggle(box), text: open.has(box) ? '▾' : '▸' });
    const row = h('li', {}, arrow, link(`${name}${repeat}`, () => choose(box), 'name'), h('span', { class: 'faint', text: kind }));
    row.style.paddingLeft = `${4 + Math.min(depth, 11) * 9}px`;
    list.append(row);
    if (open.has(box)) for (const child of children) add(child, depth + 1);
  };
  for (const child of program.stage.children[0]) add(child, 0);
  if (!program.stage.children[0].length) list.append(h('li', { class: 'faint', text: 'no modules in this program' }));
  return list;
}

export function hitList(hits: Hit[], total: number, choose: (hit: Hit) => void): HTMLElement {
  return h('div', {},
    h('p', { class: 'faint', role: 'status', text: total > hits.length ? `${total.toLocaleString('en')} hits, the first ${hits.length}` : count(total, 'hit') }),
    h('ul', { class: 'hits' }, ...hits.map(hit => h('li', {}, link(hit.title || '(root)', () => choose(hit), 'name'), h('span', { class: 'faint', text: hit.note })))));
}

export function changeList(changes: Change[], at: number, choose: (index: number) => void): HTMLElement {
  const from = Math.max(0, Math.min(at - MOST / 2, changes.length - MOST));
  const items: Child[] = changes.slice(from, from + MOST).map((change, i) => {
    const index = from + i;
    return h('li', { class: `${change.kind}${index === at ? ' current' : ''}` },
      link(`${{ added: '+', removed: '−', modified: '~' }[change.kind] ?? ''} ${change.name || change.area}`, () => choose(index), 'name'),
      h('span', { class: 'faint', text: `${change.area}${change.module ? ` in ${change.module}` : ''}` }),
      index === at ? h('div', { class: 'lines' }, ...change.lines.map(text => h('div', { class: 'wrap', text }))) : '');
  });
  return h('div', {}, h('p', { class: 'faint', role: 'status', text: changes.length ? count(changes.length, 'change') : 'no differences' }), h('ul', { class: 'changes' }, ...items));
}
