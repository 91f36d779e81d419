import type { AdminService } from '../../api/admin-service.ts';
import type { ChangeNetwork } from '../../contract/network.ts';
import { WrongUsage } from '../../core/errors/index.ts';
import type { Id } from '../../core/map/model.ts';
import { type Prefix, parsePrefix } from '../../core/net/cidr.ts';
import { compareRoutes } from '../../core/routing/route-change.ts';
import { confirm } from '../input/confirm.ts';
import type { Input } from '../input/input.ts';
import { note } from '../output/output.ts';

/** A change of a network's routes: replaces all, or adds and removes some. */
export type RouteFlags =
  | { readonly all: readonly Prefix[] }
  | { readonly add: readonly Prefix[]; readonly remove: readonly Prefix[] };

/** Reads `--route` and `--no-routes`, `--add-route` and `--remove-route`. Null if none is given. */
export function readRouteFlags(input: Input): RouteFlags | null {
  const read = (flag: string) => [...new Set(input.list(flag).map((text) => parsePrefix(text, input.nameOf(flag))))];
  const [all, add, remove] = [read('route'), read('add-route'), read('remove-route')];
  const isNone = !input.switch('routes', true);
  if (isNone && all.length > 0) throw new WrongUsage('--route and --no-routes exclude each other; give one of them');
  if (add.length + remove.length > 0) {
    if (!isNone && all.length === 0) return { add, remove };
    throw new WrongUsage(
      '--route and --no-routes replace all routes, --add-route and --remove-route edit them; give one kind',
    );
  }
  return isNone || all.length > 0 ? { all } : null;
}

/**
 * A replacement of all routes expects the current ones to be those shown, and needs confirmation if
 * it removes any. Null if the user declines.
 */
export async function prepareRoutes(
  service: AdminService,
  network: Id,
  routes: RouteFlags | null,
  input: Input,
): Promise<ChangeNetwork | null> {
  if (routes === null) return {};
  if (!('all' in routes)) return prepareEdits(service, routes);
  const { name, routes: before } = await service.readNetwork(network);
  const { added, removed } = compareRoutes(before as Prefix[], routes.all);
  if (added.length > 0) note(`adds ${added.join(', ')}`);
  if (removed.length > 0) note(`removes ${removed.join(', ')}`);
  if (removed.length > 0 && !(await confirm(`Replace the routes of network ${name}?`, input))) return null;
  const isCompared = await service.describes('network-expected-routes');
  return { routes: [...routes.all], ...(isCompared && { expected_routes: [...before] }) };
}

async function prepareEdits(
  service: AdminService,
  { add, remove }: { readonly add: readonly Prefix[]; readonly remove: readonly Prefix[] },
): Promise<ChangeNetwork> {
  if (!(await service.describes('network-route-edits'))) {
    throw new WrongUsage(
      'this control plane cannot add or remove single routes; name all routes of the network with --route, or --no-routes',
    );
  }
  return { ...(add.length > 0 && { add_routes: [...add] }), ...(remove.length > 0 && { remove_routes: [...remove] }) };
}
