import type { InterfaceAddress, Prefix } from '../../core/net/cidr.ts';
import type { LinkCommand } from '../../core/reconcile/step.ts';
import type { DesiredPeer, TunnelConfig } from '../../core/wg-quick/parse.ts';
import { isOnLink, routesOf, type TunnelFile } from './tunnel-files.ts';

/** The configuration of a WireGuard interface, with its private key. */
export type DeviceConfig = Pick<TunnelConfig, 'privateKey' | 'listenPort' | 'fwmark' | 'peers'>;

/** A tunnel before the commands: its file, its device, and the addresses of its interface. */
export interface TunnelState {
  readonly file: TunnelFile | null;
  readonly device: DeviceConfig;
  readonly addresses: readonly InterfaceAddress[];
}

const defaultMtu = 1420;

/**
 * Returns the file with which the tunnel is brought up afterwards. Its peers are the device's, so
 * that learned endpoints survive. It omits allowed IPs without a route, for which wg-quick would
 * add one: only the commands decide about routes, and a peer that a later step removes gets none.
 */
export function applyCommands({ file, device, addresses }: TunnelState, commands: readonly LinkCommand[]): TunnelFile {
  let alias = file?.alias ?? null;
  let mtu = file?.config.mtu ?? defaultMtu;
  let address = file?.config.address ?? addresses[0];
  const routes = new Set<Prefix>(file === null ? [] : routesOf(file));
  for (const command of commands) {
    if ('set' in command) {
      if (command.set === 'alias') alias = command.value;
      if (command.set === 'mtu') mtu = command.value;
    } else if ('add' in command) {
      if (command.add === 'address') address = command.address;
      if (command.add === 'route') routes.add(command.prefix);
    } else if (command.remove === 'route') routes.delete(command.prefix);
  }
  if (address === undefined) throw new Error('a tunnel is brought up without an address');
  const { privateKey, listenPort, fwmark } = device;
  const peers = device.peers.map((peer) => withRoutes(peer, routes, address));
  return { alias, config: { privateKey, listenPort, fwmark, mtu, address, peers } };
}

/** True if the commands change more than our mark, which needs a restart of the tunnel. */
export function needsRestart(commands: readonly LinkCommand[]): boolean {
  return commands.some((command) => !('set' in command && command.set === 'alias'));
}

function withRoutes(peer: DesiredPeer, routes: ReadonlySet<Prefix>, address: InterfaceAddress): DesiredPeer {
  const { publicKey, presharedKey, endpoint, keepalive } = peer;
  const allowedIps = peer.allowedIps.filter(
    // `covers` fails for an IPv4-mapped prefix, which an operator may have set.
    (prefix) => routes.has(prefix) || (!/^::ffff:/i.test(prefix) && isOnLink(prefix, address)),
  );
  // WireGuard accepts port 0, but our files do not.
  return { publicKey, presharedKey, endpoint: endpoint?.port ? endpoint : null, allowedIps, keepalive };
}

/** Adds or replaces peers by public key. */
export function mergePeers(before: readonly DesiredPeer[], changed: readonly DesiredPeer[]): DesiredPeer[] {
  const names = new Set(changed.map((peer) => peer.publicKey));
  return [...before.filter((peer) => !names.has(peer.publicKey)), ...changed];
}
