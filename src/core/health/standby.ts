import type { Actual } from '../host-state/actual.ts';
import type { NetworkMap, PeerFailure } from '../map/model.ts';

/**
 * True where a connector that would take over a route has never answered this host, so that it is no standby. A connector that this
 * host reaches through another one counts as one that answered: there is no handshake with it.
 *
 * @param name of the connector, which is unique in its network
 * @param failed connectors that do not answer; a handshake that the daemon forces takes the time of the last one away
 */
export function neverAnswered(
  name: string | null,
  { peers }: Pick<NetworkMap, 'peers'>,
  { device }: Pick<Actual, 'device'>,
  failed: readonly PeerFailure[],
): boolean {
  const peer = peers.find((each) => each.name === name);
  const seen = device?.peers.find(({ publicKey }) => publicKey === peer?.publicKey);
  const failure = failed.find((each) => each.peer === peer?.id);
  const wasHeard = failure?.back === true || failure?.heard !== undefined;
  return seen !== undefined && seen.latestHandshake === null && !wasHeard;
}
