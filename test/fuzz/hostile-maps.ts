import fc from 'fast-check';
import { decodeEnrollment } from '../../src/api/decode/enrollment.ts';
import { makeKeyPair } from '../../src/core/crypto/keys.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { BadReply } from '../../src/core/errors/index.ts';
import { noForwarding } from '../../src/core/forward/ingress.ts';
import { chooseLabels } from '../../src/core/names/hosts-label.ts';
import { computeDesired } from '../../src/core/reconcile/compute-desired.ts';
import { type Desired, type DesiredInputs, noNames } from '../../src/core/reconcile/desired.ts';
import type { TunnelConfig } from '../../src/core/wg-quick/parse.ts';
import { enrollmentRequest, keyOf, source } from '../api/samples.ts';
import { address, options, prefix, usualConstraints } from '../core/samples.ts';
import { givenTexts } from './config-texts.ts';
import { mutatedJson } from './hostile-json.ts';
import { hostile } from './hostile-texts.ts';
import { unlessRefused } from './time-bound.ts';

const own = makeKeyPair(new Uint8Array(32).fill(77));

/** Mostly what belongs there: one hostile value in the wrong place refuses a whole map. */
const rarely = (usual: fc.Arbitrary<unknown>, weight = 40): fc.Arbitrary<unknown> =>
  fc.oneof({ weight, arbitrary: usual }, { weight: 1, arbitrary: hostile });

const routes = fc.constantFrom(
  '192.168.50.0/24',
  '172.20.1.7/14',
  '0.0.0.0/0',
  '128.0.0.0/1',
  '127.0.0.0/8',
  'fd00::/8',
  '203.0.113.9/32',
);
const endpoints = fc.constantFrom(
  ...[
    null,
    '203.0.113.22:51820',
    '[2001:db8::1]:7',
    'edge.example.net:51820',
    '127.0.0.1:53',
    '169.254.169.254:80',
    'x_y:1',
  ],
);
/** Ids of words are only printed; they are nearly as free as names. */
const ids = fc.oneof(fc.nat(50), fc.constantFrom('PostUp=id', '[Interface]', '$(id)', '#', 'a'), rarely(fc.nat(50), 5));

const peerBodies = (number: number) =>
  fc.record(
    {
      id: ids.map((id) => (typeof id === 'number' ? id * 100 + number : id)),
      name: hostile,
      peer_type: rarely(fc.constantFrom('connector', 'connector', 'origin', 'admin_device')),
      public_key: rarely(number === 0 ? fc.constant(own.publicKey) : fc.constant(keyOf(number))),
      address: rarely(fc.constantFrom(`10.77.0.${number + 1}`, `10.77.0.${number + 1}/32`)),
      endpoint: rarely(endpoints),
      routes: rarely(fc.subarray(['192.168.50.0/24', '0.0.0.0/0'])),
      withdrawn: rarely(fc.subarray(['192.168.50.0/24', '10.77.0.0/16'])),
    },
    { requiredKeys: ['public_key', 'address'] },
  );

const maps = fc.integer({ min: 1, max: 6 }).chain((count) =>
  fc.record({
    network: fc.record(
      {
        id: rarely(fc.nat()),
        name: rarely(hostile.map((name) => name.slice(0, 100))),
        description: hostile,
        private_cidr: rarely(fc.constantFrom('10.77.0.0/16', '10.77.0.0/24')),
        routes: rarely(fc.uniqueArray(rarely(routes), { maxLength: 5 })),
        revision: rarely(fc.nat()),
        peers: fc.tuple(...Array.from({ length: count }, (_, number) => peerBodies(number))),
      },
      { requiredKeys: ['id', 'name', 'private_cidr', 'peers'] },
    ),
    peer: fc.constant({ address: '10.77.0.1' }),
  }),
);

/** Networks whose service gives a ready text in their place. */
const given = fc.record({ config: givenTexts, network: fc.record({ id: fc.nat(), name: hostile }) });

const bodies = fc.oneof(
  { weight: 6, arbitrary: maps },
  { weight: 2, arbitrary: mutatedJson(maps, ['name', 'endpoint', 'routes', 'config', 'peers']) },
  { weight: 3, arbitrary: given },
);

const choices = fc.record({
  listenPort: fc.option(fc.constantFrom(1, 51820)),
  mtu: fc.option(fc.constantFrom(1280, 9000)),
  acceptRoutes: fc.boolean(),
  masquerade: fc.boolean(),
  allowRoutes: fc.subarray(['0.0.0.0/0', '192.168.50.0/24', '172.20.0.0/14']).map((all) => all.map(prefix)),
  networkSecret: fc.constantFrom(null, new Secret(keyOf('network secret'))),
  type: fc.constantFrom('connector' as const, 'admin_device' as const, 'origin' as const),
});

/** The desired state of a host after the answer of a malicious control plane; null where it refuses the answer. */
export const hostileDesires: fc.Arbitrary<Desired | null> = fc
  .tuple(bodies, choices)
  .map(([body, { type, networkSecret, ...chosen }]) => {
    const asked = enrollmentRequest({ publicKey: own.publicKey, type });
    const enrolled = unlessRefused([BadReply], () => decodeEnrollment(body, source, asked));
    const self = enrolled?.map.peers.find((peer) => peer.publicKey === own.publicKey);
    if (!enrolled || !self) return null;
    const { map } = enrolled;
    const [label = ''] = chooseLabels([{ id: map.id ?? 'network', name: map.name }], 'network');
    const intent: DesiredInputs = {
      ...{
        link: 'cpn0',
        map,
        self,
        keyPair: own,
        label,
        labels: [],
        names: {
          ...noNames,
          entries: map.routeDns ?? [],
          resolver: { program: 'systemd-resolved', own: null, others: [], isServing: true },
        },
        unreachable: [],
        failed: [],
        pathMtu: null,
        routeTable: null,
        strict: null,
        sessions: [],
        networkSecret,
        forwarding: noForwarding,
      },
      options: { ...options, ...chosen },
      resolved: { 'edge.example.net': [address('198.51.100.7')] },
    };
    return computeDesired(intent, { ...usualConstraints, allowed: chosen.allowRoutes });
  });

/** The configurations among them. */
export const hostileConfigs: fc.Arbitrary<TunnelConfig | null> = hostileDesires.map(
  (desired) => desired?.config ?? null,
);
