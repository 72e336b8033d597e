// What outlives the page: the theme, and the camera while `--watch` reloads. A frame may have no storage.

import type { Camera } from './painter';
import { askAnew } from './source';
import type { View } from './view';

const WATCH_MS = 1000;

/** Whether the reader wants dark colors: as chosen before, else as the system says. */
export function wantsDark(): boolean {
  try {
    const kept = localStorage.getItem('pt2-theme');
    if (kept) return kept === 'dark';
  } catch { /* a frame without storage */ }
  return matchMedia('(prefers-color-scheme: dark)').matches;
}

/** Show a theme; it is remembered once the reader chose it. */
export function setTheme(dark: boolean, chosen: boolean): void {
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  if (!chosen) return;
  try { localStorage.setItem('pt2-theme', dark ? 'dark' : 'light'); } catch { /* a frame without storage */ }
}

/** Read the page again when the files changed, at the same place. */
export async function watch(view: View): Promise<void> {
  const first = await askAnew<string>('version').catch(() => '');
  setInterval(() => {
    askAnew<string>('version').then(version => {
      if (version === first) return;
      try { sessionStorage.setItem('pt2-camera', JSON.stringify(view.camera)); } catch { /* a frame without storage */ }
      location.reload();
    }, () => undefined);
  }, WATCH_MS);
}

/** Go back to where the page was before it was read again. */
export function keepCamera(view: View): void {
  try {
    const kept = sessionStorage.getItem('pt2-camera');
    sessionStorage.removeItem('pt2-camera');
    if (kept) view.fly(JSON.parse(kept) as Camera, false);
  } catch { /* a frame without storage */ }
}
