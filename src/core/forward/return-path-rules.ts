import { type Address, familyOf, type Prefix } from '../net/cidr.ts';

/**
 * Rules that keep a connection outside a full tunnel when it began outside. The policy rules know only answers from addresses
 * of this host: the answers of a container on a published port get such an address after the kernel has chosen their route.
 * So the connection is marked (`outsideMark`), and each of its packets before its route is chosen.
 */
export type ReturnPathRule =
  /** Marks the packets of marked connections: those that come in, and those of this host that would enter the tunnel. */
  | { readonly rule: 'restore-arriving' | 'restore-sent' }
  /** Marks connections that come in from outside, to an address of this host other than `except`, its own in the network. */
  | { readonly rule: 'mark-outside'; readonly except: Address }
  /**
   * Marks those that another program redirects: to a container, or to a member of the network (`range`). What is redirected to
   * where only the full tunnel leads, as queries of containers to another resolver, goes through the tunnel.
   */
  | { readonly rule: 'mark-redirected'; readonly except: Address; readonly range: Prefix | null };

/**
 * The packet rules of a full tunnel. Nothing is marked that came to this host's address in the network: packets with forged
 * addresses would otherwise take connections of this host out of the tunnel, which bear that address.
 */
export function returnPathRules(own: Address, range: Prefix): readonly ReturnPathRule[] {
  if (familyOf(own) !== 4) return [];
  return [
    { rule: 'restore-arriving' },
    { rule: 'mark-outside', except: own },
    { rule: 'mark-redirected', except: own, range: null },
    { rule: 'mark-redirected', except: own, range },
    { rule: 'restore-sent' },
  ];
}
