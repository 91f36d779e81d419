import { comparePrefixes, type Prefix } from '../net/cidr.ts';

/** The difference between two lists of routes, in no particular order. */
export interface RouteChange {
  readonly added: readonly Prefix[];
  readonly removed: readonly Prefix[];
}

export function compareRoutes(before: readonly Prefix[], after: readonly Prefix[]): RouteChange {
  return { added: without(after, before), removed: without(before, after) };
}

/** Such as `route 10.9.0.0/24 was added, route 10.8.0.0/24 was removed`; null without a change. */
export function describeRouteChange({ added, removed }: RouteChange): string | null {
  const parts = [
    ...(added.length > 0 ? [`${list(added)} added`] : []),
    ...(removed.length > 0 ? [`${list(removed)} removed`] : []),
  ];
  return parts.length === 0 ? null : parts.join(', ');
}

const mostListed = 3;

function list(routes: readonly Prefix[]): string {
  if (routes.length === 1) return `route ${routes[0]} was`;
  const more = routes.length > mostListed ? ` and ${routes.length - mostListed} more` : '';
  return `routes ${routes.slice(0, mostListed).join(', ')}${more} were`;
}

function without(routes: readonly Prefix[], others: readonly Prefix[]): Prefix[] {
  return routes.filter((route) => !others.includes(route)).sort(comparePrefixes);
}
