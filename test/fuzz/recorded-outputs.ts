/** Recorded outputs of tools and files: the seeds of generated ones. */
import { join } from 'node:path';

/** By iproute2 6.1.0, shortened. */
export const links: unknown = [
  {
    ifindex: 1,
    ifname: 'lo',
    flags: ['LOOPBACK', 'UP'],
    mtu: 65536,
    addr_info: [{ local: '127.0.0.1', prefixlen: 8 }],
  },
  {
    ...{ ifindex: 2, ifname: 'eth0', flags: ['BROADCAST', 'UP'], mtu: 1500, ifalias: 'x' },
    addr_info: [
      { family: 'inet', local: '203.0.113.22', prefixlen: 24 },
      { family: 'inet6', local: 'fe80::1', prefixlen: 64 },
      { family: 'inet', local: '10.0.0.1', address: '10.0.0.9', prefixlen: 32 },
    ],
  },
  {
    ifindex: 3,
    ifname: 'cpn0',
    flags: [],
    mtu: 1420,
    ifalias: 'cpn:7',
    addr_info: [{ local: '10.77.0.5', prefixlen: 24 }],
  },
];

export const routes4: unknown = [
  {
    type: '1',
    dst: 'default',
    gateway: '203.0.113.254',
    dev: 'eth0',
    table: '254',
    protocol: '16',
    metrics: [{ mtu: 1400 }],
  },
  { type: '1', dst: '10.99.0.0/16', dev: 'cpn0', table: '254', protocol: '157', flags: [] },
  {
    dst: 'default',
    nexthops: [
      { gateway: '192.0.2.1', dev: 'a' },
      { via: { family: '10', host: 'fe80::1' }, dev: 'b' },
    ],
  },
];

export const routes6: unknown = [
  { type: '1', dst: 'fd00:1::/64', dev: 'cpn0', table: '254', protocol: '2', metric: 256, pref: 'medium' },
  { type: '1', dst: 'default', gateway: 'fe80::1', dev: 'eth0' },
];

export const rules: unknown = [
  { priority: 0, src: 'all', table: '255', protocol: '2' },
  { priority: 4, not: null, src: 'all', fwmark: '0x209d', table: '8349', suppress_prefixlen: 0 },
  { priority: 5, src: '10.0.0.0', srclen: 8, dst: '1.2.3.4', fwmark: '0x1', fwmask: '0xff', iif: 'v0' },
];

/** An answer of `ip route get`, which has what one of `fibmatch` has too. */
export const way: unknown = {
  ...{ type: '1', dst: '10.1.2.3', gateway: '192.0.2.1', dev: 'eth0', table: '254' },
  ...{ protocol: '4', prefsrc: '203.0.113.22', flags: [], uid: 0, cache: [] },
};

export const names = [
  'ifname',
  'mtu',
  'flags',
  'addr_info',
  'dst',
  'via',
  'nexthops',
  'metrics',
  'gateway',
  'src',
  'fwmark',
  'type',
];

export const rulesets = join(import.meta.dirname, '../host/linux/nft/rulesets');

export const statements = [
  ...[
    'match',
    'left',
    'right',
    'op',
    'vmap',
    'data',
    'set',
    'concat',
    'prefix',
    'range',
    'elem',
    'val',
    'xt',
    'jump',
    'goto',
  ],
  ...[
    'target',
    'chain',
    'table',
    'rule',
    'expr',
    'payload',
    'meta',
    'ct',
    'key',
    'accept',
    'drop',
    'flags',
    'policy',
    'queue',
  ],
];

export const events = [
  '3: v0@v1: <BROADCAST,MULTICAST,M-DOWN> mtu 1500 qdisc noop state DOWN group default \\    link/ether 36:b8:cb:65:fd:2d',
  'Deleted 3: w0@NONE: <BROADCAST> mtu 1400 qdisc noop state DOWN group default \\    link/ether 36:b8:cb:65:fd:2d',
  '3: v0    inet 10.1.0.1/24 scope global v0\\       valid_lft forever preferred_lft forever',
  'Deleted 3: v0    inet6 fd01::1/64 scope global nodad \\       valid_lft forever',
  '10.9.0.0/16 via 10.1.0.2 dev v0 ',
  'unreachable fd05::/64 dev lo metric 1024 pref medium',
  '10.10.0.0/16 \\\tnexthop dev v0 weight 1 \\\tnexthop dev v1 weight 1 ',
  'Deleted default dev v0 metric 1024 pref medium',
  '32765:\tfrom all fwmark 0x5 lookup 77',
  'inet v0 forwarding on ',
  'ipv4 dev eth0 forwarding on ',
  'inet v0 rp_filter loose ',
  'netlink receive error No buffer space available (105)',
  'add chain ip filter FORWARD { type filter hook forward priority filter; policy drop; }',
  'delete rule inet cpn_wg0 forward handle 3',
  'delete table ip filter',
  '# ERROR: No buffer space available',
];

export const files = [
  '  0: 0100007F:0016 0200007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 12345 1 0',
  '  1: 0000000000000000FFFF00000100007F:0016 0000000000000000FFFF0000160071CB:C350 01 00000000:00000000',
  '  2: B80D0120000000000000000001000000:0016 B80D0120000000000000000002000000:C351 01',
  'nameserver 198.51.100.53\nnameserver fe80::1%eth0\nsearch x\noptions edns0\n',
  '1234 (a b) c) S 1 1234 1234 0 -1 4194560 0 0 0',
  'wg-quick\0up\0/etc/wireguard/wg0.conf\0',
  'Name:\tnode\nCapEff:\t000001ffffffffff\nSeccomp:\t0\n',
];

/** Of all of these, the words that their parsers search for. */
export const words = [
  ...[
    '\t',
    '\n',
    ' ',
    '(none)',
    'off',
    '[',
    ']',
    '{',
    '}',
    '"',
    ',',
    ':',
    '0',
    '1: ',
    'a',
    '.',
    '/',
    '@',
    ' dev ',
    'dev a',
  ],
  ...['Deleted ', 'inet ', 'inet6 ', ' forwarding on', ' {', 'add chain ip ', 'delete table ip ', 'Command failed -:1'],
  ...[
    'nameserver ',
    'nameserver',
    'CapEff:',
    ') S ',
    '(',
    '1 (a',
    '01',
    '0100007F:0016 ',
    '[]\n',
    '[{}]\n',
    '{"nftables":[',
    '\\',
  ],
];
