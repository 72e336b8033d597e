import { Ask, buffers, Desk } from './worker';

const desk = new Desk();
const scope = self as unknown as { onmessage: (event: MessageEvent<Ask>) => void; postMessage(message: unknown, transfer: Transferable[]): void };
scope.onmessage = event => {
  const reply = desk.answer(event.data);
  scope.postMessage(reply, buffers(reply));
};
