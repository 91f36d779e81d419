import type { Prefix } from '../../core/cidr.ts';
import type { DesiredPeer, InterfaceAddress, TunnelConfig } from '../../core/model.ts';
import type { LinkCommand } from '../../core/step.ts';
import { isOnLink, routesOf, type TunnelFile } from './tunnel-file.ts';

/** WireGuard's table as it is, or as it is to be, with the private key. */
export type KnownDevice = Pick<TunnelConfig, 'privateKey' | 'listenPort' | 'fwmark' | 'peers'>;

/** A tunnel before it is settled: the file that is up, WireGuard's table, and the addresses on the interface. */
export interface Before {
  readonly file: TunnelFile | null;
  readonly device: KnownDevice;
  readonly addresses: readonly InterfaceAddress[];
}

/** The MTU of a tunnel that was never given one. */
const usualMtu = 1420;

/**
 * The file with which a tunnel is to be brought up after the commands. Peers are those of WireGuard's own table, so that endpoints
 * that it learned outlive the restart; of their allowed IPs those are left out that no route is to lead to, because wg-quick
 * would make one. Only additions and removals of routes count, and so a peer that is to be removed next makes no route.
 */
export function settle({ file, device, addresses }: Before, commands: readonly LinkCommand[]): TunnelFile {
  let alias = file?.alias ?? null;
  let mtu = file?.config.mtu ?? usualMtu;
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

/** True when the commands change what only a restart of the tunnel changes: anything but our mark. */
export function interrupts(commands: readonly LinkCommand[]): boolean {
  return commands.some((command) => !('set' in command && command.set === 'alias'));
}

function withRoutes(peer: DesiredPeer, routes: ReadonlySet<Prefix>, address: InterfaceAddress): DesiredPeer {
  const { publicKey, presharedKey, endpoint, keepalive } = peer;
  const allowedIps = peer.allowedIps.filter(
    // IPv4 in IPv6 clothing, which somebody may have set by hand, is no prefix to reckon with.
    (prefix) => routes.has(prefix) || (!/^::ffff:/i.test(prefix) && isOnLink(prefix, address)),
  );
  // WireGuard takes port 0 from whoever sets it; our own files do not.
  return { publicKey, presharedKey, endpoint: endpoint?.port ? endpoint : null, allowedIps, keepalive };
}

/** The table that steps made before there is an interface to make it on. */
export function mergePeers(before: readonly DesiredPeer[], changed: readonly DesiredPeer[]): DesiredPeer[] {
  const names = new Set(changed.map((peer) => peer.publicKey));
  return [...before.filter((peer) => !names.has(peer.publicKey)), ...changed];
}
