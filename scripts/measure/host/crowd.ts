import { randomBytes } from 'node:crypto';
import { makeKeyPair, parsePublicKey } from '../../../src/core/crypto/keys.ts';
import type { NetworkMap, Peer } from '../../../src/core/map/model.ts';
import { defaultOptions } from '../../../src/core/map/options.ts';
import { parseAddress, parsePrefix } from '../../../src/core/net/cidr.ts';
import { parseEndpoint } from '../../../src/core/net/endpoint.ts';
import { fileStore } from '../../../src/store/file-store.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import type { Folders } from '../../../src/store/store.ts';

const range = parsePrefix('10.64.0.0/16');

/**
 * A host that joined a network of so many connectors, each of which serves a route of its own. It
 * has the network's first address.
 */
export function crowdOf(peers: number): Joined {
  const keyPair = makeKeyPair(randomBytes(32));
  const own: Peer = {
    ...{ id: 1, name: 'self', type: 'origin', publicKey: keyPair.publicKey, address: parseAddress('10.64.0.1') },
    ...{ endpoint: parseEndpoint('198.18.0.1:51820'), routes: [], withdrawn: [] },
  };
  const others = Array.from({ length: peers }, (_, index) => connector(index + 2));
  const map: NetworkMap = {
    ...{ id: 1, name: 'crowd', cidr: range, revision: '"1"' },
    routes: others.flatMap(({ routes }) => routes ?? []),
    peers: [own, ...others],
  };
  const now = new Date().toISOString();
  return {
    ...{ interface: 'cpn0', createdAt: now, keyPair, keySince: now, keySerial: 0, identity: null, rotation: null },
    ...{
      networkSecret: null,
      service: { url: 'http://127.0.0.1:1', insecureHttp: false },
      features: null,
      perhapsEnrolled: false,
      enabled: true,
      resolved: {},
    },
    enrollment: { idempotencyKey: 'once', tokenHash: '00', name: own.name, type: own.type, endpoint: own.endpoint },
    membership: {
      peer: { id: own.id, name: own.name, address: own.address },
      ...{ accessToken: null, personalToken: null, map },
    },
    options: { ...defaultOptions, mtu: 1420 },
    ...{
      refused: null,
      failed: [],
      pathMtu: null,
      drained: false,
      pins: [],
      labels: [],
      keptOutside: [],
      tunnelledResolvers: [],
      receipt: [],
      openPorts: [],
    },
  };
}

/** Puts the state where a host reads it. */
export async function settleCrowd(folders: Folders, state: Joined): Promise<void> {
  const store = fileStore(folders);
  await store.lock(() => store.write(state));
}

function connector(id: number): Peer {
  const [high, low] = [id >> 8, id & 255];
  return {
    ...{ id, name: `edge-${id}`, type: 'connector', publicKey: parsePublicKey(randomBytes(32).toString('base64')) },
    address: parseAddress(`10.64.${high}.${low}`),
    endpoint: parseEndpoint(`198.18.${high}.${low}:51820`),
    routes: [parsePrefix(`10.${128 + (high >> 4)}.${((high & 15) << 4) + (low >> 4)}.${(low & 15) << 4}/28`)],
    withdrawn: [],
  };
}
