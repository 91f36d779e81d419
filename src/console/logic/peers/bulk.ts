import type { Network } from '../../../contract/network.ts';
import type { Peer } from '../../../contract/peer.ts';
import { findLosses } from '../../../core/export/find-losses.ts';

export type BulkAction = 'suspend' | 'resume' | 'expire' | 'remove';

const mostNames = 12;

/** The names of peers for a sentence. Of many, the first ones and the number of the rest. */
export function namePeers(peers: readonly Pick<Peer, 'name'>[]): string {
  const rest = peers.length - mostNames;
  const names = peers.slice(0, mostNames).map(({ name }) => name);
  return rest > 0 ? `${names.join(', ')} and ${rest} more` : names.join(', ');
}

export const countPeers = (count: number) => (count === 1 ? '1 peer' : `${count} peers`);

/** A peer whose change failed. With an unknown outcome, it may have been executed. */
export interface Failure {
  readonly name: string;
  readonly message: string;
  readonly isUnknown: boolean;
}

/** True if this status means that the action is already done: the peer to remove is gone. */
export const isAlreadyDone = (action: BulkAction, status: number) => action === 'remove' && status === 404;

/** Describes failed changes; null without any. `done` is the wanted state, such as `suspended`. */
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

/** The consequences of removing peers: routes without a connector, and devices without one. */
export function describeLosses(network: Pick<Network, 'peers' | 'routes'>, leaving: readonly Peer[]): string[] {
  const { routes: lost, devices } = findLosses(network, leaving);
  const [has, these] = lost.length === 1 ? ['has', 'this route'] : ['have', 'these routes'];
  const [dials, reaches] = devices.length === 1 ? ['has', 'reaches'] : ['have', 'reach'];
  return [
    ...(lost.length > 0 ? [`${lost.join(', ')} ${has} no connector then: hosts do not reach ${these}.`] : []),
    ...(devices.length > 0 ? [`${namePeers(devices)} ${dials} no other connector and ${reaches} nothing then.`] : []),
  ];
}
