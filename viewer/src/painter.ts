// A scene -> pixels: only what is in sight, with as much detail as there is room for.

import type { Palette } from './colours';
import { operatorKind } from './colours';
import { count } from './dom';
import type { Program } from './program';
import { boxTitle, FOLDED, NODE, OPEN, operatorName, Scene, shorten } from './scene';
import { ADDED, CALL, INPUT, OPERATION, REMOVED, SUBGRAPH } from './wire';

export interface Camera { x: number; y: number; scale: number }
export interface Caption { title: string; from: string; entries: [color: string, text: string][] } // a line below an exported figure
export interface Marks { nodes: Uint8Array; boxes: Uint8Array; steps: Uint8Array }

export const MONO = '"DejaVu Sans Mono", "SFMono-Regular", Menlo, Consolas, monospace';
const SANS = 'system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
const CELL = 512;
const LEAST_PX = 8; // names are at least this high on the screen, as long as they fit into their boxes

/** Everything that can be said of a scene before it is painted. */
export class Painting {
  readonly kinds: Uint8Array; // item -> kind of operator
  private readonly cells = new Map<number, { items: number[]; steps: number[] }>();
  readonly itemOf = new Map<number, number>(); // node, or -1 - box, -> item
  tints: string[] | null = null; // colors of items by data
  captions: Caption[] = [];
  hidden = 0; // nodes of this status are left out: of two programs one is shown
  private get isOld(): boolean { return this.hidden === ADDED; }
  private overview: HTMLCanvasElement | null = null;
  private overviewOf: Palette | null = null;
  private readonly titles = new Map<number, string>();

  constructor(readonly program: Program, readonly scene: Scene, readonly status: Uint8Array) {
    const n = scene.kind.length, { nodes, texts } = program.picture;
    this.kinds = new Uint8Array(n);
    const known = new Map<number, number>();
    for (let i = 0; i < n; i++) {
      const id = scene.id[i];
      this.itemOf.set(scene.kind[i] === NODE ? id : -1 - id, i);
      if (scene.kind[i] !== NODE) continue;
      const target = nodes.target[id];
      if (nodes.kind[id] !== OPERATION) { this.kinds[i] = nodes.kind[id] === INPUT ? 12 : texts[target].includes('mutation') ? 14 : 13; continue; }
      let kind = known.get(target);
      if (kind === undefined) { kind = operatorKind(texts[target], operatorName(texts[target])); known.set(target, kind); }
      this.kinds[i] = kind;
    }
    for (let i = 0; i < n; i++) this.put(scene.at[4 * i], scene.at[4 * i + 1], scene.at[4 * i + 2], scene.at[4 * i + 3], cell => cell.items.push(i));
    const s = scene.steps;
    for (let i = 0; i < scene.before.length; i++) {
      const left = Math.min(s[5 * i], s[5 * i + 3]), top = Math.min(s[5 * i + 1], s[5 * i + 4]);
      this.put(left, top, Math.abs(s[5 * i] - s[5 * i + 3]), Math.abs(s[5 * i + 4] - s[5 * i + 1]), cell => cell.steps.push(i));
    }
  }

  private put(x: number, y: number, w: number, h: number, into: (cell: { items: number[]; steps: number[] }) => void): void {
    const x0 = Math.floor(x / CELL), x1 = Math.floor((x + w) / CELL), y0 = Math.floor(y / CELL), y1 = Math.floor((y + h) / CELL);
    for (let cx = x0; cx <= x1; cx++) for (let cy = y0; cy <= y1; cy++) {
      const key = cy * 0x100000 + cx;
      let cell = this.cells.get(key);
      if (!cell) { cell = { items: [], steps: [] }; this.cells.set(key, cell); }
      into(cell);
    }
  }

