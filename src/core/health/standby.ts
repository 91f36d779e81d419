import type { Actual } from '../host-state/actual.ts';
import type { NetworkMap } from '../map/model.ts';

/**
 * True where a connector that would take over a route has never answered this host, so that it is no standby. A connector that this
 * host reaches through another one counts as one that answered: there is no handshake with it.
 *
 * @param name of the connector, which is unique in its network
 */
export function neverAnswered(
  name: string | null,
  { peers }: Pick<NetworkMap, 'peers'>,
  { device }: Pick<Actual, 'device'>,
): boolean {
  const peer = peers.find((each) => each.name === name);
  const seen = device?.peers.find(({ publicKey }) => publicKey === peer?.publicKey);
  return seen !== undefined && seen.latestHandshake === null;
}
