import { CpnError, printable } from '../errors/index.ts';
import type { Unread } from '../forward/foreign/chain.ts';
import { describeBypass, describeUnread } from '../forward/foreign/describe-drop.ts';
import type { Bypass } from '../forward/foreign/find-bypasses.ts';
import { isLoaded, tableOf } from '../forward/own-table.ts';
import type { Actual } from '../host-state/actual.ts';
import { forwardingKey } from '../host-state/sysctl-keys.ts';
import type { NetworkMap, Peer } from '../map/model.ts';
import type { Address } from '../net/cidr.ts';
import { findPortMismatch, formatEndpoint, isLiteral } from '../net/endpoint.ts';
import { withoutNft } from '../problems/access-entries.ts';
import { type Problem, problem } from '../problems/problem.ts';
import type { Desired } from '../reconcile/desired.ts';
import { ownEndpoint, toFinding } from './describe-problems.ts';
import { type Finding, noteFinding, okFinding, problemFinding } from './finding.ts';

export interface MappedNetwork {
  readonly map: NetworkMap;
  readonly self: Peer;
  /** False after `cpn down`. */
  readonly enabled: boolean;
  readonly desired: Desired;
  readonly actual: Actual;
}

/** Checks the port at which peers reach this host, and the endpoint that the network announces. */
export function checkPorts({ self, desired, actual }: MappedNetwork, open: ReadonlySet<number>): Finding[] {
  const { link } = desired;
  const bound = actual.device?.listenPort ?? null;
  const checked = `the UDP port of ${link}`;
  // The problems of the network report a port that prevents the interface from coming up.
  if (bound === null) return [];
  const listens = open.has(bound)
    ? okFinding('ports', checked, `${bound} is open`)
    : problemFinding(
        'ports',
        checked,
        `WireGuard reports port ${bound}, but no socket listens there`,
        `cpn down ${link}, cpn up ${link}`,
      );
  return [listens, ...checkEndpoint(self, bound, actual.underlay.addresses)];
}

/** Checks where peers dial. The status reports another port at this host's own address. */
function checkEndpoint({ endpoint }: Peer, bound: number, own: readonly Address[]): Finding[] {
  const checked = ownEndpoint;
  if (endpoint === null) {
    return [okFinding('ports', checked, 'none: this host dials its peers, also through NAT')];
  }
  const dialled = formatEndpoint(endpoint);
  if (!isLiteral(endpoint)) return [okFinding('ports', checked, `${dialled}, a name that peers resolve`)];
  if (findPortMismatch(endpoint, bound, own) !== null) return [];
  if (own.includes(endpoint.host)) return [okFinding('ports', checked, `${dialled}, an address of this host`)];
  const found = `${dialled}, not an address of this host: a router must forward it here`;
  return [
    noteFinding('ports', checked, found, `on that router, forward UDP ${endpoint.port} to port ${bound} of this host`),
  ];
}

/** `drop` is an error for rules that could not be read. The effect of `unread` rules is unknown. */
export function checkInboundDrop(
  { desired }: MappedNetwork,
  drop: Problem | CpnError | null,
  unread: readonly Unread[] = [],
): Finding[] {
  const checked = `packet rules of other programs for UDP to the port of ${desired.link}`;
  if (drop instanceof CpnError) {
    const remedy = 'sudo cpn doctor, with nft installed';
    return [noteFinding('ports', checked, `they cannot be read: ${printable(drop.message)}`, remedy)];
  }
  if (drop !== null) return [toFinding(drop, 'ports', checked)];
  const unknown = describeUnread(unread);
  if (unknown !== null) return [noteFinding('ports', checked, unknown.found, unknown.remedy)];
  return [okFinding('ports', checked, 'none was found that drops it')];
}

/** Checks the packet rules, which keep neighbours from the tunnel address. */
export function checkRules({ map, desired, actual }: MappedNetwork): Finding[] {
  const { link, firewall, forwards } = desired;
  const isClosed = map.rules !== undefined;
  if (firewall === null && (!isClosed || actual.isPlain)) return [];
  const table = `nft table inet ${tableOf(link)}`;
  if (firewall !== null && isLoaded(firewall, actual)) return [okFinding('forwarding', table, 'is loaded')];
  const error = firewall === null ? withoutNft : null;
  const facts = { interface: link, error, is_connector: forwards, is_closed: isClosed };
  const found = problem('rules-not-loaded', facts);
  return [toFinding(found, 'forwarding', table)];
}

/** Checks what keeps packets from the rules of a closed network. */
export function checkBypasses({ map, desired }: MappedNetwork, bypasses: readonly Bypass[]): Finding[] {
  const checked = `packet rules of other programs that bypass the rules of network ${printable(map.name)}`;
  if (bypasses.length === 0) return [okFinding('forwarding', checked, 'none was found')];
  const remedy = `exclude ${desired.link} and the addresses of the network from them`;
  return bypasses.map((bypass) => noteFinding('forwarding', checked, describeBypass(bypass), remedy));
}

/** Empty if this host does not forward. The effect of `unread` rules is unknown. */
export function checkForwarding(
  { desired, actual }: MappedNetwork,
  drops: readonly Problem[],
  unread: readonly Unread[] = [],
): Finding[] {
  const { link, forwards, ingress } = desired;
  if (!forwards) return [];
  const remedy = `cpn reconcile ${link}`;
  const switches = [link, ...ingress.map((each) => each.link)].map(forwardingKey);
  const off = switches.filter((key) => actual.sysctls[key] !== '1');
  const on =
    off.length === 0
      ? [okFinding('forwarding', switches.join(', '), 'is on')]
      : off.map((key) =>
          problemFinding('forwarding', key, 'is off: packets that arrive there are not forwarded', remedy),
        );
  const checked = `packet rules of other programs for packets that ${link} forwards`;
  const dropped = drops.map((drop) => toFinding(drop, 'forwarding', checked));
  if (dropped.length > 0) return [...on, ...dropped];
  const unknown = describeUnread(unread);
  if (unknown !== null) return [...on, noteFinding('forwarding', checked, unknown.found, unknown.remedy)];
  return [...on, okFinding('forwarding', checked, 'none was found that drops them')];
}

/** Checks whether this network overlaps with others, or with the host's underlay. */
export function checkConflicts({ desired }: MappedNetwork): Finding[] {
  const { link } = desired;
  const checked = `overlaps of ${link} with other networks of this host`;
  const found = desired.report
    .filter(({ state, reason }) => state === 'refused' && reason !== 'not accepted')
    .map(({ prefix, reason }) =>
      noteFinding(
        'network',
        checked,
        `${prefix} is left out: it ${reason}`,
        `cpn set ${link} --allow-route ${prefix}, if this is intended`,
      ),
    );
  return found.length > 0 ? found : [okFinding('network', checked, 'no address')];
}