  /** Items and steps in a rectangle, each once, in their order. */
  private inSight(x0: number, y0: number, x1: number, y1: number): { items: number[]; steps: number[] } {
    const items = new Set<number>(), steps = new Set<number>(), { scene } = this;
    const left = Math.max(0, Math.floor(x0 / CELL)), right = Math.min(Math.floor(x1 / CELL), Math.floor(scene.width / CELL));
    const high = Math.max(0, Math.floor(y0 / CELL)), low = Math.min(Math.floor(y1 / CELL), Math.floor(scene.height / CELL));
    for (let cy = high; cy <= low; cy++) for (let cx = left; cx <= right; cx++) {
      const cell = this.cells.get(cy * 0x100000 + cx);
      if (!cell) continue;
      for (const i of cell.items) items.add(i);
      for (const i of cell.steps) steps.add(i);
    }
    return { items: [...items].sort((a, b) => a - b), steps: [...steps] };
  }

  /** What is at a point: the innermost item, -1 for none. */
  hit(x: number, y: number): number {
    const { at, kind } = this.scene;
    let found = -1;
    for (const i of this.inSight(x, y, x, y).items) {
      if (x < at[4 * i] || y < at[4 * i + 1] || x > at[4 * i] + at[4 * i + 2] || y > at[4 * i + 1] + at[4 * i + 3]) continue;
      if (found < 0 || kind[i] !== OPEN || at[4 * i + 2] * at[4 * i + 3] <= at[4 * found + 2] * at[4 * found + 3]) found = i;
    }
    return found;
  }

  /** The value of a wire near a point, -1 for none. */
  hitWire(x: number, y: number, reach: number): number {
    const s = this.scene.steps;
    for (const i of this.inSight(x - reach, y - reach, x + reach, y + reach).steps) {
      const [x1, y1, t, x2, y2] = s.subarray(5 * i, 5 * i + 5);
      const near = (a: number, b: number, c: number): boolean => c >= Math.min(a, b) - reach && c <= Math.max(a, b) + reach;
      if ((Math.abs(x - x1) < reach && near(y1, t, y)) || (Math.abs(x - x2) < reach && near(t, y2, y)) || (Math.abs(y - t) < reach && near(x1, x2, x))) {
        if (this.scene.value[i] >= 0) return this.scene.value[i];
      }
    }
    return -1;
  }

  paint(ctx: CanvasRenderingContext2D, camera: Camera, width: number, height: number, palette: Palette, marks: Marks | null, selected: number): number {
    const { scale } = camera, x0 = camera.x, y0 = camera.y, x1 = x0 + width / scale, y1 = y0 + height / scale;
    ctx.fillStyle = palette.paper;
    ctx.fillRect(0, 0, width, height);
    ctx.save();
    ctx.scale(scale, scale);
    ctx.translate(-camera.x, -camera.y);
    const expected = this.scene.kind.length * Math.min(1, ((x1 - x0) * (y1 - y0)) / Math.max(1, this.scene.width * this.scene.height));
    let drawn: number;
    if (expected > 5000 && scale < 0.14 && !marks) {
      ctx.drawImage(this.far(palette), 0, 0, this.scene.width, this.scene.height);
      drawn = this.scene.kind.length;
    } else {
      const seen = this.inSight(x0, y0, x1, y1), items = this.hidden ? seen.items.filter(i => this.itemStatus(i) !== this.hidden) : seen.items;
      const steps = this.hidden ? seen.steps.filter(i => !this.isHidden(i)) : seen.steps;
      this.paintFrames(ctx, items, scale, palette, marks);
      this.paintInsets(ctx, palette);
      if (steps.length < 60000) this.paintWires(ctx, steps, scale, palette, marks);
      this.paintItems(ctx, items, scale, palette, marks);
      this.paintTitles(ctx, items, scale, palette, marks, x0);
      drawn = items.length;
    }
    if (selected >= 0 && !(this.hidden && this.itemStatus(selected) === this.hidden)) this.outline(ctx, selected, palette.select, 2.5 / scale);
    ctx.restore();
    return drawn;
  }

  outline(ctx: CanvasRenderingContext2D, item: number, colour: string, width: number): void {
    const { at } = this.scene, pad = width;
    ctx.strokeStyle = colour;
    ctx.lineWidth = width;
    ctx.beginPath();
    ctx.roundRect(at[4 * item] - pad, at[4 * item + 1] - pad, at[4 * item + 2] + 2 * pad, at[4 * item + 3] + 2 * pad, 6 + pad);
    ctx.stroke();
  }

