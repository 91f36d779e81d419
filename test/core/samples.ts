import fc from 'fast-check';
import { makeKeyPair } from '../../src/core/crypto/keys.ts';
import { noForwarding } from '../../src/core/forward/ingress.ts';
import type { Actual, Underlay } from '../../src/core/host-state/actual.ts';
import type { NetworkMap, Peer } from '../../src/core/map/model.ts';
import type { Options } from '../../src/core/map/options.ts';
import { type Address, addressAt, type Prefix, parseAddress, parsePrefix, rangeOf } from '../../src/core/net/cidr.ts';
import { parseEndpoint } from '../../src/core/net/endpoint.ts';
import { computeDesired } from '../../src/core/reconcile/compute-desired.ts';
import { type Desired, type DesiredInputs, noNames } from '../../src/core/reconcile/desired.ts';
import type { RouteConstraints } from '../../src/core/routing/guard.ts';

/** A key pair that is always the same for one number. */
export const keyPair = (number: number) => makeKeyPair(new Uint8Array(32).fill(number).fill(number >> 8, 0, 8));

export const prefix = (text: string): Prefix => parsePrefix(text);
export const address = (text: string): Address => parseAddress(text);

/** A peer with a number of its own, behind NAT unless changed. */
export function peer(number: number, changes: Partial<Peer> = {}): Peer {
  return {
    id: number,
    name: `peer-${number}`,
    type: 'origin',
    publicKey: keyPair(number).publicKey,
    address: address(`10.77.0.${number}`),
    endpoint: null,
    routes: null,
    withdrawn: [],
    ...changes,
  };
}

export const dialled = (number: number) => parseEndpoint(`203.0.113.${number}:51820`);

export function network(peers: readonly Peer[], changes: Partial<NetworkMap> = {}): NetworkMap {
  return {
    id: 7,
    name: 'office',
    cidr: prefix('10.77.0.0/24'),
    routes: [prefix('192.168.50.0/24')],
    revision: '"1"',
    peers,
    ...changes,
  };
}

export const options: Options = {
  listenPort: null,
  mtu: null,
  acceptRoutes: true,
  masquerade: true,
  allowRoutes: [],
  probes: [],
  maps: [],
  hosts: false,
  pin: 'report',
  rotateEvery: null,
  openFirewall: false,
  dns: true,
  strictTunnel: false,
  allowIpv6Outside: false,
  localCandidates: true,
  directPaths: true,
};

/** A host on the internet with nothing special around it. */
export const underlay: Underlay = {
  addresses: [address('203.0.113.22')],
  connected: [{ prefix: prefix('203.0.113.0/24'), link: 'eth0' }],
  routed: [{ prefix: prefix('172.31.0.0/16'), link: 'eth1' }],
  gateways: [address('203.0.113.254')],
  uplinks: ['eth0'],
  links: ['eth0', 'eth1'].map((name) => ({ name, kind: 'other' })),
  resolvers: [address('198.51.100.53')],
  underlayMtu: 1500,
};

export const usualConstraints: RouteConstraints = {
  underlay,
  sshClients: [],
  api: [],
  tunnelPrefixes: {
    range: prefix('10.77.0.0/24'),
    own: address('10.77.0.3'),
    present: [],
    accepted: [],
    outside: [],
    tunnelled: [],
  },
  taken: [],
  newerLinks: [],
  advertised: [],
  allowed: [],
};

/** A host on which nothing of ours is. */
export const bare: Actual = {
  link: null,
  device: null,
  routes: [],
  onLink: [],
  rules: [],
  firewall: null,
  sysctls: {},
  hosts: null,
  underlay,
};

/** What `self` should be in the network of these peers. */
export function desireFor(
  self: Peer,
  map: NetworkMap,
  changes: Partial<DesiredInputs> = {},
  on: RouteConstraints = usualConstraints,
): Desired {
  const keys = keyPair(Number(self.id));
  return computeDesired(
    {
      link: 'cpn0',
      map,
      self,
      keyPair: keys,
      networkSecret: null,
      options,
      resolved: {},
      unreachable: [],
      failed: [],
      label: 'office',
      names: noNames,
      forwarding: noForwarding,
      labels: [],
      pathMtu: null,
      routeTable: null,
      strict: null,
      sessions: [],
      ...changes,
    },
    on,
  );
}

const advertised = ['192.168.50.0/24', '192.168.60.0/24', '172.20.0.0/14'];

/** Networks of 1 to 12 peers of every kind, with routes, some of them limited to some connectors. */
export const networks = networksWith(advertised);

/** Such networks, of which some advertise the default route too. */
export const networksWithExit = networksWith([...advertised, '0.0.0.0/0']);

function networksWith(routesToChooseFrom: readonly string[]): fc.Arbitrary<NetworkMap> {
  const kind = fc.record({
    type: fc.constantFrom('connector' as const, 'admin_device' as const, 'origin' as const),
    dialled: fc.boolean(),
    serves: fc.option(fc.subarray([...routesToChooseFrom.keys()])),
  });
  return fc
    .record({
      kinds: fc.array(kind, { minLength: 1, maxLength: 12 }),
      routes: fc.subarray([...routesToChooseFrom]),
    })
    .map(({ kinds, routes }) => {
      const prefixes = routes.map(prefix);
      const peers = kinds.map(({ type, dialled: isDialled, serves }, index) =>
        peer(index + 1, {
          type,
          endpoint: isDialled ? dialled(index + 1) : null,
          routes: serves?.flatMap((at) => prefixes[at] ?? []) ?? null,
        }),
      );
      return network(peers, { routes: prefixes });
    });
}

/** IPv4 prefixes of every length, canonical. */
export const prefixes: fc.Arbitrary<Prefix> = fc
  .tuple(fc.integer({ min: 0, max: 0xffffffff }), fc.integer({ min: 0, max: 32 }))
  .map(([number, length]) => {
    const host = 32n - BigInt(length);
    return `${addressAt((BigInt(number) >> host) << host)}/${length}` as Prefix;
  });

/** The first address of a prefix. */
export const firstOf = (range: Prefix): Address => addressAt(rangeOf(range).first);
