// What is selected: found from an address, as an item of the picture, with what it marks.

import type { Address } from './address';
import { count } from './dom';
import type { Painting } from './painter';
import type { Program } from './program';

export type Selection = { kind: 'none' } | { kind: 'node' | 'box' | 'weight'; id: number } | { kind: 'symbol'; name: string };

export const NONE: Selection = { kind: 'none' };

/** The selection that an address names; null if the program has nothing of that name. */
export function findSelection(program: Program, address: Address): Selection | null {
  const { nodes, boxes, weights, texts } = program.picture;
  if (address.mark.startsWith('symbol:')) return { kind: 'symbol', name: address.mark.slice(7) };
  const wanted = address.node || address.weight || address.path;
  if (!wanted) return NONE;
  const column = address.node ? nodes.name : address.weight ? weights.name : boxes.path;
  const id = column.findIndex(text => texts[text] === wanted);
  return id < 0 ? null : { kind: address.node ? 'node' : address.weight ? 'weight' : 'box', id };
}

/** The innermost box that has to be open for a selection to be seen. */
export function boxAround(program: Program, selection: Selection): number {
  const { nodes, boxes } = program.picture;
  if (selection.kind === 'node') return program.stage.boxOf[selection.id];
  if (selection.kind === 'box') return boxes.parent[selection.id];
  if (selection.kind === 'weight') return nodes.box[program.list(program.nodesOfWeight, selection.id)[0] ?? -1] ?? 0;
  return 0;
}

/** The item that stands for a selection: itself, or the folded box around it; -1 for none. */
export function itemOf(program: Program, painting: Painting | null, selection: Selection): number {
  if (!painting || selection.kind === 'none' || selection.kind === 'symbol') return -1;
  const { stage, picture } = program;
  let { kind, id } = selection;
  if (kind === 'weight') {
    const users = program.list(program.nodesOfWeight, id);
    if (users.length) [kind, id] = ['node', users[0]]; else [kind, id] = ['box', picture.weights.box[id]];
  }
  if (kind === 'box' && stage.alone[id]) [kind, id] = ['node', stage.firstNode[id]];
  if (kind === 'node') {
    const item = painting.itemOf.get(id);
    if (item !== undefined) return item;
    id = picture.nodes.box[id];
  }
  for (let box = id; box >= 0; box = picture.boxes.parent[box]) {
    const item = painting.itemOf.get(-1 - box);
    if (item !== undefined) return item;
  }
  return -1;
}

export interface Marking {
  marked: Uint8Array | null; // nodes
  pairs: [number, number][]; // value, node: lines
  said: string; // for those who do not see the picture
  problem: string;
}

/** What a selection and a mark ("up", "down", "both", "to:NAME", "symbol:NAME") put into color. */
export function marking(program: Program, selection: Selection, mark: string): Marking {
  const { edges, values } = program.picture, pairs: [number, number][] = [], found: Marking = { marked: null, pairs, said: '', problem: '' };
  if (mark.startsWith('symbol:')) found.marked = program.sizedBy(mark.slice(7));
  else if (selection.kind !== 'node') return found;
  else if (mark === 'up' || mark === 'down' || mark === 'both') {
    const up = mark === 'down' ? null : program.cone(selection.id, -1), down = mark === 'up' ? null : program.cone(selection.id, 1);
    found.marked = up && down ? up.map((one, i) => one | down[i]) : up ?? down;
    for (let i = 0; i < edges.source.length; i++) {
      const from = values.node[edges.source[i]], to = edges.target[i];
      if ((up && up[from] && up[to]) || (down && down[from] && down[to])) pairs.push([edges.source[i], to]);
    }
  } else if (mark.startsWith('to:')) {
    const name = mark.slice(3), other = program.picture.nodes.name.findIndex(text => program.text(text) === name);
    const path = other >= 0 ? program.path(selection.id, other) : null;
    if (!path) { found.problem = 'no path between these two'; return found; }
    found.marked = new Uint8Array(program.nodeCount);
    for (const node of path) found.marked[node] = 1;
    for (let i = 1; i < path.length; i++) for (const value of program.list(program.inputs, path[i])) if (values.node[value] === path[i - 1]) pairs.push([value, path[i]]);
    found.said = `path of ${count(path.length, 'node')}`;
  } else {
    for (const value of program.list(program.inputs, selection.id)) pairs.push([value, selection.id]);
    for (const value of program.list(program.results, selection.id)) for (const user of program.list(program.users, value)) pairs.push([value, user]);
  }
  return found;
}