  /** All items small, painted once: what is shown from afar, and in the corner. */
  far(palette: Palette): HTMLCanvasElement {
    if (this.overview && this.overviewOf === palette) return this.overview;
    const { scene } = this, canvas = document.createElement('canvas');
    const scale = Math.min(1, 2000 / Math.max(1, scene.width), 6000 / Math.max(1, scene.height));
    canvas.width = Math.max(1, Math.ceil(scene.width * scale));
    canvas.height = Math.max(1, Math.ceil(scene.height * scale));
    const ctx = canvas.getContext('2d') as CanvasRenderingContext2D;
    const sx = canvas.width / Math.max(1, scene.width), sy = canvas.height / Math.max(1, scene.height);
    for (let i = 0; i < scene.kind.length; i++) {
      const isNode = scene.kind[i] !== OPEN;
      const status = this.itemStatus(i);
      ctx.fillStyle = status && isNode ? palette.status[status] : isNode ? (scene.kind[i] === FOLDED ? palette.line[1] : palette.line[this.kinds[i]]) : palette.frame[this.depth(i) % 3];
      const [x, y, w, h] = scene.at.subarray(4 * i, 4 * i + 4);
      ctx.fillRect(x * sx, y * sy, Math.max(1, w * sx), Math.max(isNode ? 1 : 0, h * sy));
    }
    this.overview = canvas;
    this.overviewOf = palette;
    return canvas;
  }

  /** Whether a line begins or ends at something that is left out. */
  private isHidden(step: number): boolean {
    const { scene } = this, { values, nodes } = this.program.picture, end = scene.end[step], value = scene.value[step];
    if (end >= 0 && nodes.status[end] === this.hidden) return true;
    if (end < -1 && end > -1_000_000_000 && this.status[-2 - end] === this.hidden) return true;
    return value >= 0 && nodes.status[values.node[value]] === this.hidden;
  }

  private depth(item: number): number { return this.program.stage.depth[this.scene.id[item]]; }

  private itemStatus(item: number): number {
    const id = this.scene.id[item];
    return this.scene.kind[item] === NODE ? this.program.picture.nodes.status[id] : this.status[id];
  }

  private isMarked(item: number, marks: Marks): boolean {
    return (this.scene.kind[item] === NODE ? marks.nodes : marks.boxes)[this.scene.id[item]] === 1;
  }

  /** Whether a step begins at an open box, in which the label stands already. */
  private isOpen(start: number): boolean {
    const item = start < -1 ? this.itemOf.get(1 + start) : undefined;
    return item !== undefined && this.scene.kind[item] === OPEN;
  }

  private title(item: number): string {
    if (this.isOld && this.scene.kind[item] === NODE) return this.program.stage.label(this.scene.id[item], true);
    let title = this.titles.get(item);
    if (title === undefined) {
      const { scene, program } = this;
      title = scene.kind[item] === NODE ? program.stage.label(scene.id[item]) : boxTitle(program.picture, scene.id[item]);
      this.titles.set(item, title);
    }
    return title;
  }

  private paintFrames(ctx: CanvasRenderingContext2D, items: number[], scale: number, palette: Palette, marks: Marks | null): void {
    const { at, kind, id } = this.scene, { boxes } = this.program.picture;
    for (const i of items) {
      if (kind[i] !== OPEN) continue;
      const [x, y, w, h] = at.subarray(4 * i, 4 * i + 4);
      const box = id[i], isGraph = boxes.kind[box] === SUBGRAPH || boxes.kind[box] === CALL;
      ctx.globalAlpha = marks && !this.isMarked(i, marks) ? 0.45 : 1;
      ctx.fillStyle = palette.frame[this.depth(i) % 3];
      ctx.strokeStyle = this.status[box] ? palette.status[this.status[box]] : isGraph ? palette.carries : palette.frameLine;
      ctx.lineWidth = Math.min(1.2, 1.2 / scale + 0.4);
      ctx.setLineDash(boxes.kind[box] === SUBGRAPH ? [6, 4] : []);
      ctx.beginPath();
      ctx.roundRect(x, y, w, h, 8);
      ctx.fill();
      ctx.stroke();
      ctx.setLineDash([]);
    }
    ctx.globalAlpha = 1;
  }

