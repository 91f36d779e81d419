import { expect, it } from 'vitest';
import { peerTypes } from '../../../src/core/map/model.ts';
import { defaultOptions } from '../../../src/core/map/options.ts';
import { rotationPhases, type State } from '../../../src/store/state/state.ts';
import { formatState, parseState } from '../../../src/store/state/state-file.ts';
import { address, keyPair, peer, prefix } from '../../core/samples.ts';
import { state } from '../samples.ts';

const { membership, rotation } = state as State & { membership: NonNullable<State['membership']> };
const inMap = (changes: Partial<typeof membership.map>): Partial<State> => ({
  membership: { ...membership, map: { ...membership.map, ...changes } },
});
const skipped = { id: 'x', name: 'bad', publicKey: 'none', address: '10.77.0.300', reason: 'its address is none' };

/** What a state may have, and the sample of the other tests has not. */
const fields: readonly [string, Partial<State>][] = [
  ['when the map was confirmed, to a part of a millisecond', { confirmed: 1_700_000_000_000.25 }],
  ...[true, false].map((resumes): [string, Partial<State>] => [
    `a deletion that ${resumes ? 'may be undone' : 'is final'}`,
    { enabled: false, deletion: { at: '2026-11-20T15:00:00.000Z', resumes } },
  ]),
  ['that it is drained', { drained: true }],
  ['that no enrolment is unknown', { perhapsEnrolled: false }],
  ['the revision of a refused map', { refused: '"7"' }],
  [
    'failed peers',
    {
      failed: [
        { peer: 2, back: true },
        { peer: 'three', back: false, heard: 12.5 },
      ],
    },
  ],
  ['the maximum age and the nonce of a map', inMap({ maxAge: 3600, nonce: 'q83vEjRWeJq8' })],
  ['a map that spreads hosts', inMap({ spread: true, peers: [peer(2, { masquerades: true })] })],
  ['the relay of a map', inMap({ relay: 2, peers: [peer(2, { followsRelay: true })] })],
  ['a map that cannot be read again', inMap({ id: null, revision: null })],
  ['a map of another service', inMap({ id: 'net-7', peers: [peer(2, { id: 'two' })] })],
  [
    'skipped peers',
    inMap({ skipped: [skipped, { id: null, name: null, publicKey: null, address: null, reason: 'it is no object' }] }),
  ],
  ['the withdrawn routes of a peer', inMap({ peers: [peer(2, { withdrawn: [prefix('192.168.50.0/24')] })] })],
  ['settings of a wg-quick text', { membership: { ...membership, text: { dns: ['10.0.0.53'], remarks: ['PostUp'] } } }],
  ...peerTypes.map((type): [string, Partial<State>] => [
    `the kind ${type}`,
    { enrollment: { ...state.enrollment, type, endpoint: null } },
  ]),
  ...rotationPhases.map((phase): [string, Partial<State>] => [
    `the rotation phase ${phase}`,
    { rotation: rotation && { ...rotation, phase, proof: null, wayBack: null } },
  ]),
  [
    'the peer of a session on the old key',
    {
      rotation: rotation && {
        ...rotation,
        witnesses: [{ publicKey: keyPair(2).publicKey, latestHandshake: 1, peer: 'two' }],
      },
    },
  ],
  ['no rotation, identity or network secret', { rotation: null, identity: null, networkSecret: null }],
  ['features that were never read', { features: null }],
  [
    'a loopback service and its user',
    { service: { url: 'http://127.0.0.1:8080', insecureHttp: true, listener: 1000 } },
  ],
  ['addresses of both families for a name', { resolved: { x: [address('192.0.2.1'), address('2001:db8::1')] } }],
  [
    'ports of both firewall programs',
    {
      openPorts: [
        { by: 'ufw', port: 51_820, zone: null, permanent: true },
        { by: 'firewalld', port: 51_821, zone: 'public', permanent: false },
      ],
    },
  ],
  [
    'each kind of resource',
    {
      receipt: [
        { made: 'folder', path: '/run/cpn' },
        { made: 'interface', link: 'cpn0' },
        { made: 'firewall', link: 'cpn0' },
        { made: 'rules', link: 'cpn0' },
        { made: 'rules', link: 'cpn0', table: '51820' },
        { made: 'hosts', link: 'cpn0' },
        { made: 'sysctl', key: 'net.ipv4.ip_forward', before: '0', after: '1' },
        {
          ...({ made: 'sysctl', key: 'net.ipv4.conf.cpn0.forwarding', before: '0', after: '1' } as const),
          opening: { link: 'cpn0', all: '0', links: ['lo', 'eth0'] },
        },
      ],
    },
  ],
  [
    'each option',
    {
      options: {
        ...({ listenPort: 51_820, mtu: 1300, acceptRoutes: false, masquerade: false, hosts: true } as const),
        ...({ pin: 'strict', rotateEvery: 86_400, openFirewall: true, dns: false, strictTunnel: true } as const),
        ...{
          localCandidates: false,
          directPaths: false,
          allowIpv6Outside: true,
          allowRoutes: [prefix('192.168.1.0/24'), prefix('2001:db8::/32')],
        },
        probes: [
          { host: '192.168.50.1', port: null },
          { host: 'nas.example', port: 443 },
          { host: '2001:db8::5', port: 22 },
        ],
        maps: [{ route: prefix('10.201.1.0/24'), local: prefix('192.168.1.0/24') }],
      },
    },
  ],
];

it.each(fields)('has %s', (_, changes) => {
  const written = { ...state, ...changes };
  const read = parseState(formatState(written));
  expect(read).toEqual(written);
  expect(formatState(read)).toBe(formatState(written));
});

/** What files of earlier versions lack, and what is read instead. */
const later: readonly [keyof State, unknown][] = [
  ['keySince', state.createdAt],
  ['keySerial', 0],
  ['identity', null],
  ['rotation', null],
  ['networkSecret', null],
  ['features', null],
  ['perhapsEnrolled', false],
  ['refused', null],
  ['failed', []],
  ['pathMtu', null],
  ['drained', false],
  ['pins', []],
  ['labels', []],
  ['keptOutside', []],
  ['tunnelledResolvers', []],
  ['openPorts', []],
];

it.each(later)('of a version without %s is read', (field, instead) => {
  const { [field]: removed, ...older } = JSON.parse(formatState(state));
  expect(removed).toBeDefined();
  expect(parseState(JSON.stringify(older))).toEqual({ ...state, [field]: instead });
});

it('of a version without an option has its default', () => {
  const text = JSON.parse(formatState({ ...state, options: { ...state.options, hosts: true, openFirewall: true } }));
  const { listenPort, mtu, acceptRoutes, masquerade, allowRoutes } = text.options;
  const first = { listenPort, mtu, acceptRoutes, masquerade, allowRoutes };
  const read = parseState(JSON.stringify({ ...text, options: first }));
  expect(read.options).toEqual({ ...defaultOptions, ...first });
  const { claimed: _, ...pin } = text.pins[0];
  expect(parseState(JSON.stringify({ ...text, pins: [pin] })).pins).toMatchObject([{ peer: 2, claimed: null }]);
});
