import type { Actual, ActualPeer } from '../host-state/actual.ts';
import type { NetworkMap, PeerFailure } from '../map/model.ts';
import { hostPrefix } from '../net/cidr.ts';

/** Bytes of a handshake initiation (struct message_handshake_initiation, wireguard/messages.h). */
const initiationSize = 148;
/** Initiations in a minute: one every 5 s (REKEY_TIMEOUT in the same file). */
const initiationsPerMinute = 12;

/**
 * True if handshakes were sent for a minute and none completed since the peer was added. Without an
 * answer, WireGuard sends only initiations at a fixed rate, so their bytes measure the time.
 * Initiations that never left the host do not count.
 */
export function isUnansweredYet({
  latestHandshake,
  endpoint,
  txBytes,
}: Pick<ActualPeer, 'latestHandshake' | 'endpoint' | 'txBytes'>): boolean {
  return latestHandshake === null && endpoint !== null && txBytes >= initiationsPerMinute * initiationSize;
}

/**
 * Returns the connectors that serve this host and have never answered it. Without keepalives, only
 * the daemon can distinguish a silent connector from one that is not in use.
 *
 * @param wanted the peers with the prefixes that each of them should carry
 * @param silent the daemon's records: bytes received when it detected that the peer does not answer
 */
export function findUnanswered(
  { peers }: Pick<NetworkMap, 'peers'>,
  wanted: readonly Pick<ActualPeer, 'publicKey' | 'allowedIps'>[],
  present: readonly ActualPeer[],
  silent: Readonly<Record<string, number>>,
): ReadonlySet<string> {
  const carried = new Map(wanted.map(({ publicKey, allowedIps }) => [publicKey, allowedIps]));
  const addresses = new Map(
    peers.flatMap(({ type, publicKey, address }) => (type === 'connector' ? [[publicKey, address] as const] : [])),
  );
  const found = present.filter((peer) => {
    const address = addresses.get(peer.publicKey);
    if (address === undefined || !isUnansweredYet(peer)) return false;
    const isServing = carried.get(peer.publicKey)?.some((prefix) => prefix !== hostPrefix(address)) ?? false;
    return isServing && (peer.keepalive !== null || silent[peer.publicKey] === peer.rxBytes);
  });
  return new Set(found.map(({ publicKey }) => publicKey));
}

/**
 * Returns the names of the connectors that never answered this host, and so are no standby. A
 * connector that is reached through another counts as answering: no handshake with it exists.
 *
 * @param failed connectors that do not answer; a forced handshake clears the time of the last
 */
export function findNeverAnswered(
  { peers }: Pick<NetworkMap, 'peers'>,
  { device }: Pick<Actual, 'device'>,
  failed: readonly PeerFailure[],
): ReadonlySet<string> {
  const handshakes = new Map(device?.peers.map(({ publicKey, latestHandshake }) => [publicKey, latestHandshake]));
  const heard = new Set(failed.filter((each) => each.back || each.heard !== undefined).map(({ peer }) => peer));
  const silent = peers.filter(
    ({ id, type, publicKey }) => type === 'connector' && handshakes.get(publicKey) === null && !heard.has(id),
  );
  return new Set(silent.map(({ name }) => name));
}
