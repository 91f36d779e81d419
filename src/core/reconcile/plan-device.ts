import type { PublicKey } from '../crypto/keys.ts';
import type { Secret } from '../crypto/secret.ts';
import { isRenewed } from '../health/peer-health.ts';
import type { Actual, ActualPeer } from '../host-state/actual.ts';
import { comparePrefixes, type Prefix } from '../net/cidr.ts';
import { formatEndpoint, type SocketEndpoint, sameEndpoint } from '../net/endpoint.ts';
import { isTrial } from '../paths/device-paths.ts';
import { isForProbes } from '../paths/probe-address.ts';
import { sameMembers } from '../util/same-data.ts';
import type { DesiredPeer } from '../wg-quick/parse.ts';
import { added, type Change, type ChangeValue, removed, updated } from './change.ts';
import type { Desired } from './desired.ts';
import type { DeviceChange, Step } from './step.ts';

/** Further inputs of a peer's plan. */
export interface PlanContext {
  /** Seconds since the epoch. */
  readonly now: number;
  /** Peers whose endpoint differs from the one that was last applied. */
  readonly moved: ReadonlySet<PublicKey>;
}

/** Sets key, port and mark if they differ, and adds or updates differing peers, and no others. */
export function planDevice({ link, config, keyPair }: Desired, { device }: Actual, moment: PlanContext): Step[] {
  const changes: Change[] = [];
  const keyDiffers = device?.publicKey !== keyPair.publicKey;
  if (keyDiffers && device !== null) {
    changes.push(differs(link, 'public key', device.publicKey, keyPair.publicKey));
  }
  const port = config.listenPort !== null && device?.listenPort !== config.listenPort ? config.listenPort : null;
  if (port !== null && device !== null) changes.push(differs(link, 'listen port', device.listenPort, port));
  const present = device?.peers ?? [];
  const known = new Map(present.map((peer) => [peer.publicKey, peer]));
  const { fwmark } = config;
  const marks = fwmark !== null && device?.fwmark !== fwmark;
  if (marks && device !== null) changes.push(differs(link, 'mark', device.fwmark, fwmark));
  const differing = config.peers.filter((peer) => !isSettled(peer, known.get(peer.publicKey)));
  const isNew = differing.some((peer) => !known.has(peer.publicKey));
  const predecessors = isNew ? findPredecessors(config.peers, present) : new Map();
  const peers: DeviceChange[] = [];
  for (const peer of gainersFirst(differing, present)) {
    const actual = known.get(peer.publicKey) ?? null;
    const planned = planPeer(actual ? peer : withPredecessorEndpoint(peer, predecessors), actual, moment);
    if (planned === null) continue;
    peers.push(planned.set);
    changes.push(planned.change);
  }
  if (!keyDiffers && port === null && !marks && peers.length === 0) return [];
  return [
    {
      do: 'configure-device',
      link,
      ...(keyDiffers && { privateKey: keyPair.privateKey }),
      ...(port !== null && { listenPort: port }),
      ...(marks && { fwmark }),
      peers,
      changes,
    },
  ];
}

/**
 * Runs once the policy rules are gone: with them, WireGuard's own packets need the mark, or they
 * loop into the tunnel.
 */
export function planUnmarking({ link, config }: Desired, { device }: Actual): Step[] {
  if (config.fwmark !== null || device === null || device.fwmark === null) return [];
  return [
    { do: 'configure-device', link, fwmark: null, peers: [], changes: [differs(link, 'mark', device.fwmark, null)] },
  ];
}

/** Removes the peers that are not in the network, or no longer reached over a path. */
export function planPeerRemoval(
  { link, config, triable }: Desired,
  { device }: Actual,
  { now }: Pick<PlanContext, 'now'>,
): Step[] {
  if (device === null) return [];
  const wanted = keysOf(config.peers);
  const surplus = device.peers.filter((peer) => !wanted.has(peer.publicKey) && !isTrial(peer, triable, now));
  if (surplus.length === 0) return [];
  return [
    {
      do: 'remove-peers',
      link,
      publicKeys: surplus.map((peer) => peer.publicKey),
      changes: surplus.map((peer) => {
        // Without any direct paths, nothing else in the table shows which peers had one.
        const isOff = triable.size === 0 && peer.allowedIps.some(isForProbes);
        const wasDirect = triable.has(peer.publicKey) || isOff;
        const reason = wasDirect ? 'reached through the relay' : 'not a peer of the network';
        return removed('peer', peer.publicKey, describe(peer), reason);
      }),
    },
  ];
}

/** True if the steps change only WireGuard's peers. */
export function changesOnlyPeers(steps: readonly Step[]): boolean {
  return steps.every((step) => {
    if (step.do === 'remove-peers' || step.do === 'renew-peers') return true;
    if (step.do !== 'configure-device') return false;
    return step.privateKey === undefined && step.listenPort === undefined && step.fwmark === undefined;
  });
}

function keysOf(peers: readonly DesiredPeer[]): ReadonlySet<PublicKey> {
  return new Set(peers.map((peer) => peer.publicKey));
}

