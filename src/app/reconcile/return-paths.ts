import type { ReturnPath } from '../../core/host-state/kernel-route.ts';
import { tunnelMark } from '../../core/host-state/marks.ts';
import { type Address, familyOf } from '../../core/net/cidr.ts';
import type { Host } from '../../host/host.ts';
import type { Evaluation } from './evaluate-network.ts';

/** The most local addresses for which the kernel is queried. */
const mostAddresses = 16;

/**
 * Queries the kernel for the route of replies to `to` from each address of this host; empty without
 * a full tunnel. WireGuard's own mark leads past the tunnel.
 */
export async function readReturnPaths(
  host: Pick<Host, 'route'>,
  { desired, actual }: Pick<Evaluation, 'desired' | 'actual'>,
  to: Address,
): Promise<ReturnPath[]> {
  if (desired.rules.length === 0 || actual.isPlain || familyOf(to) !== 4) return [];
  const own = new Set(actual.underlay.addresses.filter((each) => familyOf(each) === 4));
  const asked = [...own].slice(0, mostAddresses);
  return Promise.all(
    asked.map(async (from) => {
      const [route, outside] = await Promise.all([
        host.route(to, { source: from }),
        host.route(to, { source: from, mark: tunnelMark }),
      ]);
      return { from, route, outside };
    }),
  );
}
