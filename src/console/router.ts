import { signal } from '@preact/signals';
import { linkTo, parseRoute, type Route } from './logic/page/route.ts';

/** The page that is shown. */
export const route = signal<Route>(parseRoute(location.hash));

addEventListener('hashchange', () => {
  route.value = parseRoute(location.hash);
});

export function go(to: Route): void {
  location.hash = linkTo(to);
}
