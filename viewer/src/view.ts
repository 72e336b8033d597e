// The picture on the screen: panning, zooming, the map in the corner. Frames that take long are shown from the last one
// while it moves, and painted anew when it rests.

import type { Palette } from './colours';
import { count } from './dom';
import type { Camera, Marks, Painting } from './painter';
import { ADDED, OPERATION, REMOVED } from './wire';

const SLOW_MS = 12, REST_MS = 120, MAX_SCALE = 3;
const LEGIBLE = 0.72; // names are 8 points high

export interface ViewEvents {
  click(item: number, event: MouseEvent): void;
  hover(event: PointerEvent | null): void; // null: nothing is under the pointer any more
  wire(value: number): void;
  moved(): void;
}

export class View {
  camera: Camera = { x: 0, y: 0, scale: 1 };
  painting: Painting | null = null;
  marks: Marks | null = null;
  selected = -1;
  split = false; // of two programs each on one side
  private readonly ctx: CanvasRenderingContext2D;
  private readonly last = document.createElement('canvas');
  private lastCamera: Camera | null = null;
  private cost = 0;
  private scheduled = false;
  private restTimer = 0;
  private moving = false;
  private flight: { from: Camera; to: Camera; start: number } | null = null;
  width = 1; height = 1;

  constructor(readonly canvas: HTMLCanvasElement, readonly map: HTMLCanvasElement, public palette: Palette, readonly on: ViewEvents) {
    this.ctx = canvas.getContext('2d', { alpha: false }) as CanvasRenderingContext2D;
    new ResizeObserver(() => this.resize()).observe(canvas.parentElement as Element);
    this.resize();
    this.listen();
  }

  private resize(): void {
    const box = (this.canvas.parentElement as Element).getBoundingClientRect(), ratio = Math.min(2, devicePixelRatio || 1);
    if (this.painting) this.camera.x += (this.width - box.width) / 2 / this.camera.scale; // what is in the middle stays there
    this.width = Math.max(1, box.width);
    this.height = Math.max(1, box.height);
    this.canvas.width = this.last.width = Math.round(this.width * ratio);
    this.canvas.height = this.last.height = Math.round(this.height * ratio);
    this.lastCamera = null;
    this.draw();
  }

