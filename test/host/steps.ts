import type { PublicKey } from '../../src/core/crypto/keys.ts';
import type { Actual, ActualPeer } from '../../src/core/host-state/actual.ts';
import { comparePrefixes, type Prefix, parseAddress, parsePrefix } from '../../src/core/net/cidr.ts';
import type { ConfigureDevice, ConfigureLink, CreateLink, LinkCommand, Step } from '../../src/core/reconcile/step.ts';
import type { DesiredPeer } from '../../src/core/wg-quick/parse.ts';
import { Machine } from './machine.ts';

export const question = { link: 'cpn0', firewall: false, sysctls: [], hosts: false };
export const everything = { link: 'cpn0', firewall: true, sysctls: [], hosts: false };
export const address = { address: parseAddress('10.77.0.5'), length: 24 };
export const address6 = { address: parseAddress('fd77::5'), length: 64 };

export const create: Step & CreateLink = { do: 'create-link', link: 'cpn0', changes: [] };
export const destroy: Step = { do: 'delete-link', link: 'cpn0', changes: [] };

export function configure(given: Partial<ConfigureDevice>): Step & ConfigureDevice {
  return { do: 'configure-device', link: 'cpn0', peers: [], changes: [], ...given };
}

export function settle(...commands: LinkCommand[]): Step & ConfigureLink {
  return { do: 'configure-link', link: 'cpn0', commands, changes: [] };
}

export function removePeers(...publicKeys: PublicKey[]): Step {
  return { do: 'remove-peers', link: 'cpn0', publicKeys, changes: [] };
}

export function addRoutes(...prefixes: string[]): LinkCommand[] {
  return prefixes.map((prefix) => ({ add: 'route', prefix: parsePrefix(prefix) }));
}

/** What a test may leave behind, in the words of the tools. */
export const traces =
  'ip -json address; ip route show table all; ip -6 route show table all; nft list ruleset; ls /run/wireguard; ps -eo comm= | grep wireguard || true';

/** A script that puts `by` in place of every tool of that name: a file that may not be executed hides it. */
export function hide(tool: string, by = '/dev/null'): string {
  return `for folder in /usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin; do
    if [ -e $folder/${tool} ]; then mount --bind ${by} $folder/${tool}; fi
  done`;
}

export function peerOf(actual: Actual, publicKey: PublicKey): ActualPeer | undefined {
  return actual.device?.peers.find((peer) => peer.publicKey === publicKey);
}

/** A peer as it is observed before a packet went either way. */
export function silent({ publicKey, presharedKey, endpoint, allowedIps, keepalive }: DesiredPeer): ActualPeer {
  const traffic = { latestHandshake: null, rxBytes: 0, txBytes: 0 };
  return {
    publicKey,
    presharedKey,
    endpoint,
    allowedIps: [...allowedIps].sort(comparePrefixes),
    keepalive,
    ...traffic,
  };
}

/** Peers and their allowed IPs in an order to compare in: WireGuard keeps none. */
export function peersOf(actual: Actual): ActualPeer[] {
  const peers = (actual.device?.peers ?? []).map((peer) => ({
    ...peer,
    allowedIps: [...peer.allowedIps].sort(comparePrefixes),
  }));
  return sortPeers(peers);
}

export function sortPeers(peers: readonly ActualPeer[]): ActualPeer[] {
  return [...peers].sort((a, b) => (a.publicKey < b.publicKey ? -1 : 1));
}

export function prefixesOf({ routes }: Actual): Prefix[] {
  return routes.map(({ prefix }) => prefix).sort(comparePrefixes);
}

/** A machine with cpn0 up and addressed. */
export async function startTunnel(...commands: LinkCommand[]): Promise<Machine> {
  const machine = await Machine.start();
  await machine.host.apply(create);
  await machine.host.apply(settle({ add: 'address', address }, { set: 'up' }, ...commands));
  return machine;
}