  /** From each folded box to the one of its equal modules that is drawn open next to the picture. */
  private paintInsets(ctx: CanvasRenderingContext2D, palette: Palette): void {
    const { at, insets } = this.scene;
    ctx.strokeStyle = palette.frameLine;
    ctx.setLineDash([3, 4]);
    ctx.lineWidth = 1.2;
    for (let k = 0; k < insets.length; k += 2) {
      const [x, y, w, h] = at.subarray(4 * insets[k], 4 * insets[k] + 4), [left, top, , high] = at.subarray(4 * insets[k + 1], 4 * insets[k + 1] + 4);
      ctx.fillStyle = palette.frame[1];
      ctx.beginPath();
      ctx.moveTo(x + w, y);
      ctx.lineTo(left, top);
      ctx.lineTo(left, top + high);
      ctx.lineTo(x + w, y + h);
      ctx.globalAlpha = 0.5;
      ctx.fill();
      ctx.globalAlpha = 1;
      ctx.stroke();
    }
    ctx.setLineDash([]);
  }

  /** The titles of open boxes, over the wires, with some of the ground around the letters; at the edge of the window where a box begins outside. */
  private paintTitles(ctx: CanvasRenderingContext2D, items: number[], scale: number, palette: Palette, marks: Marks | null, edge: number): void {
    const { at, kind, id } = this.scene, { boxes } = this.program.picture;
    ctx.textBaseline = 'middle';
    ctx.textAlign = 'left';
    ctx.lineJoin = 'round';
    for (const i of items) {
      if (kind[i] !== OPEN) continue;
      const [x, y, w, h] = at.subarray(4 * i, 4 * i + 4), box = id[i];
      const size = Math.max(12, Math.min(9 / scale, h / 5, w / 5));
      if (size * scale < LEAST_PX - 1) continue;
      ctx.globalAlpha = marks && !this.isMarked(i, marks) ? 0.45 : 1;
      ctx.font = `600 ${size}px ${SANS}`;
      ctx.strokeStyle = palette.frame[this.depth(i) % 3];
      ctx.lineWidth = 4;
      ctx.fillStyle = boxes.kind[box] >= SUBGRAPH ? palette.carries : palette.faint;
      const text = `▾ ${this.title(i)}${boxes.repeat[box] > 1 ? `   × ${boxes.repeat[box]}` : ''}`;
      const cut = cutTo(text, (w - 14) / (size * 0.58)), top = y + Math.max(14, size * 0.75);
      const left = Math.max(x + 9, Math.min(edge + 9 / scale, x + w - 5 - cut.length * size * 0.58));
      ctx.strokeText(cut, left, top, w - 14);
      ctx.fillText(cut, left, top, w - 14);
    }
    ctx.globalAlpha = 1;
  }

