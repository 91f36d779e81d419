import type { Actual } from '../host-state/actual.ts';
import type { InterfaceAddress, Prefix } from '../net/cidr.ts';
import { explainBypassRoute } from '../routing/bypass-route.ts';
import { isFresh } from './peer-health.ts';

/** A condition that a caller can wait for. */
export type ReadinessCondition =
  /** A program can bind to the interface's address. */
  | { readonly for: 'address' }
  /** Any peer answered, and the session is valid. */
  | { readonly for: 'handshake' }
  /** The host sends packets to `prefix` into the interface. */
  | { readonly for: 'route'; readonly prefix: Prefix };

/**
 * Describes what a host lacks; null if the condition holds. The interface must have `address`, with
 * any prefix length. `now` is in seconds since the epoch.
 */
export function findUnmet(
  condition: ReadinessCondition,
  { link, address }: { readonly link: string; readonly address: InterfaceAddress['address'] },
  actual: Actual,
  now: number,
): string | null {
  if (actual.link === null) return `the interface ${link} is missing`;
  if (!actual.link.up) return `${link} is down`;
  if (condition.for === 'route') return explainBypassRoute(condition.prefix, link, actual);
  if (condition.for === 'handshake') {
    const isHeard = actual.device?.peers.some((peer) => isFresh(peer.latestHandshake, now));
    return isHeard ? null : 'no peer has a fresh handshake';
  }
  const present = actual.link.addresses.some((each) => each.address === address);
  return present ? null : `${link} does not have the address ${address}`;
}
