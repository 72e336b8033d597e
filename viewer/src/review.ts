// Changes -> groups by module, for a review: what was added or removed as a whole is one group.

import { count } from './dom';
import type { Program } from './program';
import { ADDED, Change, MODIFIED, PLUMBING, REMOVED, SAME } from './wire';

export const STATUSES = ['', 'added', 'removed', 'modified'];
export const SIGNS: Record<string, string> = { added: '+', removed: '−', modified: '~' };

export interface ChangeGroup {
  title: string; // path of a module, "(program)" for the rest
  whole: '' | 'added' | 'removed'; // whether all of the module is that
  note: string;
  changes: number[];
}

/** For each box the status that all nodes in it have, SAME where they differ. */
function wholeStatus(program: Program): Uint8Array {
  const { boxes, nodes } = program.picture, status = new Uint8Array(boxes.parent.length).fill(255);
  nodes.status.forEach((is, node) => {
    for (let box = nodes.box[node]; box >= 0; box = boxes.parent[box]) status[box] = status[box] === 255 || status[box] === is ? is : SAME;
  });
  return status.map(is => (is === ADDED || is === REMOVED ? is : SAME));
}

/** The path of a module, of which a box may be one part ("layers#2"). */
function modulePath(program: Program, box: number): string { return program.boxPath(box).replace(/#\d+(?=\.|$)/g, ''); }

/** For a change the box that it is in: of its node or tensor, or of the module that its name begins with. */
export function boxesOfChanges(program: Program): (change: Change) => number {
  const { boxes, nodes, weights } = program.picture, boxOfPath = new Map<string, number>();
  boxes.path.forEach((_, box) => { if (!boxOfPath.has(modulePath(program, box))) boxOfPath.set(modulePath(program, box), box); });
  return change => {
    if (change.node >= 0) return nodes.box[change.node];
    if (change.weight >= 0) return weights.box[change.weight];
    for (let path = change.module || change.name; path; path = path.slice(0, Math.max(0, path.lastIndexOf('.')))) {
      const box = boxOfPath.get(path);
      if (box !== undefined) return box;
    }
    return 0;
  };
}

const AREAS = ['node', 'weight', 'constant', 'input', 'output'];
/** What is seen in the picture comes first. */
function rank({ area }: Change): number {
  const at = AREAS.indexOf(area);
  return at < 0 ? AREAS.length : at;
}

/** Changes by module. A weight that is new or gone is one change, not a second one as an input of the graph. */
export function groupChanges(program: Program, changes: Change[]): ChangeGroup[] {
  const { boxes } = program.picture, whole = wholeStatus(program), groups = new Map<string, ChangeGroup>();
  const boxOf = boxesOfChanges(program);
  const held = new Set(changes.filter(({ area }) => /^(weight|constant)$/.test(area)).map(({ kind, name }) => `${kind} ${name}`));
  const calls = new Map(changes.flatMap(({ area, kind, name }): [string, string][] => (area === 'module call' ? [[name, kind]] : [])));
  const wholly = (box: number): ChangeGroup['whole'] => { // nodes of a new module may correspond to some of another one
    const kind = whole[box] ? STATUSES[whole[box]] : calls.get(modulePath(program, box));
    return kind === 'added' || kind === 'removed' ? kind : '';
  };
  const order = changes.map((_, index) => index).filter(index => !(changes[index].area === 'input' && held.has(`${changes[index].kind} ${changes[index].name}`)));
  order.sort((a, b) => rank(changes[a]) - rank(changes[b]) || a - b);
  for (const index of order) {
    const change = changes[index];
    let box = boxOf(change), outer = -1;
    for (let at = box; at > 0; at = boxes.parent[at]) if (!program.stage.alone[at] && boxes.kind[at] === 0 && !/^part /.test(boxes.note[at]) && wholly(at)) outer = at;
    if (outer < 0) while (box > 0 && (boxes.kind[box] !== 0 || program.stage.alone[box])) box = boxes.parent[box];
    const found = outer >= 0 ? outer : box, title = found > 0 ? modulePath(program, found) : '(program)';
    let group = groups.get(title);
    if (!group) {
      group = { title, whole: outer < 0 ? '' : wholly(outer), note: '', changes: [] };
      groups.set(title, group);
    }
    group.changes.push(index);
  }
  for (const group of groups.values()) group.note = noteOf(group, group.changes.map(index => changes[index]));
  return [...groups.values()];
}

/** The changes in the order of their groups, which get the new numbers: the order in which they are listed and stepped through. */
export function inOrder(groups: ChangeGroup[], changes: Change[]): Change[] {
  const found: Change[] = [];
  for (const group of groups) group.changes = group.changes.map(index => found.push(changes[index]) - 1);
  return found;
}

/** How many nodes and weights were removed, added and modified, as texts by kind. */
export function sums(changes: Change[]): [string, string][] {
  return ['removed', 'added', 'modified'].flatMap((kind): [string, string][] => {
    const of = (area: RegExp): number => changes.filter(change => change.kind === kind && area.test(change.area)).length, nodes = of(/^node$/), weights = of(/^(weight|constant)$/);
    return nodes + weights ? [[kind, `${SIGNS[kind]} ${[nodes ? count(nodes, 'node') : '', weights ? count(weights, 'weight') : ''].filter(Boolean).join(', ')}`]] : [];
  });
}

/** For each box: new or gone if all of its nodes are, modified if one of them is not as it was. */
export function statusOfBoxes(program: Program): Uint8Array {
  const { boxes, nodes } = program.picture, found = wholeStatus(program);
  statuses(program).forEach((status, node) => {
    if (status) for (let box = nodes.box[node]; box >= 0; box = boxes.parent[box]) found[box] ||= MODIFIED;
  });
  return found;
}

/** For each node its status; a node whose weights changed is modified, too. */
function statuses(program: Program): number[] {
  const { nodes, weights } = program.picture;
  return nodes.status.map((status, node) => status || (program.stage.weightsOf[node].some(weight => weights.status[weight]) ? MODIFIED : SAME));
}

/** The boxes to open at first so that changes are seen: those around them, up to so many items, first around what is new or gone,
 *  but not what is that as a whole. Where nodes changed, boxes in which only numbers of weights changed stay folded: often all of
 *  them did. Of equal modules one is not shown as a sample where the box of all of them is opened. */
export function openChanges(program: Program, open: Set<number>, most: number): Set<number> {
  const { boxes, nodes } = program.picture, { stage } = program, whole = wholeStatus(program), found = new Set<number>();
  const status = nodes.status.some(is => is) ? nodes.status : statuses(program), changed = nodes.kind.map((_, node) => node).filter(node => status[node]);
  let room = most;
  for (const node of [...changed.filter(one => status[one] !== MODIFIED), ...changed.filter(one => status[one] === MODIFIED)]) {
    const around = program.around(stage.boxOf[node]), end = around.findIndex(box => whole[box] || boxes.kind[box] === PLUMBING);
    const needed = end < 0 ? around : around.slice(0, end), items = needed.reduce((sum, box) => sum + (open.has(box) || found.has(box) ? 0 : stage.nodesOf[box].length + stage.children[box].length), 0);
    if (items > room) continue;
    room -= items;
    for (const box of needed) found.add(box);
  }
  const isSample = (box: number): boolean => box > 0 && ((stage.sample(boxes.parent[box]) === box && found.has(boxes.parent[box])) || isSample(boxes.parent[box]));
  return new Set([...found, ...[...open].filter(box => !isSample(box))]);
}

function noteOf(group: ChangeGroup, changes: Change[]): string {
  const of = (kind: string, area: RegExp): number => changes.filter(change => (!kind || change.kind === kind) && area.test(change.area)).length;
  if (group.whole) {
    const weights = of(group.whole, /weight|constant/);
    return `${group.whole}: ${count(of(group.whole, /node/), 'node')}${weights ? `, ${count(weights, 'weight')}` : ''}`;
  }
  return (['added', 'removed', 'modified'] as const).map(kind => [kind, of(kind, /./)] as const).filter(([, total]) => total).map(([kind, total]) => `${total} ${kind}`).join(', ');
}

/** What labels of the old program say where that differs: the operator or sizes of a node, the sizes of a weight. */
export function oldLabels(changes: Change[], found: Map<string, string>): void {
  for (const { node, weight, kind, lines } of changes) {
    for (const [what, old] of kind === 'modified' ? lines : []) {
      if (old === null) continue;
      if (weight >= 0 && what === 'sizes') found.set(`weight ${weight}`, old);
      else if (node < 0) continue;
      else if (what === 'target') found.set(`target ${node}`, old.split('.').length > 2 ? `torch.ops.${old}` : old);
      else if (/^result( 0)? sizes$/.test(what)) found.set(`sizes ${node}`, old);
      else if (what.startsWith('argument')) found.set(`arguments ${node}`, old);
    }
  }
}
