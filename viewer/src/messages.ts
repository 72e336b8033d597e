// Messages to the reader: in the middle of the page, as a toast, to screen readers, and when nothing can be shown.

import { byId, h } from './dom';

/** Speak to screen readers. */
export function speak(text: string): void { byId('spoken').textContent = text.slice(0, 300); }

/** Show content in the middle of the page. */
export function say(...content: Node[]): void {
  const message = byId('message');
  message.className = '';
  message.replaceChildren(...content);
  message.hidden = false;
}

/** Show a text for some seconds. */
export function toast(text: string): void {
  const message = byId('message');
  message.className = 'toast';
  message.textContent = text.slice(0, 600);
  message.hidden = false;
  setTimeout(() => { if (message.className === 'toast') message.hidden = true; }, 6000);
}

/** Say why nothing is shown. */
export function showFailure(error: Error): void {
  say(h('h2', { text: 'This cannot be shown' }), h('p', { class: 'error', text: error.message }));
  byId('message').className = 'failed';
  document.documentElement.dataset.state = 'error';
}