/**
 * True if a peer needs no change, however old its handshake is. A learned endpoint does not count:
 * it is accepted only while the handshake is fresh.
 */
function isSettled(peer: DesiredPeer, actual: ActualPeer | undefined): boolean {
  return (
    actual !== undefined &&
    (peer.endpoint === null || sameEndpoint(peer.endpoint, actual.endpoint)) &&
    peer.keepalive === actual.keepalive &&
    sameMembers(peer.allowedIps, actual.allowedIps) &&
    sameSecret(peer.presharedKey, actual.presharedKey)
  );
}

/** True if no peer needs a change, however old its handshake is. */
export function arePeersSettled({ config }: Desired, { device }: Actual): boolean {
  const present = new Map(device?.peers.map((peer) => [peer.publicKey, peer]));
  return config.peers.every((peer) => isSettled(peer, present.get(peer.publicKey)));
}

/** Peers that gain a prefix come first: the prefix then moves directly, and always has a peer. */
function gainersFirst(peers: readonly DesiredPeer[], present: readonly ActualPeer[]): readonly DesiredPeer[] {
  if (peers.length < 2 || present.length === 0) return peers;
  const owners = new Map(present.flatMap((peer) => peer.allowedIps.map((ip) => [ip, peer.publicKey] as const)));
  const gains = (peer: DesiredPeer) =>
    peer.allowedIps.some((ip) => owners.has(ip) && owners.get(ip) !== peer.publicKey) ? 0 : 1;
  return peers.toSorted((one, other) => gains(one) - gains(other));
}

/** The endpoints of peers to be removed, by their allowed IPs. */
function findPredecessors(
  wanted: readonly DesiredPeer[],
  present: readonly ActualPeer[],
): ReadonlyMap<string, SocketEndpoint> {
  const stay = keysOf(wanted);
  const gone = present.filter((peer) => !stay.has(peer.publicKey) && peer.allowedIps.length > 0);
  return new Map(gone.flatMap(({ allowedIps, endpoint }) => (endpoint ? [[nameOf(allowedIps), endpoint]] : [])));
}

/** A peer with a new key and no endpoint keeps the old key's, so that either side can begin. */
function withPredecessorEndpoint(peer: DesiredPeer, predecessors: ReadonlyMap<string, SocketEndpoint>): DesiredPeer {
  const endpoint = peer.endpoint ?? predecessors.get(nameOf(peer.allowedIps)) ?? null;
  return endpoint === peer.endpoint ? peer : { ...peer, endpoint };
}

function nameOf(allowedIps: readonly Prefix[]): string {
  return allowedIps.toSorted(comparePrefixes).join();
}

function planPeer(
  peer: DesiredPeer,
  actual: ActualPeer | null,
  { now, moved }: PlanContext,
): { set: DeviceChange; change: Change } | null {
  if (actual === null) {
    return { set: peer, change: added('peer', peer.publicKey, describe(peer), 'a peer of the network is missing') };
  }
  const isElsewhere = peer.endpoint !== null && !sameEndpoint(peer.endpoint, actual.endpoint);
  // WireGuard learns the endpoint of a roaming peer from its packets. Setting the map's endpoint
  // again would revert that.
  // The peer has an endpoint in the map since, and the one of its former path is void.
  const isOfPath = actual.allowedIps.some(isForProbes) && !peer.allowedIps.some(isForProbes);
  const keepsLearned = isRenewed(actual.latestHandshake, now) && !moved.has(peer.publicKey) && !isOfPath;
  const differing = [
    ...(sameMembers(peer.allowedIps, actual.allowedIps) ? [] : ['allowed IPs']),
    ...(isElsewhere && !keepsLearned ? ['endpoint'] : []),
    ...(peer.keepalive === actual.keepalive ? [] : ['keepalive']),
    ...(sameSecret(peer.presharedKey, actual.presharedKey) ? [] : ['preshared key']),
  ];
  if (differing.length === 0) return null;
  const set = keepsLearned ? { ...peer, endpoint: null } : peer;
  const after = { ...peer, endpoint: set.endpoint ?? actual.endpoint };
  return {
    set,
    change: updated('peer', peer.publicKey, describe(actual), describe(after), `${differing.join(', ')} differ`),
  };
}

function sameSecret(one: Secret | null, other: Secret | null): boolean {
  return one?.reveal() === other?.reveal();
}

function describe(peer: Pick<DesiredPeer, 'endpoint' | 'allowedIps' | 'keepalive' | 'presharedKey'>): ChangeValue {
  const { endpoint, allowedIps, keepalive } = peer;
  return {
    endpoint: endpoint && formatEndpoint(endpoint),
    allowed_ips: allowedIps,
    keepalive,
    preshared_key: peer.presharedKey === null ? null : 'set',
  };
}

function differs(link: string, what: string, before: string | number | null, after: string | number | null): Change {
  return updated('interface', link, { [what]: before }, { [what]: after }, `the ${what} differs`);
}
