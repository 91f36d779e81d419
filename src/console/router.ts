import { signal } from '@preact/signals';
import { type ConsoleRoute, linkTo, parseRoute, type Query, readQuery } from './logic/page/route.ts';

export const route = signal<ConsoleRoute>(parseRoute(location.hash));
/** The view of the page, such as a search. In the URL, so that it survives reload and Back. */
export const query = signal<Query>(readQuery(location.hash));

addEventListener('hashchange', () => {
  route.value = parseRoute(location.hash);
  query.value = readQuery(location.hash);
});

export function go(to: ConsoleRoute): void {
  location.hash = linkTo(to);
}

/** Changes the view of the page. Replaces the entry in the browser's history. */
export function setQuery(next: Query): void {
  query.value = next;
  history.replaceState(null, '', linkTo(route.value, next));
}
