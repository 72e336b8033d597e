// The whole figure -> SVG, PNG or paper. The painter draws it as on the screen, onto a context that writes SVG.

import { LIGHT, type Palette } from './colours';
import { byId } from './dom';
import { toast } from './messages';
import type { Camera, Caption, Marks, Painting } from './painter';
import type { View } from './view';

const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escape = (text: string): string => text.replace(/[&<>"']/g, letter => ESCAPES[letter]).replace(/[\u0000-\u001f\ufffe\uffff]/g, '�');
const MARGIN = 16, MAX_SIDE = 16_000, MAX_AREA = 120e6, LINE = 24, LETTER = 7;

/** The part of CanvasRenderingContext2D that the painter uses, as SVG. */
class Recorder {
  fillStyle = '#000';
  strokeStyle = '#000';
  lineWidth = 1;
  globalAlpha = 1;
  font = '';
  textAlign = 'left';
  textBaseline = 'alphabetic';
  lineJoin = 'miter';
  readonly out: string[] = [];
  private path: string[] = [];
  private dash: number[] = [];
  private x = 0;
  private y = 0;

  save(): void { /* nothing that the painter saves is written */ }
  restore(): void { /* as above */ }
  scale(): void { /* the figure is written at its own scale */ }
  translate(): void { /* the view box says where it begins */ }
  setLineDash(dash: number[]): void { this.dash = dash; }
  beginPath(): void { this.path = []; }
  closePath(): void { this.path.push('Z'); }
  moveTo(x: number, y: number): void { this.path.push(`M${n(x)} ${n(y)}`); this.x = x; this.y = y; }
  lineTo(x: number, y: number): void { this.path.push(`L${n(x)} ${n(y)}`); this.x = x; this.y = y; }

  arcTo(x1: number, y1: number, x2: number, y2: number, r: number): void {
    const a = Math.hypot(x1 - this.x, y1 - this.y), b = Math.hypot(x2 - x1, y2 - y1);
    const [dx, dy, ex, ey] = [(x1 - this.x) / a, (y1 - this.y) / a, (x2 - x1) / b, (y2 - y1) / b], turn = dx * ey - dy * ex;
    if (!(a > 0 && b > 0) || r <= 0 || Math.abs(turn) < 1e-6) { this.lineTo(x1, y1); return; }
    this.lineTo(x1 - dx * r, y1 - dy * r);
    this.path.push(`A${n(r)} ${n(r)} 0 0 ${turn > 0 ? 1 : 0} ${n(x1 + ex * r)} ${n(y1 + ey * r)}`);
    this.x = x1 + ex * r;
    this.y = y1 + ey * r;
  }

  roundRect(x: number, y: number, w: number, h: number, r: number): void {
    const c = Math.min(r, w / 2, h / 2), arc = (dx: number, dy: number): string => `a${n(c)} ${n(c)} 0 0 1 ${n(dx)} ${n(dy)}`;
    this.path.push(`M${n(x + c)} ${n(y)}h${n(w - 2 * c)}${arc(c, c)}v${n(h - 2 * c)}${arc(-c, c)}h${n(2 * c - w)}${arc(-c, -c)}v${n(2 * c - h)}${arc(c, -c)}Z`);
  }

  fill(): void { this.write(`fill="${this.fillStyle}"`); }
  stroke(): void { this.write(`fill="none" stroke="${this.strokeStyle}" stroke-width="${n(this.lineWidth)}"${this.dash.length ? ` stroke-dasharray="${this.dash.join(' ')}"` : ''}`); }
  fillRect(x: number, y: number, w: number, h: number): void { this.out.push(`<rect x="${n(x)}" y="${n(y)}" width="${n(w)}" height="${n(h)}" fill="${this.fillStyle}"/>`); }
  fillText(text: string, x: number, y: number, most = Infinity): void { this.letters(text, x, y, most, `fill="${this.fillStyle}"`); }
  strokeText(text: string, x: number, y: number, most = Infinity): void { this.letters(text, x, y, most, `fill="none" stroke="${this.strokeStyle}" stroke-width="${n(this.lineWidth)}" stroke-linejoin="round"`); }

  private write(how: string): void {
    if (this.path.length) this.out.push(`<path d="${this.path.join('')}" ${how}${this.globalAlpha < 1 ? ` opacity="${n(this.globalAlpha)}"` : ''}/>`);
  }

  private letters(text: string, x: number, y: number, most: number, how: string): void {
    if (!text) return;
    const [, weight, size, family] = /^(?:(\d+) )?([\d.]+)px (.*)$/.exec(this.font) ?? [], high = Number(size ?? 10);
    const wide = text.length * high * (family?.includes('Mono') ? 0.602 : 0.6), lower = this.textBaseline === 'middle' ? 0.35 * high : this.textBaseline === 'top' ? 0.9 * high : 0;
    this.out.push(`<text x="${n(x)}" y="${n(y + lower)}" ${how} font-size="${n(high)}"${weight ? ` font-weight="${weight}"` : ''} font-family="${escape(family ?? '')}"${this.textAlign === 'center' ? ' text-anchor="middle"' : ''}`
      + `${wide > most ? ` textLength="${n(most)}" lengthAdjust="spacingAndGlyphs"` : ''}${this.globalAlpha < 1 ? ` opacity="${n(this.globalAlpha)}"` : ''}>${escape(text)}</text>`);
  }
}

/** The lines below a figure: what its colors mean. */
function paintCaptions(ctx: CanvasRenderingContext2D, captions: Caption[], top: number, palette: Palette): void {
  ctx.textAlign = 'left';
  ctx.textBaseline = 'middle';
  captions.forEach(({ title, from, entries }, line) => {
    let x = 0;
    const y = top + (line + 0.5) * LINE, write = (text: string, font: string): void => { ctx.fillStyle = palette.ink; ctx.font = font; ctx.fillText(text, x, y); x += text.length * LETTER + (text ? 14 : 0); };
    write(title, '600 12px system-ui, sans-serif');
    write(from, '12px system-ui, sans-serif');
    for (const [color, text] of entries) {
      ctx.fillStyle = color;
      ctx.fillRect(x, y - 6, 14, 12);
      x += text ? 18 : 14;
      write(text, '12px system-ui, sans-serif');
    }
  });
}

/** The size of a figure with its captions, without margins. */
function sizeOf({ scene, captions }: Painting): { wide: number; high: number } {
  const widths = captions.map(({ title, from, entries }) => entries.reduce((sum, [, text]) => sum + text.length * LETTER + 32, (title.length + from.length) * LETTER + 28));
  return { wide: Math.max(scene.width, ...widths), high: scene.height + (captions.length ? captions.length * LINE + 8 : 0) };
}

function n(value: number): string { return String(Math.round(value * 10) / 10); }

/** The whole figure as SVG. */
export function svg(painting: Painting, palette: Palette, marks: Marks | null): string {
  const { wide, high } = sizeOf(painting), width = Math.ceil(wide + 2 * MARGIN), height = Math.ceil(high + 2 * MARGIN), recorder = new Recorder();
  const camera: Camera = { x: -MARGIN, y: -MARGIN, scale: 1 };
  painting.paint(recorder as unknown as CanvasRenderingContext2D, camera, width, height, palette, marks, -1);
  paintCaptions(recorder as unknown as CanvasRenderingContext2D, painting.captions, painting.scene.height + 8, palette);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="${-MARGIN} ${-MARGIN} ${width} ${height}">`,
    `<rect x="${-MARGIN}" y="${-MARGIN}" width="${width}" height="${height}" fill="${palette.paper}"/>`, ...recorder.out.slice(1), '</svg>',
  ].join('\n');
}

/** The whole figure as PNG, so many pixels wide, as far as a browser can. */
export function png(painting: Painting, palette: Palette, marks: Marks | null, wanted: number): Promise<Blob | null> {
  const size = sizeOf(painting), wide = size.wide + 2 * MARGIN, high = size.high + 2 * MARGIN;
  const scale = Math.min(wanted / wide, MAX_SIDE / wide, MAX_SIDE / high, Math.sqrt(MAX_AREA / wide / high)), canvas = document.createElement('canvas');
  canvas.width = Math.max(1, Math.round(wide * scale));
  canvas.height = Math.max(1, Math.round(high * scale));
  const ctx = canvas.getContext('2d') as CanvasRenderingContext2D;
  painting.paint(ctx, { x: -MARGIN, y: -MARGIN, scale }, canvas.width, canvas.height, palette, marks, -1);
  ctx.setTransform(scale, 0, 0, scale, MARGIN * scale, MARGIN * scale);
  paintCaptions(ctx, painting.captions, painting.scene.height + 8, palette);
  return new Promise(resolve => canvas.toBlob(resolve, 'image/png'));
}

export function save(name: string, content: Blob): void {
  const link = document.createElement('a'), url = URL.createObjectURL(content);
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** The whole figure as a file, or on paper. */
export async function exportFigure(view: View, file: string, kind: 'svg' | 'png' | 'print', width: number): Promise<void> {
  const { painting, palette, marks } = view;
  if (!painting) return;
  const name = (file.split(/[\\/]/).pop() ?? 'program').replace(/[^\w.-]/g, '_').slice(0, 80);
  if (kind === 'png') { const blob = await png(painting, palette, marks, width); if (blob) save(`${name}.png`, blob); else toast('the figure is too large for a PNG: choose a smaller width'); return; }
  if (kind === 'svg') save(`${name}.svg`, new Blob([svg(painting, palette, marks)], { type: 'image/svg+xml' }));
  else print();
}

/** Put the whole figure on paper, before the browser prints the page. */
export function putOnPaper({ painting, marks }: View): void {
  if (!painting) return;
  const figure = new DOMParser().parseFromString(svg(painting, LIGHT, marks), 'image/svg+xml').documentElement;
  byId('paper').replaceChildren(document.importNode(figure, true));
}
