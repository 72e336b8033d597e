// The layout in a thread of its own: a picture once, then sets of open boxes, each answered with a scene.

import { firstOpen, Scene, Stage } from './scene';
import type { Picture } from './wire';

export type Ask =
  | { kind: 'picture'; picture: Picture; most: number }
  | { kind: 'open'; open: number[]; ticket: number };
export type Reply =
  | { kind: 'picture'; open: number[] }
  | { kind: 'scene'; scene: Scene; ticket: number; ms: number }
  | { kind: 'error'; message: string; ticket: number };

/** Answers one question; the same in a worker and, where there is none, in the page. */
export class Desk {
  private stage: Stage | null = null;

  answer(ask: Ask): Reply {
    if (ask.kind === 'picture') {
      this.stage = new Stage(ask.picture);
      return { kind: 'picture', open: [...firstOpen(this.stage, ask.most)] };
    }
    try {
      const start = performance.now();
      const scene = (this.stage as Stage).scene(new Set(ask.open));
      return { kind: 'scene', scene, ticket: ask.ticket, ms: performance.now() - start };
    } catch (error) {
      return { kind: 'error', message: String(error), ticket: ask.ticket };
    }
  }
}

export function buffers(reply: Reply): ArrayBuffer[] {
  if (reply.kind !== 'scene') return [];
  const found: ArrayBuffer[] = [];
  for (const part of Object.values(reply.scene)) if (ArrayBuffer.isView(part)) found.push(part.buffer as ArrayBuffer);
  return found;
}
