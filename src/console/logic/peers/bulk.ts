import type { Network } from '../../../contract/network.ts';
import type { Peer } from '../../../contract/peer.ts';
import { findLosses } from '../../../core/export/find-losses.ts';

export type BulkAction = 'suspend' | 'resume' | 'expire' | 'remove';

const mostNames = 12;

/** The names of peers, for a sentence; of many the first ones and how many more there are. */
export function namePeers(peers: readonly Pick<Peer, 'name'>[]): string {
  const rest = peers.length - mostNames;
  const names = peers.slice(0, mostNames).map(({ name }) => name);
  return rest > 0 ? `${names.join(', ')} and ${rest} more` : names.join(', ');
}

export const countPeers = (count: number) => (count === 1 ? '1 peer' : `${count} peers`);

/** A peer whose change failed; it may have been carried out if the outcome is unknown. */
export interface Failure {
  readonly name: string;
  readonly message: string;
  readonly isUnknown: boolean;
}

/** What is left after some of the changes failed; null where none did. `done` is what the peers were to be, such as `suspended`. */
export function describeFailures(failures: readonly Failure[], done: string): string | null {
  const unknown = failures.filter(({ isUnknown }) => isUnknown);
  const refused = failures.filter(({ isUnknown }) => !isUnknown);
  const reasons = (some: readonly Failure[]) => some.slice(0, 3).map(({ name, message }) => `${name}: ${message}`);
  const sentences = [
    ...(refused.length > 0 ? [`${countPeers(refused.length)} stayed as before.`, ...reasons(refused)] : []),
    ...(unknown.length > 0
      ? [`${countPeers(unknown.length)} may be ${done} or as before: try again.`, ...reasons(unknown)]
      : []),
  ];
  return sentences.length > 0 ? sentences.join(' ') : null;
}

/** What stops working once these peers are out of the network: routes without a connector, and devices whose profile dials one of them. */
export function describeLosses(network: Pick<Network, 'peers' | 'routes'>, leaving: readonly Peer[]): string[] {
  const { routes: lost, devices } = findLosses(network, leaving);
  const [has, these] = lost.length === 1 ? ['has', 'this route'] : ['have', 'these routes'];
  const [dials, reaches] = devices.length === 1 ? ['has', 'reaches'] : ['have', 'reach'];
  return [
    ...(lost.length > 0 ? [`${lost.join(', ')} ${has} no connector then: hosts do not reach ${these}.`] : []),
    ...(devices.length > 0 ? [`${namePeers(devices)} ${dials} no other connector and ${reaches} nothing then.`] : []),
  ];
}
