import { join } from 'node:path';
import { makeIdentity } from '../../src/core/crypto/identity.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import type { State } from '../../src/store/state/state.ts';
import type { Folders } from '../../src/store/store.ts';
import { address, dialled, keyPair, network, options, peer, prefix } from '../core/samples.ts';

/** The state of a network that was joined, with something in every field. */
export const state: State = {
  interface: 'cpn0',
  createdAt: '2026-11-20T12:00:00.000Z',
  keyPair: keyPair(1),
  keySince: '2026-11-20T12:30:00.000Z',
  keySerial: 5,
  identity: makeIdentity(new Uint8Array(32).fill(7)),
  rotation: {
    phase: 'returning',
    keyPair: keyPair(3),
    proof: { serial: 6, signature: 'c2lnbmVk' },
    wayBack: { serial: 7, signature: 'c2lnbmVk' },
    witnesses: [{ publicKey: keyPair(2).publicKey, latestHandshake: 1_700_000_000 }],
    begunAt: '2026-11-20T13:00:00.000Z',
  },
  networkSecret: new Secret('bmV0d29yayBjYW5hcnk='),
  service: { url: 'https://cp.example.net', insecureHttp: false },
  features: ['enroll-idempotently', 'map-wait'],
  perhapsEnrolled: true,
  enrollment: { idempotencyKey: 'once', tokenHash: 'ab', name: 'edge-1', type: 'connector', endpoint: dialled(1) },
  membership: {
    peer: { id: 1, name: 'edge-1', address: address('10.77.0.1') },
    accessToken: new Secret('cpp_canary'),
    personalToken: null,
    map: network([
      peer(1, {
        type: 'connector',
        endpoint: dialled(1),
        servingSince: 1_800_000_000_000,
        priority: 3,
        expiresAt: 1_900_000_000_000,
      }),
      peer(2, { routes: [prefix('192.168.50.0/24')] }),
      peer(3, { type: 'admin_device', via: { connector: 1 } }),
    ]),
  },
  options: { ...options, allowRoutes: [prefix('192.168.1.0/24')] },
  enabled: true,
  resolved: { 'cp.example.net': [address('2001:db8::1')] },
  refused: null,
  failed: [],
  pathMtu: {
    mtu: 1312,
    peer: 2,
    underlay: '192.0.2.1, 192.0.2.0/24 eth0, 1500',
    measuredAt: '2026-11-20T14:00:00.000Z',
  },
  drained: false,
  openPorts: [{ by: 'firewalld', port: 51820, zone: 'public', permanent: true }],
  pins: [
    {
      peer: 2,
      address: address('10.77.0.2'),
      publicKey: keyPair(2).publicKey,
      identity: makeIdentity(new Uint8Array(32).fill(8)).key,
      serial: 4,
      claimed: {
        peer: 'two',
        address: address('10.77.0.9'),
        publicKey: keyPair(12).publicKey,
        identity: null,
        serial: 0,
      },
    },
  ],
  labels: [{ peer: 2, labels: ['web', 'old-web'] }],
  keptOutside: [{ address: address('192.168.50.53'), what: 'a resolver' }],
  tunnelledResolvers: [{ address: address('192.168.60.53'), route: prefix('192.168.60.0/24') }],
  receipt: [{ made: 'sysctl', key: 'net.ipv4.ip_forward', before: '0', after: '1' }],
};

/** The folders of a host that lives below `root`. */
export function foldersIn(root: string): Folders {
  return { config: join(root, 'etc'), state: join(root, 'state'), runtime: join(root, 'run') };
}
