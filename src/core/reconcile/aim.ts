import type { Actual } from '../host-state/actual.ts';
import { placeRoutes } from '../routing/place-route.ts';
import type { Desired } from './desired.ts';

/** What a pass over a network works towards, and the host around it. */
export interface Aimed {
  readonly desired: Desired;
  readonly actual: Pick<Actual, 'rules' | 'surroundings'>;
}

/**
 * True when two passes work towards the same: then what the later one finds to do was undone by others. Otherwise it may follow from
 * the map, or from what is around the tunnel.
 */
export function haveSameAim(one: Aimed, other: Aimed): boolean {
  return one === other || describeAim(one) === describeAim(other);
}

function describeAim({ desired, actual }: Aimed): string {
  const { config, routes, rules, firewall, ingress, sysctls, hosts } = desired;
  const places = routes.map(placeRoutes(desired, actual));
  return JSON.stringify([config, routes, places, rules, firewall, ingress.map(({ link }) => link), sysctls, hosts]);
}
