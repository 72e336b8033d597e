// Questions to the layout: to its thread, or where a page may have none, worked out in place.

import type { Scene } from './scene';
import type { Picture } from './wire';
import { Ask, Desk, Reply } from './worker';
import LayoutWorker from './worker.entry?worker&inline';

export class Thread {
  private worker: Worker | null = null;
  private readonly desk = new Desk();
  private waiting: ((reply: Reply) => void)[] = [];
  private ticket = 0;

  constructor() {
    if (location.hash === '#export') return; // a browser that only writes a figure does not wait for threads
    try {
      const worker = new LayoutWorker();
      worker.onmessage = (event: MessageEvent<Reply>) => this.waiting.shift()?.(event.data);
      this.worker = worker;
    } catch { /* worked out in the page */ }
  }

  private ask(question: Ask): Promise<Reply> {
    const worker = this.worker;
    if (!worker) return Promise.resolve(this.desk.answer(question));
    return new Promise(resolve => {
      this.waiting.push(resolve);
      worker.postMessage(question);
    });
  }

  async picture(picture: Picture, most: number): Promise<number[]> {
    const reply = await this.ask({ kind: 'picture', picture, most });
    return reply.kind === 'picture' ? reply.open : [];
  }

  /** The scene of a set of open boxes; null where another was asked for meanwhile. */
  async scene(open: Iterable<number>): Promise<{ scene: Scene; ms: number } | null> {
    const ticket = ++this.ticket, reply = await this.ask({ kind: 'open', open: [...open], ticket });
    if (reply.kind === 'error') throw new Error(reply.message);
    return reply.kind === 'scene' && ticket === this.ticket ? reply : null;
  }
}