  /** Paint again soon; what is on the screen is out of date. */
  draw(): void {
    this.lastCamera = null;
    this.schedule();
  }

  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(now => { this.scheduled = false; this.frame(now); });
  }

  private frame(now: number): void {
    const { painting, ctx } = this;
    if (!painting) return;
    if (this.flight) {
      const t = Math.min(1, (now - this.flight.start) / 220), e = 1 - (1 - t) ** 3, { from, to } = this.flight;
      const scale = from.scale * (to.scale / from.scale) ** e;
      const k = Math.abs(to.scale - from.scale) < 1e-9 ? e : (1 / scale - 1 / from.scale) / (1 / to.scale - 1 / from.scale);
      this.camera = { scale, x: from.x + (to.x - from.x) * k, y: from.y + (to.y - from.y) * k };
      this.moving = true;
      if (t >= 1) { this.flight = null; this.camera = to; this.moving = false; this.on.moved(); } else this.schedule();
    }
    const ratio = this.canvas.width / this.width;
    if (this.moving && this.cost > SLOW_MS && this.lastCamera) {
      this.shift(this.lastCamera, ratio);
    } else {
      const start = performance.now();
      ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
      const drawn = this.split ? this.paintBoth(ratio) : painting.paint(ctx, this.camera, this.width, this.height, this.palette, this.marks, this.selected);
      this.cost = performance.now() - start;
      document.documentElement.dataset.drawn = String(drawn);
      document.documentElement.dataset.camera = [this.camera.x, this.camera.y, this.camera.scale].map(number => number.toFixed(3)).join(' ');
      if (this.cost > SLOW_MS) {
        const kept = this.last.getContext('2d', { alpha: false }) as CanvasRenderingContext2D;
        kept.drawImage(this.canvas, 0, 0);
        this.lastCamera = { ...this.camera };
      }
    }
    this.paintMap();
  }

  /** The old program on the left and the new one on the right, at the same place of the picture. */
  private paintBoth(ratio: number): number {
    const { ctx, camera } = this, painting = this.painting as Painting, half = this.width / 2, middle = { ...camera, x: camera.x + half / 2 / camera.scale };
    let drawn = 0;
    for (const side of [0, 1]) {
      ctx.save();
      ctx.beginPath();
      ctx.setTransform(ratio, 0, 0, ratio, side * half * ratio, 0);
      ctx.rect(0, 0, half, this.height);
      ctx.clip();
      painting.hidden = side ? REMOVED : ADDED;
      drawn = painting.paint(ctx, middle, half, this.height, this.palette, this.marks, this.selected);
      const { status, kind } = painting.program.picture.nodes, nodes = kind.filter((is, node) => is === OPERATION && status[node] !== painting.hidden).length;
      const text = `${side ? 'new' : 'old'} · ${count(nodes, 'node')}`;
      painting.hidden = 0;
      ctx.font = '600 12px sans-serif';
      ctx.textAlign = 'left';
      ctx.textBaseline = 'top';
      ctx.fillStyle = this.palette.paper;
      ctx.fillRect(4, 4, ctx.measureText(text).width + 12, 20);
      ctx.fillStyle = this.palette.ink;
      ctx.fillText(text, 10, 8);
      ctx.restore();
    }
    ctx.fillStyle = this.palette.frameLine;
    ctx.fillRect(half - 1, 0, 2, this.height);
    return drawn;
  }

  /** The last frame, where it would be now; around it the picture from afar. */
  private shift(old: Camera, ratio: number): void {
    const { ctx, camera, painting } = this, k = camera.scale / old.scale;
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.fillStyle = this.palette.paper;
    ctx.fillRect(0, 0, this.canvas.width, this.canvas.height);
    const scale = camera.scale * ratio, { scene } = painting as Painting;
    ctx.drawImage((painting as Painting).far(this.palette), -camera.x * scale, -camera.y * scale, scene.width * scale, scene.height * scale);
    ctx.drawImage(this.last, (old.x - camera.x) * scale, (old.y - camera.y) * scale, this.last.width * k, this.last.height * k);
  }

  private paintMap(): void {
    const { map, painting, camera } = this, ctx = map.getContext('2d') as CanvasRenderingContext2D;
    if (!painting) return;
    const { scene } = painting, { k, dx, dy } = this.mapPlace();
    // Where most of the picture is in sight, the map says little and hides a corner of it.
    map.hidden = this.width > scene.width * camera.scale / 1.5 && this.height > scene.height * camera.scale / 1.5;
    if (map.dataset.closed) map.hidden = true;
    (document.getElementById('map-close') as HTMLElement).hidden = map.hidden;
    if (map.hidden) return;
    ctx.clearRect(0, 0, map.width, map.height);
    ctx.drawImage(painting.far(this.palette), dx, dy, scene.width * k, scene.height * k);
    ctx.strokeStyle = this.palette.select;
    ctx.lineWidth = 2;
    const w = Math.max(5, (this.width / camera.scale) * k), h = Math.max(5, (this.height / camera.scale) * k);
    ctx.strokeRect(dx + camera.x * k, dy + camera.y * k, w, h);
  }

  /** How the map shows the picture: all of it, or of a very tall or wide one the part around the camera. */
  private mapPlace(): { k: number; dx: number; dy: number } {
    const { map, camera } = this, { width, height } = (this.painting as Painting).scene;
    const whole = Math.min(map.width / Math.max(1, width), map.height / Math.max(1, height));
    const k = Math.max(whole, Math.min(0.3, 70 / Math.max(1, Math.min(width, height))));
    const along = (size: number, length: number, at: number, seen: number): number => {
      if (length * k <= size) return (size - length * k) / 2;
      return Math.max(size - length * k, Math.min(0, size / 2 - (at + seen / 2) * k));
    };
    return { k, dx: along(map.width, width, camera.x, this.width / camera.scale), dy: along(map.height, height, camera.y, this.height / camera.scale) };
  }

  /** Something moves: frames may be rough until it rests. */
  private move(): void {
    this.flight = null;
    this.moving = true;
    this.schedule();
    clearTimeout(this.restTimer);
    this.restTimer = window.setTimeout(() => { this.moving = false; this.schedule(); this.on.moved(); }, REST_MS);
  }

  pan(dx: number, dy: number): void {
    this.camera.x += dx / this.camera.scale;
    this.camera.y += dy / this.camera.scale;
    this.keepInSight();
    this.move();
  }

  zoom(factor: number, x = this.width / 2, y = this.height / 2): void {
    const { camera } = this, scale = Math.max(Math.min(camera.scale, this.least()), Math.min(MAX_SCALE, camera.scale * factor));
    camera.x += x / camera.scale - x / scale;
    camera.y += y / camera.scale - y / scale;
    camera.scale = scale;
    this.keepInSight();
    this.move();
  }

  /** Some of the picture stays on the screen. */
  private keepInSight(): void {
    if (!this.painting) return;
    const { camera } = this, { width, height } = this.painting.scene, margin = 80 / camera.scale;
    camera.x = Math.max(margin - this.width / camera.scale, Math.min(width - margin, camera.x));
    camera.y = Math.max(margin - this.height / camera.scale, Math.min(height - margin, camera.y));
  }

  fly(to: Camera, animate = true): void {
    if (!animate || matchMedia('(prefers-reduced-motion: reduce)').matches) {
      this.camera = to;
      this.flight = null;
      this.draw();
      this.on.moved();
      return;
    }
    this.flight = { from: { ...this.camera }, to, start: performance.now() };
    this.schedule();
  }

  /** The camera that shows a rectangle. */
  around(x: number, y: number, w: number, h: number, most = 1.25): Camera {
    const scale = Math.max(1e-6, Math.min(most, (this.width - 48) / Math.max(1, w), (this.height - 48) / Math.max(1, h)));
    return { scale, x: x + w / 2 - this.width / 2 / scale, y: y + h / 2 - this.height / 2 / scale };
  }

  /** The least scale: a little less than that of the whole picture. */
  private least(): number {
    const scene = this.painting?.scene;
    return scene ? Math.min(LEGIBLE, 0.9 * Math.min((this.width - 32) / Math.max(1, scene.width), (this.height - 32) / Math.max(1, scene.height))) : LEGIBLE;
  }

  /** The camera that shows a rectangle as large as it can be, but never with names that cannot be read: rather its top. */
  private legibly(x: number, y: number, w: number, h: number, most: number): Camera {
    const camera = this.around(x, y, w, h, most);
    if (camera.scale >= LEGIBLE) return camera;
    const scale = LEGIBLE, left = w * scale > this.width ? x - 16 / scale : x + w / 2 - this.width / 2 / scale;
    return { scale, x: left, y: h * scale > this.height ? y - 16 / scale : y + h / 2 - this.height / 2 / scale };
  }

  fit(animate = true): void {
    if (!this.painting) return;
    const { width, height, main, spine } = this.painting.scene, camera = this.legibly(0, 0, width, height, 1.25), seen = this.width / camera.scale, margin = 16 / camera.scale;
    if (width > seen) camera.x = main + margin <= seen ? -margin : Math.max(-margin, Math.min(main + margin - seen, spine - 0.4 * seen)); // the straight chain is in sight
    this.fly(camera, animate);
  }

  /** Go to an item, unless all of it is in sight and can be read. */
  show(item: number, animate = true): void {
    if (!this.painting || item < 0) return;
    const [x, y, w, h] = this.painting.scene.at.subarray(4 * item, 4 * item + 4), { camera } = this;
    const isSeen = x >= camera.x && y >= camera.y && x + w <= camera.x + this.width / camera.scale && y + h <= camera.y + this.height / camera.scale;
    if (isSeen && camera.scale >= LEGIBLE) { this.fly({ ...camera }, animate); return; }
    this.fly(this.legibly(x, y, w, h, Math.max(LEGIBLE, Math.min(1.25, camera.scale))), animate);
  }

  /** Go to an item, which comes to the middle. */
  center(item: number, animate = true): void {
    if (!this.painting || item < 0) return;
    const [x, y, w, h] = this.painting.scene.at.subarray(4 * item, 4 * item + 4);
    this.fly(this.legibly(x, y, w, h, Math.max(0.8, Math.min(1.25, this.camera.scale))), animate);
  }

  at(event: MouseEvent): { x: number; y: number } {
    const box = this.canvas.getBoundingClientRect();
    const half = this.width / 2, x = event.clientX - box.left, shown = this.split ? x - (x < half ? 0 : half) + half / 2 : x;
    return { x: this.camera.x + shown / this.camera.scale, y: this.camera.y + (event.clientY - box.top) / this.camera.scale };
  }

  private listen(): void {
    const { canvas, map } = this;
    let held: { x: number; y: number; far: boolean } | null = null;
    const touches = new Map<number, PointerEvent>();
    canvas.addEventListener('pointerdown', event => {
      canvas.setPointerCapture(event.pointerId);
      touches.set(event.pointerId, event);
      held = { x: event.clientX, y: event.clientY, far: false };
      canvas.focus({ preventScroll: true });
    });
    canvas.addEventListener('pointermove', event => {
      if (!held) { if (event.pointerType !== 'touch') this.on.hover(event); return; }
      const other = [...touches.values()].find(touch => touch.pointerId !== event.pointerId);
      const before = touches.get(event.pointerId);
      if (other && before) {
        const was = Math.hypot(before.clientX - other.clientX, before.clientY - other.clientY);
        const is = Math.hypot(event.clientX - other.clientX, event.clientY - other.clientY);
        const box = canvas.getBoundingClientRect();
        if (was > 0) this.zoom(is / was, (event.clientX + other.clientX) / 2 - box.left, (event.clientY + other.clientY) / 2 - box.top);
        held.far = true;
      } else {
        if (!held.far && Math.hypot(event.clientX - held.x, event.clientY - held.y) < 4) return;
        held.far = true;
        this.pan(held.x - event.clientX, held.y - event.clientY);
        held.x = event.clientX;
        held.y = event.clientY;
      }
      touches.set(event.pointerId, event);
    });
    const end = (event: PointerEvent): void => {
      touches.delete(event.pointerId);
      const wasFar = held?.far ?? true;
      if (!touches.size) held = null;
      if (wasFar || event.type === 'pointercancel' || !this.painting) return;
      const { x, y } = this.at(event), item = this.painting.hit(x, y);
      const isOpen = item >= 0 && this.painting.scene.kind[item] === 2;
      const value = item < 0 || isOpen ? this.painting.hitWire(x, y, 5 / this.camera.scale) : -1;
      if (value >= 0) this.on.wire(value); else this.on.click(item, event);
    };
    canvas.addEventListener('pointerleave', () => this.on.hover(null));
    canvas.addEventListener('pointerup', end);
    canvas.addEventListener('pointercancel', end);
    canvas.addEventListener('wheel', event => {
      event.preventDefault();
      const box = canvas.getBoundingClientRect(), unit = event.deltaMode === 1 ? 16 : 1;
      const turn = Math.max(-80, Math.min(80, event.deltaY * unit));
      if (event.ctrlKey || event.metaKey) this.zoom(Math.exp(-turn * 0.008), event.clientX - box.left, event.clientY - box.top);
      else if (event.shiftKey) this.pan(event.deltaY * unit + event.deltaX * unit, 0);
      else this.pan(event.deltaX * unit, event.deltaY * unit);
    }, { passive: false });
    const jump = (event: PointerEvent): void => {
      if (!this.painting || (event.type === 'pointermove' && !event.buttons)) return;
      const box = map.getBoundingClientRect(), { k, dx, dy } = this.mapPlace();
      const x = (event.clientX - box.left - dx) / k, y = (event.clientY - box.top - dy) / k;
      this.camera.x = x - this.width / 2 / this.camera.scale;
      this.camera.y = y - this.height / 2 / this.camera.scale;
      this.keepInSight();
      this.move();
    };
    map.addEventListener('pointerdown', event => { map.setPointerCapture(event.pointerId); jump(event); });
    map.addEventListener('pointermove', jump);
  }
}
