// Keys -> what they do; the keyboard alone suffices.

import { byId, h } from './dom';
import type { Camera, Painting } from './painter';
import { OPEN } from './scene';

export interface KeyEvents {
  move(direction: 'up' | 'down' | 'left' | 'right'): void;
  pan(x: number, y: number): void;
  zoom(factor: number): void;
  enter(): void; leave(): void; fit(): void; unfold(): void; fold(): void; theme(): void; search(): void; help(): void;
  mark(mark: string): void;
  step(by: number): void;
}

const HELP: [string, string][] = [
  ['↑ ↓ ← →', 'to the node above, below, beside'], ['Shift + arrows', 'move the picture'], ['Enter', 'unfold or fold; of a node, go to its panel'],
  ['Esc', 'clear marks; then out to the module around'], ['+  −', 'zoom'], ['f', 'fit'], ['u', 'unfold all'], ['z', 'fold all'], ['/', 'search'],
  ['d', 'what the selected node depends on'], ['b', 'what is built on it'], ['n  p', 'next and previous change'], ['t', 'light or dark'], ['Alt + ←  Alt + →', 'back and forward'],
  ['Shift + click', 'shortest path from the selected node'], ['Wheel, drag', 'move'], ['Ctrl + wheel, pinch', 'zoom'], ['?', 'these keys'],
];

export function showKeys(): void {
  const dialog = byId<HTMLDialogElement>('keys');
  dialog.replaceChildren(h('h2', { text: 'Keys' }), h('table', {}, ...HELP.map(([key, what]) => h('tr', {}, h('td', {}, h('kbd', { text: key })), h('td', { text: what })))),
    h('div', { class: 'buttons' }, h('button', { class: 'button', type: 'button', onclick: () => dialog.close(), text: 'Close' })));
  if (!dialog.open) dialog.showModal();
}

export function listenToKeys(on: KeyEvents): void {
  const arrows = { ArrowUp: 'up', ArrowDown: 'down', ArrowLeft: 'left', ArrowRight: 'right' } as const;
  const simple: Record<string, () => void> = {
    f: () => on.fit(), u: () => on.unfold(), z: () => on.fold(), t: () => on.theme(), '?': () => on.help(), d: () => on.mark('up'), b: () => on.mark('down'),
    n: () => on.step(1), p: () => on.step(-1), '+': () => on.zoom(1.3), '=': () => on.zoom(1.3), '-': () => on.zoom(1 / 1.3), Escape: () => on.leave(),
  };
  addEventListener('keydown', event => {
    const target = event.target as HTMLElement, isCanvas = target.id === 'canvas';
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest('input, dialog')) return;
    if (event.key === '/') { event.preventDefault(); on.search(); return; }
    const arrow = arrows[event.key as keyof typeof arrows];
    if (arrow && (isCanvas || target === document.body)) {
      event.preventDefault();
      const [x, y] = { up: [0, -80], down: [0, 80], left: [-80, 0], right: [80, 0] }[arrow];
      if (event.shiftKey) on.pan(x, y); else on.move(arrow);
    } else if (event.key === 'Enter' && isCanvas) { event.preventDefault(); on.enter(); } else simple[event.key]?.();
  });
}

/** The closest item in a direction; from nowhere the first in sight. */
export function neighbour(painting: Painting, item: number, direction: 'up' | 'down' | 'left' | 'right', camera: Camera): number {
  const { at, kind } = painting.scene;
  const x = (i: number): number => at[4 * i] + at[4 * i + 2] / 2, y = (i: number): number => at[4 * i + 1] + at[4 * i + 3] / 2;
  if (item < 0) {
    let first = -1;
    for (let i = 0; i < kind.length; i++) if (kind[i] !== OPEN && at[4 * i + 1] >= camera.y && (first < 0 || at[4 * i + 1] < at[4 * first + 1])) first = i;
    return first;
  }
  let best = -1, least = Infinity;
  const x0 = x(item), y0 = direction === 'up' ? at[4 * item + 1] : direction === 'down' && kind[item] !== OPEN ? at[4 * item + 1] + at[4 * item + 3] : y(item);
  for (let i = 0; i < kind.length; i++) {
    if (i === item || kind[i] === OPEN) continue;
    const dx = x(i) - x0, dy = y(i) - y0;
    const along = direction === 'up' ? -dy : direction === 'down' ? dy : direction === 'left' ? -dx : dx, across = Math.abs(direction === 'up' || direction === 'down' ? dx : dy);
    if (along < 4) continue;
    const cost = along + 2.5 * across;
    if (cost < least) { least = cost; best = i; }
  }
  return best;
}
