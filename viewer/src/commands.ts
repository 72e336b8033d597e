// Buttons, keys, drawers and the search field -> what the page does.

import { byId } from './dom';
import { listenToKeys, showKeys, type KeyEvents } from './keys';

export interface Actions extends KeyEvents {
  plumbing(): void;
  tab(tab: string): void;
  find(text: string): void; // as it is typed
  hit(by: number): void; // to the next or previous hit
  next(by: number): void; // to the next or previous of what the list shows: hits or changes
  export(kind: 'svg' | 'png' | 'print', width: number): void;
  color(by: string): void;
  split(): void;
  resized(): void;
}

export function bind(actions: Actions): void {
  const on = (id: string, action: () => void): void => byId(id).addEventListener('click', action);
  on('fold', () => actions.fold());
  on('unfold', () => actions.unfold());
  on('plumbing', () => actions.plumbing());
  on('fit', () => actions.fit());
  on('theme', () => actions.theme());
  on('help', () => showKeys());
  on('split', () => actions.split());
  on('previous-change', () => actions.next(-1));
  on('next-change', () => actions.next(1));
  for (const tab of ['graph', 'bytes']) on(`tab-${tab}`, () => actions.tab(tab));
  byId('color').addEventListener('change', event => actions.color((event.target as HTMLSelectElement).value));
  on('map-close', () => { byId('map').dataset.closed = 'true'; byId('map').hidden = byId('map-close').hidden = true; });
  bindSearch(actions);
  bindExport(actions);
  bindDrawers();
  addEventListener('resize', () => actions.resized());
  listenToKeys(actions);
}

function bindSearch(actions: Actions): void {
  const search = byId<HTMLInputElement>('search');
  let timer = 0;
  search.addEventListener('input', () => { clearTimeout(timer); timer = window.setTimeout(() => actions.find(search.value), 120); });
  search.addEventListener('keydown', event => {
    if (event.key === 'Enter') { clearTimeout(timer); actions.find(search.value); actions.hit(event.shiftKey ? -1 : 1); }
    if (event.key === 'Escape') { actions.find(''); byId('canvas').focus(); }
  });
}

function bindExport(actions: Actions): void {
  const dialog = byId<HTMLDialogElement>('export-dialog'), width = byId<HTMLInputElement>('export-width');
  byId('export').addEventListener('click', () => dialog.showModal());
  byId('export-close').addEventListener('click', () => dialog.close());
  for (const kind of ['svg', 'png', 'print'] as const) {
    byId(kind).addEventListener('click', () => { dialog.close(); actions.export(kind, Math.max(100, Math.min(16_000, Number(width.value) || 2000))); });
  }
}

/** In a narrow window the sides are drawers; one of them is open at a time. */
function bindDrawers(): void {
  const sides = { left: byId('left'), panel: byId('panel') }, narrow = matchMedia('(max-width: 980px)');
  const show = (which: 'left' | 'panel' | ''): void => {
    for (const [name, side] of Object.entries(sides)) {
      const isOpen = name === which;
      side.classList.toggle('open', isOpen);
      side.inert = narrow.matches && !isOpen;
      byId(`open-${name}`).setAttribute('aria-expanded', String(isOpen));
    }
  };
  for (const name of ['left', 'panel'] as const) byId(`open-${name}`).addEventListener('click', () => show(sides[name].classList.contains('open') ? '' : name));
  byId('stage').addEventListener('pointerdown', () => { if (narrow.matches) show(''); });
  byId('list').addEventListener('click', event => { if (narrow.matches && (event.target as Element).closest('.name')) show(''); }); // what was chosen is under the drawer
  addEventListener('keydown', event => { if (event.key === 'Escape' && narrow.matches) show(''); });
  narrow.addEventListener('change', () => show(''));
  show('');
}
