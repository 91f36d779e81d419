import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { type RouteSeen, routesOf } from './data-center.ts';

/** Waits until a host would use a connector that failed, where the one in its place fails. */
export function awaitReturn(host: Host, connector: Host): Promise<boolean> {
  return eventually(
    `${connector.name} is usable at ${host.name} again`,
    async () => {
      const route = (await routesOf(host)).find(({ via }: RouteSeen) => via === connector.name);
      return route !== undefined && route.reason !== 'does not answer';
    },
    { everyMs: 300 },
  );
}
