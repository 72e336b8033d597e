// Where answers come from: the server that gave the page, or the page itself.

export class NoAnswer extends Error {}

const inline = document.querySelector('meta[name="pt2-answers"]') !== null;
const kept = new Map<string, Promise<unknown>>();

/** An answer; what was asked before is not asked again. */
export function ask<T>(request: string): Promise<T> {
  const known = kept.get(request);
  if (known) return known as Promise<T>;
  const answer = (inline ? fromPage(request) : fromServer(request)).then(text => {
    const value: unknown = JSON.parse(text);
    if (value !== null && typeof value === 'object' && !Array.isArray(value)) {
      const keys = Object.keys(value);
      if (keys.length === 1 && keys[0] === 'error') throw new NoAnswer(String((value as { error: unknown }).error));
    }
    return value;
  });
  kept.set(request, answer);
  answer.catch(() => kept.delete(request));
  return answer as Promise<T>;
}

/** An answer that may be another one each time. */
export async function askAnew<T>(request: string): Promise<T> { return JSON.parse(await fromServer(request)) as T; }

async function fromServer(request: string): Promise<string> {
  const reply = await fetch(`answer/${request}`, { credentials: 'omit', cache: 'no-store' }).catch(() => {
    throw new NoAnswer('pt2 view no longer runs: start it again and reload');
  });
  if (!reply.ok) throw new NoAnswer(`no answer to ${request}: ${reply.status}`);
  return reply.text();
}

async function fromPage(request: string): Promise<string> {
  const found = [...document.querySelectorAll('script[data-request]')].find(element => element.getAttribute('data-request') === request);
  if (!found) throw new NoAnswer('not in this page: open the file with pt2 view');
  const raw = atob(found.textContent ?? ''), data = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) data[i] = raw.charCodeAt(i);
  const stream = new Blob([data]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Response(stream).text();
}
