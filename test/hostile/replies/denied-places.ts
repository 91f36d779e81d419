import { family, named, type Row, refused, undone } from '../malicious-reply.ts';
import { sshClient } from '../program.ts';
import { ownPeer } from '../true-replies.ts';
import { enrolled, map } from '../wire.ts';

/** Routes that would cut off what a host needs outside the tunnel. */
const routes: readonly (readonly [string, readonly string[]])[] = [
  ['the default route', ['0.0.0.0/0', '::/0']],
  ['half of it', ['0.0.0.0/1', '128.0.0.0/1', '::/1', '8000::/1']],
  ['a quarter of it', ['0.0.0.0/2', '64.0.0.0/2', '128.0.0.0/2', '192.0.0.0/2']],
  ['this network', ['0.0.0.0/8', '0.0.0.0/32', '0.1.2.0/24', '::/128']],
  ['loopback', ['127.0.0.0/8', '127.0.0.1/32', '127.0.0.53/32', '126.0.0.0/7', '::1/128', '::/127']],
  ['link-local', ['169.254.0.0/16', '169.254.169.254/32', '169.254.0.0/17', '169.0.0.0/8', 'fe80::/10', 'fe80::1/128']],
  ['multicast', ['224.0.0.0/4', '224.0.0.251/32', '239.0.0.0/8', 'ff00::/8', 'ff02::1/128']],
  ['reserved and broadcast', ['240.0.0.0/4', '255.255.255.255/32', '255.0.0.0/8']],
  ['the control plane', ['203.0.113.1/32', '203.0.113.0/24']],
  ['the host itself', ['203.0.113.255/32', '192.168.20.5/32']],
  ['a peer’s endpoint', ['203.0.113.11/32', '203.0.113.8/29']],
  ['the gateway', ['198.18.0.1/32', '198.18.0.0/15', '198.0.0.0/8']],
  ['the resolver', ['198.51.100.53/32']],
  ['the LAN', ['192.168.20.0/24', '192.168.20.77/32', '192.168.20.128/25']],
  ['the SSH client', [`${sshClient}/32`]],
  ['what is routed elsewhere', ['172.31.0.0/16']],
  [
    'the network itself',
    ['10.77.0.0/24', '10.77.0.128/25', '10.77.0.5/32', '10.77.0.2/32', '10.77.0.1/32', '10.77.0.200/32'],
  ],
];

/** The groups, which the packet rules of each host name. */
const groups = ['224.0.0.0/4', 'ff00::/8'];

/** Those that the tools print in any case, because the host has them for another reason. */
const own = routes.find(([what]) => what === 'the network itself')?.[1] ?? [];

/** Where no peer can listen for others. */
const endpoints = [
  '127.0.0.1:51820',
  '127.0.0.53:53',
  '127.255.255.254:80',
  '0.0.0.0:51820',
  '0.1.2.3:51820',
  '169.254.169.254:80',
  '169.254.0.1:51820',
  '224.0.0.1:51820',
  '239.255.255.250:1900',
  '240.0.0.1:51820',
  '255.255.255.255:67',
  '[::]:51820',
  '[::1]:51820',
  '[fe80::1]:51820',
  '[ff02::1]:51820',
  '[febf::1]:51820',
  'localhost:51821',
  '10.77.0.2:51820',
  '10.77.0.5:51820',
  '10.77.0.5:1',
];

/** Ranges that hold this host's address and far too much else. */
const ranges = ['0.0.0.0/0', '0.0.0.0/1', '0.0.0.0/2', '0.0.0.0/3', '0.0.0.0/4'];

/** Addresses that cut off a host which has them, or that no host can have. */
const ownAddresses: readonly (readonly [string, string])[] = [
  ['127.0.0.1', '127.0.0.0/8'],
  ['127.0.0.53', '127.0.0.0/24'],
  ['0.0.0.0', '0.0.0.0/8'],
  ['0.0.0.5', '0.0.0.0/24'],
  ['169.254.169.254', '169.254.0.0/16'],
  ['224.0.0.1', '224.0.0.0/8'],
  ['240.0.0.1', '240.0.0.0/8'],
  ['255.255.255.255', '255.255.255.0/24'],
  ['203.0.113.1', '203.0.113.0/24'],
  ['198.18.0.1', '198.18.0.0/24'],
  ['198.51.100.53', '198.51.100.0/24'],
  [sshClient, '198.51.101.0/24'],
];

export const deniedRoutes = family('a route to', [
  ...routes.flatMap(([what, prefixes]) =>
    prefixes.map(
      (route): Row => ({
        name: `${what}: ${route}`,
        to: 'map',
        outcome: {
          nowhere: [...own, ...groups].includes(route)
            ? []
            : [` ${route}`, `,${route}`, `dst=${route.replace(/\/(32|128)$/, '')} `],
          route,
        },
        make: map({ routes: ['192.168.50.0/24', route] }),
      }),
    ),
  ),
  ...ranges.map(
    (private_cidr): Row => ({
      name: `everything, as the network’s range: ${private_cidr}`,
      to: 'map',
      outcome: refused,
      make: map({ private_cidr }),
    }),
  ),
]);

export const deniedEndpoints = family(
  'a peer that listens at',
  endpoints.map(
    (endpoint): Row => ({
      name: named(endpoint),
      to: 'map',
      outcome: {
        nowhere: [
          `endpoint ${endpoint}`,
          `Endpoint = ${endpoint}`,
          '127.0.0.1:51821',
          '127.0.1.1:51821',
          '[::1]:51821',
        ],
      },
      make: map({}, { endpoint }),
    }),
  ),
);

export const deniedAddresses = family('this host’s own address is', [
  ...ownAddresses.map(
    ([address, private_cidr]): Row => ({
      name: `${address} in an enrolment`,
      to: 'enrolment',
      outcome: undone,
      make: (request) =>
        enrolled({}, { private_cidr, peers: [{ ...ownPeer(request), address }] }, { address })(request),
    }),
  ),
  ...[...ownAddresses, ['10.77.0.200', '10.77.0.0/24'] as const].map(
    ([address, private_cidr]): Row => ({
      name: `${address} in a map`,
      to: 'map',
      outcome: refused,
      make: (request) =>
        map({
          private_cidr,
          peers: [
            { ...ownPeer(request), address },
            {
              id: 99,
              name: 'x',
              peer_type: 'origin',
              public_key: 'HIgo9xNzJMWLKASShiTqIybxZ0U3wGLiUeJ1PKf8ykw=',
              address: private_cidr.replace(/\.\d+\/\d+$/, '.9'),
            },
          ],
        })(request),
    }),
  ),
]);