  private paintWires(ctx: CanvasRenderingContext2D, steps: number[], scale: number, palette: Palette, marks: Marks | null): void {
    const groups: { colour: string; width: number; alpha: number; list: number[]; dash: number[] }[] = [
      { colour: palette.wire, width: 1.1, alpha: marks ? 0.25 : 0.9, list: [], dash: [] },
      { colour: palette.carries, width: 1.1, alpha: marks ? 0.25 : 0.9, list: [], dash: [5, 4] },
      { colour: palette.select, width: 2.2, alpha: 1, list: [], dash: [] },
    ];
    for (const i of steps) groups[marks && marks.steps[i] ? 2 : this.scene.flags[i] & 4 ? 1 : 0].list.push(i);
    const s = this.scene.steps, round = scale > 0.35 ? 5 : 0;
    for (const { colour, width, alpha, list, dash } of groups) {
      if (!list.length) continue;
      ctx.strokeStyle = ctx.fillStyle = colour;
      ctx.globalAlpha = alpha;
      ctx.lineWidth = Math.max(width, Math.min(0.7 / scale, 3));
      ctx.setLineDash(dash);
      ctx.beginPath();
      for (const i of list) {
        const x1 = s[5 * i], y1 = s[5 * i + 1], t = s[5 * i + 2], x2 = s[5 * i + 3], y2 = s[5 * i + 4];
        ctx.moveTo(x1, y1);
        if (Math.abs(x1 - x2) < 0.5) { ctx.lineTo(x2, y2); continue; }
        if (round) {
          const r = Math.min(round, Math.abs(x2 - x1) / 2, Math.abs(t - y1), Math.abs(y2 - t));
          ctx.arcTo(x1, t, x2, t, r);
          ctx.arcTo(x2, t, x2, y2, r);
        } else { ctx.lineTo(x1, t); ctx.lineTo(x2, t); }
        ctx.lineTo(x2, y2);
      }
      ctx.stroke();
      ctx.setLineDash([]);
      if (scale > 0.3) {
        ctx.beginPath();
        for (const i of list) this.arrow(ctx, i);
        ctx.fill();
      }
    }
    ctx.globalAlpha = 1;
    if (scale > 0.4) this.paintLabels(ctx, steps, scale, palette, marks);
  }

  private arrow(ctx: CanvasRenderingContext2D, i: number): void {
    const { steps: s, end, flags, before } = this.scene;
    const isBack = (flags[i] & 1) !== 0;
    if (isBack ? before[i] >= 0 : end[i] <= -1_000_000_000 || end[i] === -1) return;
    const x = isBack ? s[5 * i] : s[5 * i + 3], y = isBack ? s[5 * i + 1] : s[5 * i + 4], d = isBack ? 6 : -6;
    ctx.moveTo(x, y);
    ctx.lineTo(x - 3.4, y + d);
    ctx.lineTo(x + 3.4, y + d);
    ctx.closePath();
  }

  private paintLabels(ctx: CanvasRenderingContext2D, steps: number[], scale: number, palette: Palette, marks: Marks | null): void {
    const { scene } = this, { values, texts } = this.program.picture, seen = new Set<string>();
    const places: { x: number; y: number; text: string }[] = [];
    const size = Math.max(10, Math.min(13, (LEAST_PX - 0.5) / scale));
    ctx.font = `${size}px ${MONO}`;
    ctx.textBaseline = 'top';
    ctx.textAlign = 'left';
    ctx.fillStyle = palette.label;
    ctx.globalAlpha = marks ? 0.5 : 1;
    for (const i of steps) {
      if (scene.start[i] === -1 || scene.value[i] < 0 || scene.flags[i] & 9 || this.isOpen(scene.start[i])) continue;
      const x = scene.steps[5 * i], y = scene.steps[5 * i + 1], key = `${Math.round(x)} ${Math.round(y)}`;
      if (seen.has(key)) continue;
      seen.add(key);
      const type = texts[values.type[scene.value[i]]], sizes = this.isOld && this.program.stage.old.get(`sizes ${values.node[scene.value[i]]}`);
      const text = scene.more[i] > 1 ? `${scene.more[i]} values` : shorten(sizes ? type.replace(/\[.*\]/, sizes) : type, 24);
      places.push({ x, y, text });
    }
    places.sort((a, b) => a.y - b.y || a.x - b.x);
    places.forEach(({ x, y, text }, i) => { // a label that the next port would run into is left out
      const next = places[i + 1];
      if (!next || Math.abs(next.y - y) > 1 || next.x - x > Math.min(96, text.length * 6.1) + 6) ctx.fillText(text, x + 4, y + 3, 104);
    });
    ctx.globalAlpha = 1;
  }

