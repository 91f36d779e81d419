import type { Actual } from '../host-state/actual.ts';
import type { NetworkMap, PeerFailure } from '../map/model.ts';

/**
 * Returns the names of the connectors that never answered this host, and therefore are no standby.
 * A connector that this host reaches through another one counts as answering: no handshake with it
 * exists.
 *
 * @param failed connectors that do not answer; a handshake that the daemon forces clears the time
 *   of the last one
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
