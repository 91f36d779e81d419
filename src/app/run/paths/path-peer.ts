import { presharedKeyOf } from '../../../core/crypto/network-secret.ts';
import type { Secret } from '../../../core/crypto/secret.ts';
import type { Peer, PeerId } from '../../../core/map/model.ts';
import { type Address, hostPrefix, type Prefix } from '../../../core/net/cidr.ts';
import type { SocketEndpoint } from '../../../core/net/endpoint.ts';
import { findDevicePaths } from '../../../core/paths/device-paths.ts';
import { isForProbes, probeAddressOf, probePrefixOf } from '../../../core/paths/probe-address.ts';
import type { Step } from '../../../core/reconcile/step.ts';
import { findSelf } from '../../reconcile/desire-network.ts';
import type { Evaluation } from '../../reconcile/evaluate-network.ts';

/** Seconds between keepalives over a direct path, which hold the mappings of both NATs. */
const pathKeepalive = 25;

/** A peer to which a direct path may exist, with all that WireGuard needs of it. */
export interface PathPeer {
  readonly id: PeerId & number;
  readonly name: string;
  readonly publicKey: Peer['publicKey'];
  /** The key of this host. */
  readonly ownKey: Peer['publicKey'];
  readonly presharedKey: Secret | null;
  readonly address: Address;
  readonly own: Prefix;
  readonly probes: Prefix;
  readonly probeAddress: Address;
}

/** The peers of an evaluation to which direct paths may exist, by id. */
export function findPathPeers({ state, desired }: Evaluation): ReadonlyMap<number, PathPeer> {
  const { map } = findSelf(state);
  const { networkSecret, keyPair } = state;
  const network = map.id;
  if (network === null) return new Map();
  const peers = map.peers.flatMap((peer): [number, PathPeer][] => {
    const { id, name, publicKey, address } = peer;
    if (typeof id !== 'number' || !desired.triable.has(publicKey)) return [];
    const presharedKey =
      networkSecret === null
        ? (peer.given?.presharedKey ?? null)
        : presharedKeyOf(networkSecret, network, keyPair.publicKey, publicKey);
    const probes = { probes: probePrefixOf(network, id), probeAddress: probeAddressOf(network, id) };
    const keys = { publicKey, ownKey: keyPair.publicKey, presharedKey };
    return [[id, { id, name, ...keys, address, own: hostPrefix(address), ...probes }]];
  });
  return new Map(peers);
}

/** True if a session with the peer outlives the change. Both sides may have another key. */
export function keepsSession(before: PathPeer | undefined, after: PathPeer | undefined): boolean {
  return after !== undefined && before?.publicKey === after.publicKey && before.ownKey === after.ownKey;
}

/**
 * The peers that the device of an evaluation reaches over direct paths.
 *
 * @param now seconds since the epoch
 */
export function findPaths({ state, actual }: Evaluation, now: number): readonly PathPeer['id'][] {
  const { map, self } = findSelf(state);
  return findDevicePaths(actual.device, map, self, now).filter((id) => typeof id === 'number');
}

/** The peers that an attempt left in the table of an evaluation. */
export function findTrials({ actual }: Evaluation, peers: ReadonlyMap<number, PathPeer>): readonly PathPeer[] {
  const inTable = new Map(actual.device?.peers.map(({ publicKey, allowedIps }) => [publicKey, allowedIps]));
  return [...peers.values()].filter(({ publicKey }) => {
    const allowedIps = inTable.get(publicKey) ?? [];
    return allowedIps.length > 0 && allowedIps.every(isForProbes);
  });
}

/** Adds the peer again for a trial: an endpoint starts a handshake. */
export function renewForTrial(link: string, peer: PathPeer, endpoint: SocketEndpoint | null, keepalive: number): Step {
  const { publicKey, presharedKey, probes } = peer;
  return {
    do: 'renew-peers',
    link,
    peers: [{ publicKey, presharedKey, endpoint, allowedIps: [probes], keepalive }],
    changes: [],
  };
}

/** Moves the peer's address from the relay to the direct path. Its endpoint and session stay. */
export function switchToPath(link: string, { publicKey, presharedKey, own, probes }: PathPeer): Step {
  const peer = { publicKey, presharedKey, endpoint: null, allowedIps: [own, probes], keepalive: pathKeepalive };
  return { do: 'configure-device', link, peers: [peer], changes: [] };
}

/**
 * Moves the peer's address back to the relay. The peer keeps its session, and nothing else: its
 * packets over the path are refused from now on.
 */
export function switchToRelay(
  link: string,
  peer: PathPeer,
  { desired }: Evaluation,
  others: readonly PathPeer[],
): Step {
  const { publicKey, presharedKey } = peer;
  const kept = new Set(others.map(({ own }) => own));
  const relayed = desired.savedConfig.peers
    .filter((each) => each.publicKey === desired.relay?.publicKey)
    .map((each) => ({ ...each, endpoint: null, allowedIps: each.allowedIps.filter((prefix) => !kept.has(prefix)) }));
  const left = { publicKey, presharedKey, endpoint: null, allowedIps: [], keepalive: null };
  return { do: 'configure-device', link, peers: [left, ...relayed], changes: [] };
}

/** Where probes of paths come from; null if this host has no IPv6 in the tunnel. */
export function probesFrom(link: string, { probeAddress }: Evaluation['desired']) {
  return probeAddress && { address: probeAddress.address, link };
}

export function removeTrial(link: string, { publicKey }: PathPeer): Step {
  return { do: 'remove-peers', link, publicKeys: [publicKey], changes: [] };
}
