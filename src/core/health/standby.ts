import type { Actual } from '../host-state/actual.ts';
import type { NetworkMap, PeerFailure } from '../map/model.ts';

/**
 * The names of the connectors that have never answered this host, so that they are no standby. A connector that this host reaches
 * through another one counts as one that answered: there is no handshake with it.
 *
 * @param failed connectors that do not answer; a handshake that the daemon forces takes the time of the last one away
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
