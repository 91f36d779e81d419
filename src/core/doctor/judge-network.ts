import type { Actual } from '../actual.ts';
import type { Address } from '../cidr.ts';
import type { Desired } from '../desired.ts';
import { formatEndpoint, isLiteral } from '../endpoint.ts';
import { printable } from '../errors.ts';
import { isLoaded, tableOf } from '../firewall.ts';
import { findHiddenPeers } from '../hidden-peers.ts';
import { forwardingKey } from '../link-sysctl.ts';
import type { NetworkMap, Peer } from '../model.ts';
import { type Finding, well, worthKnowing, wrong } from './finding.ts';

/** A network as this host has it, and this host in it. */
export interface Scene {
  readonly map: NetworkMap;
  readonly self: Peer;
  /** False after `cpn down`. */
  readonly enabled: boolean;
  readonly desired: Desired;
  readonly actual: Actual;
}

/** Judges the port on which this host is to be heard, and whether the others can know of it. */
export function judgePorts({ self, enabled, desired, actual }: Scene, open: ReadonlySet<number>): Finding[] {
  const { link, config } = desired;
  const bound = actual.device?.listenPort ?? null;
  const wanted = config.listenPort;
  const looked = `the UDP port of ${link}`;
  if (bound === null) {
    if (!enabled || wanted === null || !open.has(wanted)) return [];
    const remedy = `see who has it: ss -lunp sport = ${wanted}; or cpn set ${link} --listen-port PORT`;
    return [wrong('ports', looked, `${wanted} is taken by another program`, remedy)];
  }
  const listens = open.has(bound)
    ? well('ports', looked, `${bound} is open`)
    : wrong('ports', looked, `WireGuard names ${bound}, and nobody listens there`, `cpn down ${link}, cpn up ${link}`);
  return [listens, judgeEndpoint(self, bound, actual.surroundings.addresses, link)];
}

/** Whether who dials what the network tells of this host comes out here. */
function judgeEndpoint({ endpoint }: Peer, bound: number, own: readonly Address[], link: string): Finding {
  const looked = 'where the network tells peers to dial this host';
  if (endpoint === null) {
    return well('ports', looked, 'nowhere: it dials them, and a NAT in between is no matter');
  }
  const told = formatEndpoint(endpoint);
  if (!isLiteral(endpoint)) return well('ports', looked, `${told}, whose address is the resolver's word`);
  if (own.includes(endpoint.host)) {
    if (endpoint.port === bound) return well('ports', looked, `${told}, which is this host itself`);
    const remedy = `cpn set ${link} --listen-port ${endpoint.port}`;
    return wrong('ports', looked, `${told}, and ${link} listens on ${bound}`, remedy);
  }
  const found = `${told}, which is no address of this host: there must be a router that maps it here`;
  return worthKnowing('ports', looked, found, `forward UDP ${endpoint.port} there to port ${bound} of this host`);
}

/** Judges what this host needs to forward; nothing where it forwards nothing. */
export function judgeForwarding({ desired, actual }: Scene, drops: readonly string[]): Finding[] {
  const { link, firewall, ingress } = desired;
  if (firewall === null) return [];
  const remedy = `cpn reconcile ${link}`;
  const table = `nft table inet ${tableOf(link)}`;
  const rules = isLoaded(firewall, actual)
    ? well('forwarding', table, 'is loaded')
    : wrong('forwarding', table, 'is not loaded as it should be: nothing is forwarded without it', remedy);
  const switches = [link, ...ingress.map((each) => each.link)].map(forwardingKey);
  const off = switches.filter((key) => actual.sysctls[key] !== '1');
  const on =
    off.length === 0
      ? [well('forwarding', switches.join(', '), 'is on')]
      : off.map((key) => wrong('forwarding', key, 'is off: what comes in there is not forwarded', remedy));
  const looked = `what other packet rules do with what ${link} forwards`;
  const dropped = drops.map((drop) => wrong('forwarding', looked, printable(drop), 'let it through, as is said there'));
  return [rules, ...on, ...(dropped.length > 0 ? dropped : [well('forwarding', looked, 'they let it through')])];
}

/** Judges where this network and others, or the host's own surroundings, want the same addresses. */
export function judgeConflicts({ map, self, desired, actual }: Scene): Finding[] {
  const { link } = desired;
  const looked = `what ${link} has in common with other networks of this host`;
  const hidden = findHiddenPeers(map, self.address, actual.surroundings).map(({ peer, link: other }) =>
    wrong(
      'network',
      looked,
      `${printable(peer.name)} is out of reach: this host has its address ${peer.address} itself, on ${other}`,
      `cpn leave ${link} or cpn leave ${other}, and join again for another address`,
    ),
  );
  const refused = desired.report
    .filter(({ state, reason }) => state === 'refused' && reason !== 'not accepted')
    .map(({ prefix, reason }) =>
      worthKnowing(
        'network',
        looked,
        `${prefix} is left out: it ${reason}`,
        `cpn set ${link} --allow-route ${prefix}, if that is meant to be`,
      ),
    );
  const found = [...hidden, ...refused];
  return found.length > 0 ? found : [well('network', looked, 'no address')];
}