  private paintItems(ctx: CanvasRenderingContext2D, items: number[], scale: number, palette: Palette, marks: Marks | null): void {
    const { at, kind } = this.scene;
    if (scale < 0.09) {
      for (const i of items) {
        if (kind[i] === OPEN) continue;
        const status = this.itemStatus(i);
        ctx.globalAlpha = marks && !this.isMarked(i, marks) ? 0.2 : 1;
        ctx.fillStyle = status ? palette.status[status] : this.tints ? this.tints[i] || palette.frame[1] : kind[i] === FOLDED ? palette.line[1] : palette.line[this.kinds[i]];
        ctx.fillRect(at[4 * i], at[4 * i + 1], at[4 * i + 2], at[4 * i + 3]);
      }
      ctx.globalAlpha = 1;
      return;
    }
    for (const i of items) {
      if (kind[i] === OPEN) continue;
      ctx.globalAlpha = marks && !this.isMarked(i, marks) ? 0.25 : 1;
      if (kind[i] === FOLDED) this.paintFolded(ctx, i, scale, palette);
      else this.paintNode(ctx, i, scale, palette);
    }
    ctx.globalAlpha = 1;
  }

  private paintFolded(ctx: CanvasRenderingContext2D, i: number, scale: number, palette: Palette): void {
    const [x, y, w, h] = this.scene.at.subarray(4 * i, 4 * i + 4), box = this.scene.id[i], { boxes } = this.program.picture;
    const status = this.status[box], isGraph = boxes.kind[box] >= SUBGRAPH, repeat = boxes.repeat[box];
    ctx.lineWidth = status ? 2 : 1.2;
    ctx.strokeStyle = status ? palette.status[status] : isGraph ? palette.carries : palette.line[1];
    if (repeat > 1) for (const shift of [6, 3]) {
      ctx.fillStyle = palette.frame[1];
      ctx.beginPath();
      ctx.roundRect(x + shift, y - shift, w, h, 7);
      ctx.fill();
      ctx.stroke();
    }
    ctx.fillStyle = this.tints?.[i] || palette.frame[0];
    ctx.beginPath();
    ctx.roundRect(x, y, w, h, 7);
    ctx.fill();
    ctx.stroke();
    const size = Math.max(12, LEAST_PX / scale), title = `▸ ${this.title(i)}${repeat > 1 ? `  × ${repeat}` : ''}`;
    if (size > 0.7 * h) return;
    ctx.textBaseline = 'middle';
    ctx.textAlign = 'left';
    ctx.fillStyle = palette.ink;
    ctx.font = `600 ${size}px ${SANS}`;
    const isSmall = 11 * scale < LEAST_PX - 1;
    ctx.fillText(size > 12 ? cutTo(title, (w - 12) / (size * 0.58)) : title, x + 9, isSmall ? y + h / 2 : y + 15, w - 16);
    if (isSmall) return;
    ctx.font = `11px ${SANS}`;
    ctx.fillStyle = this.tints?.[i] ? palette.ink : palette.faint;
    const nodes = this.program.stage.inside[box];
    const elements = this.program.boxElements[box];
    ctx.fillText(`${count(nodes, 'op')}${elements ? ` · ${short(elements)} params` : ''}`, x + 9, y + 32, w - 16);
  }

  private paintNode(ctx: CanvasRenderingContext2D, i: number, scale: number, palette: Palette): void {
    const [x, y, w, h] = this.scene.at.subarray(4 * i, 4 * i + 4), node = this.scene.id[i], { nodes } = this.program.picture;
    const kind = this.kinds[i], status = nodes.status[node], isEnd = nodes.kind[node] !== OPERATION;
    ctx.fillStyle = this.tints ? this.tints[i] || palette.frame[1] : palette.fill[kind];
    ctx.strokeStyle = status ? palette.status[status] : palette.line[kind];
    ctx.lineWidth = status ? 2.4 : 1.1;
    if (status === REMOVED) ctx.setLineDash([4, 3]);
    ctx.beginPath();
    ctx.roundRect(x, y, w, h, isEnd ? 12 : 5);
    ctx.fill();
    ctx.stroke();
    ctx.setLineDash([]);
    const size = Math.max(11, LEAST_PX / scale), title = kind === 14 ? `⟲ ${this.title(i)}` : this.title(i);
    if (size > 0.8 * h) return;
    ctx.fillStyle = palette.ink;
    ctx.font = `${size}px ${MONO}`;
    ctx.textBaseline = 'middle';
    ctx.textAlign = 'center';
    const hasShapes = this.program.stage.weightsOf[node].length > 0 && 9 * scale >= LEAST_PX - 2;
    ctx.fillText(size > 11 ? cutTo(title, (w - 4) / (size * 0.6)) : title, x + w / 2, hasShapes ? y + 10.5 : y + h / 2 + 0.5, w - 4);
    if (hasShapes) this.paintShapes(ctx, node, x, y, w, palette);
  }

