// The current view -> an SVG or PNG file, made in the page.

import type { Palette } from './colours';
import { Camera, Marks, MONO, Painting } from './painter';
import { boxTitle, FOLDED, nodeLabel, NODE, OPEN, shorten } from './scene';

const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escape = (text: string): string => text.replace(/[&<>"']/g, letter => ESCAPES[letter]).replace(/[\u0000-\u001f\ufffe\uffff]/g, '�');

export function svg(painting: Painting, camera: Camera, width: number, height: number, palette: Palette, marks: Marks | null): string {
  const { scene, program, kinds } = painting, { picture } = program;
  const x0 = camera.x, y0 = camera.y, w = width / camera.scale, h = height / camera.scale;
  const sees = (x: number, y: number, dx: number, dy: number): boolean => x <= x0 + w && x + dx >= x0 && y <= y0 + h && y + dy >= y0;
  const out: string[] = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${Math.round(width)}" height="${Math.round(height)}" viewBox="${x0} ${y0} ${w} ${h}">`,
    `<rect x="${x0}" y="${y0}" width="${w}" height="${h}" fill="${palette.paper}"/>`,
  ];
  const rect = (i: number, fill: string, line: string, r: number): void => {
    const [x, y, dx, dy] = scene.at.subarray(4 * i, 4 * i + 4);
    out.push(`<rect x="${x}" y="${y}" width="${dx}" height="${dy}" rx="${r}" fill="${fill}" stroke="${line}"/>`);
  };
  const text = (x: number, y: number, content: string, fill: string, size: number, anchor: string, font: string): void => {
    out.push(`<text x="${x}" y="${y}" fill="${fill}" font-size="${size}" text-anchor="${anchor}" font-family="${escape(font)}">${escape(content)}</text>`);
  };
  const visible: number[] = [];
  for (let i = 0; i < scene.kind.length; i++) {
    if (sees(scene.at[4 * i], scene.at[4 * i + 1], scene.at[4 * i + 2], scene.at[4 * i + 3])) visible.push(i);
  }
  for (const i of visible) if (scene.kind[i] === OPEN) {
    rect(i, palette.frame[program.stage.depth[scene.id[i]] % 3], palette.frameLine, 8);
    text(scene.at[4 * i] + 9, scene.at[4 * i + 1] + 18, boxTitle(picture, scene.id[i]), palette.faint, 12, 'start', 'sans-serif');
  }
  const s = scene.steps;
  for (let i = 0; i < scene.before.length; i++) {
    const [x1, y1, t, x2, y2] = s.subarray(5 * i, 5 * i + 5);
    if (!sees(Math.min(x1, x2), Math.min(y1, y2), Math.abs(x2 - x1), Math.abs(y2 - y1))) continue;
    const colour = marks && marks.steps[i] ? palette.select : scene.flags[i] & 4 ? palette.carries : palette.wire;
    out.push(`<path d="M${x1} ${y1}V${t}H${x2}V${y2}" fill="none" stroke="${colour}"${scene.flags[i] & 4 ? ' stroke-dasharray="5 4"' : ''}/>`);
    if (scene.start[i] !== -1 && scene.value[i] >= 0 && !(scene.flags[i] & 9)) {
      text(x1 + 4, y1 + 12, shorten(picture.texts[picture.values.type[scene.value[i]]], 24), palette.label, 10, 'start', MONO);
    }
  }
  for (const i of visible) {
    const [x, y, dx] = scene.at.subarray(4 * i, 4 * i + 3);
    if (scene.kind[i] === FOLDED) {
      rect(i, palette.frame[0], palette.line[1], 7);
      const repeat = picture.boxes.repeat[scene.id[i]];
      text(x + 9, y + 19, boxTitle(picture, scene.id[i]), palette.ink, 12, 'start', 'sans-serif');
      text(x + 9, y + 36, `${repeat > 1 ? `× ${repeat} · ` : ''}${program.stage.inside[scene.id[i]]} ops`, palette.faint, 11, 'start', 'sans-serif');
    } else if (scene.kind[i] === NODE) {
      const status = picture.nodes.status[scene.id[i]];
      rect(i, palette.fill[kinds[i]], status ? palette.status[status] : palette.line[kinds[i]], 5);
      text(x + dx / 2, y + 16, nodeLabel(picture, scene.id[i]), palette.ink, 11, 'middle', MONO);
    }
  }
  out.push('</svg>');
  return out.join('\n');
}

export function save(name: string, content: Blob): void {
  const link = document.createElement('a'), url = URL.createObjectURL(content);
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
