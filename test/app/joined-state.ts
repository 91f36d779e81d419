import type { OptionChanges } from '../../src/app/networks/option-changes.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { features } from '../../src/core/map/features.ts';
import type { NetworkMap, Peer } from '../../src/core/map/model.ts';
import type { Joined } from '../../src/store/state/state.ts';
import { keyPair, network, options, peer } from '../core/samples.ts';

/** This host, number 1, as its network lists it; it has an endpoint. */
export const self: Peer = peer(1);

/** The state of this host, joined to the network of `map`. */
export function joinedTo(map: NetworkMap, changes: Partial<Joined> = {}): Joined {
  return {
    interface: 'cpn0',
    createdAt: '2026-01-01T00:00:00.000Z',
    keyPair: keyPair(1),
    keySince: '2026-01-01T00:00:00.000Z',
    keySerial: 0,
    identity: null,
    rotation: null,
    networkSecret: null,
    service: { url: 'https://203.0.113.99', insecureHttp: false },
    features,
    perhapsEnrolled: false,
    enrollment: { idempotencyKey: 'x', tokenHash: 'y', name: 'peer-1', type: 'origin', endpoint: null },
    membership: {
      peer: { id: 1, name: 'peer-1', address: self.address },
      accessToken: new Secret('cpp_x'),
      personalToken: null,
      map,
    },
    options,
    enabled: true,
    resolved: {},
    refused: null,
    failed: [],
    pathMtu: null,
    drained: false,
    openPorts: [],
    pins: [],
    labels: [],
    keptOutside: [],
    tunnelledResolvers: [],
    receipt: [],
    ...changes,
  };
}

export const nonceOfMaps = 'q83vEjRWeJq8';

/** A map with these peers and this host, at a revision. */
export function mapAt(revision: string | null, peers: readonly Peer[], changes: Partial<NetworkMap> = {}): NetworkMap {
  return network([self, ...peers], { revision, nonce: nonceOfMaps, ...changes });
}

/** A change of no option. */
export const noOptionChanges: OptionChanges = {
  options: {},
  allowRoutes: [],
  refuseRoutes: [],
  addProbes: [],
  dropProbes: [],
  addMaps: [],
  dropMaps: [],
};
