// The list on the left: the tree of modules, hits of a search, changes to step through.

import { broken, Child, count, h } from './dom';
import { beforeAndAfter, link } from './panels';
import type { Found, Program } from './program';
import { SIGNS, sums, type ChangeGroup } from './review';
import { operatorName } from './scene';
import { Change, REPEAT } from './wire';

const MOST = 400;

export function moduleTree(program: Program, open: Set<number>, selected: number, toggle: (box: number) => void, choose: (box: number) => void): HTMLElement {
  const { boxes } = program.picture;
  const list = h('ul', { class: 'modules', role: 'tree', 'aria-label': 'Modules' });
  let shown = 0;
  const add = (box: number, depth: number): void => {
    if (shown > 4000 || (program.stage.aside[box] && !open.has(box))) return;
    shown++;
    const children = program.stage.modules[box], name = program.text(boxes.name[box]) || operatorName(program.text(boxes.type[box]));
    const kind = program.text(boxes.type[box]).split('.').pop() ?? '', repeat = boxes.kind[box] === REPEAT || boxes.repeat[box] > 1 ? ` × ${boxes.repeat[box]}` : '';
    const arrow = !children.length && program.stage.alone[box] ? h('span', { class: 'arrow', 'aria-hidden': 'true' }) : h('button', { type: 'button', class: 'arrow', 'aria-expanded': String(open.has(box)), 'aria-label': `${open.has(box) ? 'Fold' : 'Unfold'} ${name}`, onclick: () => toggle(box), text: open.has(box) ? '▾' : '▸' });
    const note = boxes.note[box] ? ` ${boxes.note[box]}` : '', title = `${program.boxPath(box)}\n${program.text(boxes.type[box])}${note}`;
    const row = h('li', { role: 'treeitem', 'aria-level': depth + 1, 'aria-selected': String(box === selected), 'aria-expanded': children.length ? String(open.has(box)) : null, class: box === selected ? 'current' : '', title },
      arrow, link(`${name}${repeat}`, () => choose(box), 'name'), h('span', { class: 'faint', text: kind + note }));
    row.style.paddingLeft = `${4 + Math.min(depth, 11) * 9}px`;
    list.append(row);
    if (open.has(box)) for (const child of children) add(child, depth + 1);
  };
  for (const child of program.stage.modules[0]) add(child, 0);
  if (!program.stage.modules[0].length) list.append(h('li', { class: 'faint', text: 'no modules in this program' }));
  return list;
}

export function hitList(found: Found, at: number, choose: (index: number) => void): HTMLElement {
  const { hits, total, problem } = found;
  const status = problem || (at >= 0 ? `${(at + 1).toLocaleString('en')} of ${count(total, 'hit')}` : total > hits.length ? `${total.toLocaleString('en')} hits, the first ${hits.length}` : count(total, 'hit'));
  return h('div', {},
    h('p', { class: problem ? 'error' : 'faint', role: 'status', text: status }),
    h('ul', { class: 'hits' }, ...hits.map((hit, i) => h('li', { class: i === at ? 'current' : '' },
      link(hit.title || '(root)', () => choose(i), 'name'), h('span', { class: 'faint', text: hit.note }), hit.where ? h('div', { class: 'faint where', text: `in ${hit.where}` }) : ''))));
}

/** Changes as a review: by module, with counts; `at` is the one that is being looked at. */
export function changeList(groups: ChangeGroup[], changes: Change[], at: number, choose: (index: number) => void): HTMLElement {
  let left = MOST;
  return h('div', {},
    h('p', { class: 'faint', role: 'status', text: changes.length ? `${at >= 0 ? `${at + 1} of ` : ''}${count(changes.length, 'change')}` : 'no differences' }),
    h('p', { class: 'sums' }, ...sums(changes).map(([kind, text]) => h('span', { class: `badge ${kind}`, text }))),
    ...groups.map((group, g) => {
      const isHere = group.changes.includes(at), shown = isHere || left > 0 ? group.changes.slice(isHere ? Math.max(0, group.changes.indexOf(at) - 40) : 0).slice(0, 120) : [];
      left -= shown.length;
      return h('details', { class: 'group', open: isHere || (at < 0 && g < 6 && group.whole === '') },
        h('summary', { class: group.whole }, h('b', {}, ...broken(group.title)), h('span', { class: 'faint', text: ` ${group.note}` })),
        h('ul', { class: 'changes' }, ...shown.map(index => changeRow(changes[index], group.title, index, at, choose))));
    }));
}

/** One change; what has a name in the module that it is listed under is called by the rest of that name. */
function changeRow(change: Change, module: string, index: number, at: number, choose: (index: number) => void): Child {
  const full = change.name || change.area, name = full.startsWith(`${module}.`) ? full.slice(module.length + 1) : full;
  const own = change.lines.filter(([what]) => !what.startsWith('metadata ')); // the panel has the rest
  return h('li', { class: `${change.kind}${index === at ? ' current' : ''}` },
    h('button', { type: 'button', class: 'name', title: full, onclick: () => choose(index) }, `${SIGNS[change.kind] ?? ''} `, ...broken(name)), h('span', { class: 'faint', text: change.area }),
    index === at ? h('div', { class: 'lines' }, beforeAndAfter({ ...change, lines: own.length ? own : change.lines })) : '');
}
