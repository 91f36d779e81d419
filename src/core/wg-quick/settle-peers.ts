import type { PublicKey } from '../crypto/keys.ts';
import { type Address, hostPrefix, type Prefix } from '../net/cidr.ts';
import type { ProvidedConfig } from './provided-config.ts';
import type { ProvidedPeer } from './provided-peer.ts';

/**
 * Resolves contradictions between peers of a text, as WireGuard does. For a duplicate key, the last
 * section counts. A duplicate prefix belongs to the last peer. A peer with this host's own key is
 * dropped, and no peer gets this host's own address. Each case adds a remark.
 */
export function settlePeers(config: ProvidedConfig, own: { publicKey: PublicKey; address: Address }): ProvidedConfig {
  const remarks = new Set<string>();
  const lastOfKey = new Map(config.peers.map((peer) => [peer.publicKey, peer]));
  const lastOfPrefix = new Map<Prefix, ProvidedPeer>();
  const peers = config.peers.filter((peer) => {
    if (peer.publicKey === own.publicKey) remarks.add('a [Peer] with the key of this host is not used');
    else if (lastOfKey.get(peer.publicKey) !== peer) remarks.add('of two [Peer]s with one key, the last one counts');
    else return true;
    return false;
  });
  for (const peer of peers) for (const prefix of peer.allowedIps) lastOfPrefix.set(prefix, peer);
  const settled = peers.map((peer) => ({
    ...peer,
    allowedIps: peer.allowedIps.filter((prefix) => {
      if (prefix === hostPrefix(own.address)) remarks.add("this host's own address in AllowedIPs is not used");
      else if (lastOfPrefix.get(prefix) !== peer) remarks.add('AllowedIPs of two [Peer]s are those of the last one');
      else return true;
      return false;
    }),
  }));
  return { ...config, peers: settled, remarks: [...config.remarks, ...remarks] };
}
