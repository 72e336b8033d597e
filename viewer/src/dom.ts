// Elements from data. Text goes in as text: nothing of a file is ever read as HTML.

export type Child = Node | string | number | null | undefined | false;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, props: Record<string, unknown> = {}, ...children: (Child | Child[])[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value as EventListener);
    else if (key === 'class') element.className = String(value);
    else if (key === 'text') element.textContent = String(value);
    else element.setAttribute(key, value === true ? '' : String(value));
  }
  for (const child of children.flat()) if (child !== null && child !== undefined && child !== false) element.append(typeof child === 'number' ? String(child) : child);
  return element;
}

export function byId<T extends HTMLElement>(id: string): T { return document.getElementById(id) as T; }

export function replace(parent: Element, ...children: (Child | Child[])[]): void {
  parent.replaceChildren(...children.flat().filter((child): child is Node | string => child !== null && child !== undefined && child !== false && typeof child !== 'number'));
}

/** A path, which may be broken into lines after its dots, slashes and underscores. */
export function broken(path: string): Child[] {
  return path.split(/(?<=[._/])/).flatMap(part => [part, h('wbr')]);
}

export function bytesText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const units = ['kB', 'MB', 'GB', 'TB', 'PB'];
  let value = bytes, unit = -1;
  while (value >= 999.5 && unit < units.length - 1) { value /= 1000; unit++; }
  return `${value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export function count(n: number, what: string): string {
  return `${n.toLocaleString('en')} ${what}${n === 1 ? '' : 's'}`;
}

export function numberText(value: number | string | null): string {
  if (value === null) return '–';
  if (typeof value === 'string') return value;
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString('en');
  return Number(value.toPrecision(6)).toString();
}