  /** The shapes of a node's weights, below its name. */
  private paintShapes(ctx: CanvasRenderingContext2D, node: number, x: number, y: number, w: number, palette: Palette): void {
    const { weights } = this.program.picture, { stage } = this.program, of = stage.weightsOf[node], shapes = stage.weightShapes(node, this.isOld);
    const shown = shapes.slice(0, 3), rest = shapes.length > 3 ? ` +${shapes.length - 3}` : '', text = shown.join('  ') + rest;
    const wide = Math.min(w - 8, text.length * 5.5 + 8), status = of.reduce((most, weight) => Math.max(most, weights.status[weight]), 0);
    ctx.fillStyle = palette.chip;
    ctx.beginPath();
    ctx.roundRect(x + (w - wide) / 2, y + 17, wide, 11, 3);
    ctx.fill();
    if (status) { ctx.strokeStyle = palette.status[status]; ctx.lineWidth = 1.6; ctx.stroke(); }
    ctx.font = `9px ${MONO}`;
    ctx.fillStyle = palette.chipInk;
    ctx.fillText(text, x + w / 2, y + 23, wide - 4);
  }

  /** Steps on the ways of some edges: (value, node) pairs, followed through every border they cross. */
  steps(pairs: Iterable<[number, number]>): Uint8Array {
    const { scene, program } = this, { values, boxes, nodes } = program.picture;
    const found = new Uint8Array(scene.before.length);
    const ends = new Map<number, Map<number, number[]>>();
    const put = (value: number, end: number, step: number): void => {
      let of = ends.get(value);
      if (!of) { of = new Map(); ends.set(value, of); }
      const list = of.get(end);
      if (list) list.push(step); else of.set(end, [step]);
    };
    const ports = new Map<number, number[]>();
    for (let i = 0; i < scene.before.length; i++) {
      if (scene.flags[i] & 8) { const list = ports.get(scene.value[i]); if (list) list.push(i); else ports.set(scene.value[i], [i]); }
      else if (scene.end[i] !== -1) put(scene.value[i], scene.end[i], i);
    }
    for (let k = 0; k < scene.merged.length; k += 2) {
      const step = scene.merged[k], value = scene.merged[k + 1];
      put(value, scene.end[step], step);
      if (scene.value[step] !== value) ports.set(value, [...ports.get(value) ?? [], ...ports.get(scene.value[step]) ?? []]);
    }
    const follow = (step: number): void => { for (let at = step; at >= 0 && !found[at]; at = scene.before[at]) found[at] = 1; };
    for (const [value, node] of pairs) {
      const of = ends.get(value);
      if (!of) continue;
      for (const step of of.get(node) ?? []) follow(step);
      for (let box = nodes.box[node]; box > 0; box = boxes.parent[box]) for (const step of of.get(-2 - box) ?? []) follow(step);
      const from = value >= 0 ? values.node[value] : -2 - value;
      for (let box = nodes.box[from]; box > 0; box = boxes.parent[box]) for (const step of of.get(-1_000_000_000 - box) ?? []) follow(step);
      for (const step of ports.get(value) ?? []) found[step] = 1;
    }
    return found;
  }
}

/** The beginning of a text that has room for so many letters; nothing of one that has room for less than three. */
export function cutTo(text: string, letters: number): string {
  const most = Math.floor(letters);
  return text.length <= most ? text : most < 3 ? '' : `${text.slice(0, most - 1)}…`;
}

export function short(n: number): string {
  if (n < 1000) return String(n);
  const units = ['k', 'M', 'G', 'T'];
  let value = n, unit = -1;
  while (value >= 999.5 && unit < 3) { value /= 1000; unit++; }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)}${units[unit]}`;
}
