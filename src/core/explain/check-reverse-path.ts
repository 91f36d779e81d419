import { isTakenByTunnel, type KernelRoute, type ReturnPath } from '../host-state/kernel-route.ts';
import { looseFilter, sourceFilterKey } from '../host-state/sysctl-keys.ts';
import { type Address, familyOf } from '../net/cidr.ts';
import { type Check, inconclusive, passes, stops } from './check.ts';
import { describeRefusal, describeRoute } from './check-route.ts';
import type { NetworkOnHost } from './view.ts';

/** The keys of an interface's reverse path filter: the larger value applies (ip-sysctl.rst). */
export function reversePathKeys(link: string): { readonly all: string; readonly own: string } {
  return { all: 'net.ipv4.conf.all.rp_filter', own: sourceFilterKey(link) };
}

/**
 * Checks whether the kernel accepts the reply, which arrives by our interface. The filter evaluates
 * `back`, the route from the own address to the reply's source; null without a lookup.
 */
export function checkReversePath(address: Address, view: NetworkOnHost, back: KernelRoute | null): Check {
  if (familyOf(address) === 6) return passes('rp_filter', 'does not apply to IPv6');
  const { link } = view.desired;
  const { all, own } = reversePathKeys(link);
  const values = [all, own].map((key) => Number(view.actual.sysctls[key] ?? Number.NaN));
  const value = Math.max(...values);
  if (Number.isNaN(value)) return inconclusive('rp_filter', `unknown, because ${own} does not exist`);
  if (value === 0) return passes('rp_filter', 'off');
  const mode = value === 1 ? 'strict' : 'loose';
  if (back === null) return inconclusive('rp_filter', `${mode}; the return path is unknown without the address`);
  if (back.link === link) return passes('rp_filter', `${mode}; the return path uses ${link} too`);
  if (back.link !== null && value === 2) return passes('rp_filter', 'loose');
  const away = back.link === null ? describeRefusal(back) : `the return path ${describeRoute(back)}`;
  const dropped = `${mode}, and drops replies that arrive on ${link}: ${away}`;
  const remedy = `route ${address} into ${link} for packets from ${view.address} too`;
  return stops('rp_filter', dropped, value === 2 ? remedy : `${remedy}, or "sysctl -w ${own}=${looseFilter}"`);
}

/** Reports where replies go from each address of this host; empty without a full tunnel. */
export function checkAnswers(paths: readonly ReturnPath[], { desired: { link } }: NetworkOnHost): Check[] {
  if (paths.length === 0) return [];
  const details = paths.map(({ from, route: kernelRoute }) => {
    const where =
      kernelRoute.link === null ? describeRefusal(kernelRoute) : describeRoute({ ...kernelRoute, source: null });
    return `from ${from}: ${where}`;
  });
  const detail = details.join('; ');
  const isTaken = paths.some((path) => isTakenByTunnel(path, link));
  if (!isTaken) return [passes('answers', detail)];
  return [inconclusive('answers', detail, `${link} takes answers that belong outside; "cpn doctor" says why`)];
}
