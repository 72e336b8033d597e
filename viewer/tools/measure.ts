// Pictures -> how good their layout is, all modules unfolded: width, height, bends of the backbone, cover, crossings.
//
// Usage: node measure.mjs PICTURE.json … (bundled by rolldown). Prints one line of JSON for each.

import { readFileSync } from 'node:fs';
import { NODE, OPEN, Stage } from '../src/scene';
import { backbone } from '../src/spine';
import { structure } from '../src/structure';
import { Picture, PLUMBING } from '../src/wire';

for (const path of process.argv.slice(2)) {
  const picture = JSON.parse(readFileSync(path, 'utf8')) as Picture, start = performance.now();
  structure(picture);
  const stage = new Stage(picture), scene = stage.scene(new Set(picture.boxes.kind.flatMap((kind, box) => (kind === PLUMBING ? [] : [box]))));
  const ms = performance.now() - start;
  const middle = new Map<number, number>(), boxes = new Map<number, [number, number, number, number]>();
  let cover = 0;
  scene.kind.forEach((kind, i) => {
    const [x, y, w, h] = scene.at.subarray(4 * i, 4 * i + 4);
    if (kind === NODE) { middle.set(scene.id[i], x + w / 2); cover += w * h; }
    if (kind === OPEN) boxes.set(scene.id[i], [x, y, w, h]);
  });
  const xs = backbone(picture).filter(node => picture.nodes.kind[node] === 0).map(node => middle.get(node)).filter(x => x !== undefined);
  const sorted = [...xs].sort((a, b) => a - b), median = sorted[sorted.length >> 1];
  const off = xs.filter(x => Math.abs(x - median) > 10).length;
  // Horizontal parts of lines against vertical ones of other values.
  const s = scene.steps, across: number[][] = [], down: number[][] = [];
  let upward = 0;
  for (let i = 0; i < scene.value.length; i++) {
    const [x1, y1, t, x2, y2] = s.subarray(5 * i, 5 * i + 5);
    if (scene.flags[i] & 2) continue;
    if (scene.flags[i] & 1 || y2 < y1 - 0.5) upward++;
    if (Math.abs(x1 - x2) < 0.5) down.push([x1, y1, y2, scene.value[i]]);
    else { across.push([Math.min(x1, x2), Math.max(x1, x2), t, scene.value[i]]); down.push([x1, y1, t, scene.value[i]], [x2, t, y2, scene.value[i]]); }
  }
  down.sort((a, b) => a[0] - b[0]);
  let crossings = 0;
  for (const [left, right, t, value] of across) {
    let low = 0, high = down.length;
    while (low < high) { const m = (low + high) >> 1; if (down[m][0] <= left + 0.5) low = m + 1; else high = m; }
    for (; low < down.length && down[low][0] < right - 0.5; low++) {
      if (down[low][3] !== value && down[low][1] < t - 0.1 && down[low][2] > t + 0.1) crossings++;
    }
  }
  console.log(JSON.stringify({
    name: path.replace(/.*\/|\.json$/g, ''), nodes: middle.size, width: Math.round(scene.width), height: Math.round(scene.height),
    cover: +((100 * cover) / (scene.width * scene.height)).toFixed(2), chain: xs.length, off,
    spread: xs.length ? Math.round(sorted[sorted.length - 1] - sorted[0]) : 0, crossings, upward, sideways: across.length, ms: Math.round(ms),
  }));
}
