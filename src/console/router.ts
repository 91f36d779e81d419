import { signal } from '@preact/signals';
import { type ConsoleRoute, linkTo, parseRoute, type Query, readQuery } from './logic/page/route.ts';

/** The page that is shown. */
export const route = signal<ConsoleRoute>(parseRoute(location.hash));
/** What of the page is shown, such as a search. It stands in the URL, so that it survives a reload and the way back. */
export const query = signal<Query>(readQuery(location.hash));

addEventListener('hashchange', () => {
  route.value = parseRoute(location.hash);
  query.value = readQuery(location.hash);
});

export function go(to: ConsoleRoute): void {
  location.hash = linkTo(to);
}

/** Shows something else of the same page. It takes the place of the entry in the browser's history. */
export function setQuery(next: Query): void {
  query.value = next;
  history.replaceState(null, '', linkTo(route.value, next));
}
