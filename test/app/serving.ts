import type { PeerType } from '../../src/contract/peer.ts';
import type { NetworkMap } from '../../src/core/map/model.ts';
import type { Prefix } from '../../src/core/net/cidr.ts';
import type { Joined } from '../../src/store/state/state.ts';
import { dialled, network, peer, prefix } from '../core/samples.ts';
import { joinedTo } from './joined-state.ts';
import { SimulatedHost } from './simulated-host.ts';
import { answerWith } from './simulated-service.ts';

export const range = prefix('10.77.0.0/24');
export const one = prefix('192.168.50.0/24');
export const two = prefix('192.168.60.0/24');

/** A network of this host, number 1, and of number 2; the first serves both routes but for these. */
export function mapWithout(withdrawn: readonly Prefix[], type: PeerType = 'connector', revision = '"1"'): NetworkMap {
  const routes = [two, one];
  const served = routes.filter((route) => !withdrawn.includes(route));
  const limit = withdrawn.length === 0 ? null : served;
  const self = peer(1, { type, endpoint: dialled(1), routes: limit, withdrawn });
  return network([self, peer(2)], { routes, revision });
}

/** The state of this host in the network of {@link mapWithout}. */
export function serving(changes: Partial<Joined> = {}, type: PeerType = 'connector'): Joined {
  const state = joinedTo(mapWithout([], type), changes);
  return { ...state, enrollment: { ...state.enrollment, type } };
}

/** A host whose control plane stores the withdrawn prefixes. */
export async function startServing(state: Joined): Promise<SimulatedHost> {
  const simulated = await SimulatedHost.with(state);
  simulated.service.mapReplies = [
    (revision, wait) => {
      const withdrawn = simulated.service.withdrawn.at(-1) ?? [];
      return answerWith(mapWithout(withdrawn, 'connector', `"${simulated.service.withdrawn.length + 1}"`))(
        revision,
        wait,
      );
    },
  ];
  return simulated;
}
