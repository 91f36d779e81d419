import { describe, expect, test } from 'vitest';
import { describeActor, describeDetails, describeTarget } from '../../src/console/logic/events/describe-audit.ts';
import { readNetwork } from '../../src/console/logic/network/apply-reply.ts';
import { findReturn, linkTo, parseRoute, readQuery } from '../../src/console/logic/page/route.ts';
import { findVisibleRows } from '../../src/console/logic/page/visible-rows.ts';
import { findConnectors, findMappedLans } from '../../src/console/logic/peers/connectors.ts';
import { describeDeletion, describeLoss, describePending } from '../../src/console/logic/peers/describe-removal.ts';
import { isEndpoint, makeJoinCommands, readServiceAddress } from '../../src/console/logic/peers/join-commands.ts';
import { searchPeers } from '../../src/console/logic/peers/peer-text.ts';
import { renderPhoneConfig } from '../../src/console/logic/peers/phone-config.ts';
import { formatAgo, formatExact, inDays, splitWords, toSentence } from '../../src/console/logic/text/format.ts';
import type { AuditEntry } from '../../src/contract/audit.ts';
import type { Network } from '../../src/contract/network.ts';
import type { Peer } from '../../src/contract/peer.ts';
import { parseEndpoint } from '../../src/core/net/endpoint.ts';
import { parseServiceAddress } from '../../src/core/net/service-address.ts';
import { health, healthOf } from './samples.ts';

const at = '2030-01-01T00:00:00.000Z';

function peer(id: number, fields: Partial<Peer> = {}): Peer {
  const public_key = `${String.fromCharCode(64 + id).repeat(43)}=`;
  const common = { peer_type: 'origin', endpoint: null, created_at: at } as const;
  return { id, name: `peer-${id}`, address: `10.77.0.${id}`, public_key, ...common, ...fields };
}

function network(peers: Peer[], fields: Partial<Network> = {}): Network {
  const summary = { id: 1, name: 'office', description: '', private_cidr: '10.77.0.0/24', routes: [] };
  return { ...summary, vpn_type: 'wireguard', revision: 1, etag: '"1-nonce"', peers, ...fields };
}

test.each([
  ['', { page: 'networks' }],
  ['#/', { page: 'networks' }],
  ['#/networks', { page: 'networks' }],
  ['#/networks/7', { page: 'network', network: 7 }],
  ['#/networks/7/peers', { page: 'peers', network: 7 }],
  ['#/networks/7/add-host', { page: 'add-host', network: 7 }],
  ['#/networks/7/keys', { page: 'keys', network: 7 }],
  ['#/audit', { page: 'audit' }],
  ['#/account', { page: 'account' }],
  ['#/networks/07', { page: 'unknown' }],
  ['#/networks/../x', { page: 'unknown' }],
  ['#/networks/7/peers/3', { page: 'unknown' }],
  ['#/audit/3', { page: 'unknown' }],
  ['#/constructor', { page: 'unknown' }],
  ['#/device', { page: 'device', code: null }],
  ['#/device/BCDF-GHJK', { page: 'device', code: 'BCDF-GHJK' }],
  ['#/device/BCDF-GHJK?state=abc', { page: 'device', code: 'BCDF-GHJK' }],
  ['#/device/BCDF-GHJK/x', { page: 'unknown' }],
  ['#/device/..%2Fusers', { page: 'unknown' }],
] as const)('%j is a page', (hash, route) => {
  expect(parseRoute(hash)).toEqual(route);
  if (route.page !== 'unknown') expect(parseRoute(linkTo(route))).toEqual(route);
});

test.each([
  [{ redirect_port: 4711, code: 'cpd_a' }, 'http://127.0.0.1:4711/?code=cpd_a&state=0123456789abcdef'],
  [{ redirect_port: 4711, code: null }, 'http://127.0.0.1:4711/?error=access_denied&state=0123456789abcdef'],
  [{ redirect_port: null, code: null }, null],
])('a decision about a device is brought to this machine alone: %j', (decision, target) => {
  expect(findReturn(decision, '0123456789abcdef')).toBe(target);
  for (const state of ['', 'short', '0123456789abcdef&x=1']) expect(findReturn(decision, state)).toBeNull();
});

test('what a page shows is in its link, and is read from it again', () => {
  const link = linkTo({ page: 'peers', network: 7 }, { q: 'Zoë & co?', state: 'offline', type: '' });
  expect(link).toBe('#/networks/7/peers?q=Zo%C3%AB+%26+co%3F&state=offline');
  expect(parseRoute(link)).toEqual({ page: 'peers', network: 7 });
  expect(readQuery(link)).toEqual({ q: 'Zoë & co?', state: 'offline' });
  expect(readQuery('#/networks')).toEqual({});
});

describe('a reply with a network', () => {
  const before = network([peer(1), peer(2), peer(3)], { etag: '"1-a"' });
  const { peers: _, ...summary } = network([], { revision: 2, name: 'new', etag: '"2-a"' });
  const changes = { ...summary, base: '"1-a"', peers: [peer(4), peer(2, { name: 'other' })], removed: [3] };
  const changed = { ...summary, peers: [peer(1), peer(2, { name: 'other' }), peer(4)] };
  const { base: __, ...earlier } = changes;
  const reply = (status: number, headers: Record<string, string> = {}) => ({ status, headers: new Headers(headers) });

  test('of changes replaces, adds and removes peers, whatever status a proxy gives it', () => {
    for (const status of [226, 200]) expect(readNetwork(reply(status), changes, before)).toEqual(changed);
    expect(readNetwork(reply(226), earlier, before)).toEqual(changed);
    expect(before.peers).toHaveLength(3);
  });

  test('of changes without the list of rules keeps those that there are, in a closed network', () => {
    const rules = [{ name: 'web', from: ['any'], to: ['peer:1'], protocol: 'tcp' as const, ports: ['443'] }];
    const closed = { ...before, rules: { mode: 'closed' as const, rules } };
    const read = (data: Parameters<typeof readNetwork>[1]) => readNetwork(reply(226), data, closed)?.rules;
    expect(read({ ...changes, rules: { mode: 'closed' } })).toEqual({ mode: 'closed', rules });
    expect(read({ ...changes, rules: { mode: 'closed', require_enforcement: true, rules: [] } })).toEqual({
      ...{ mode: 'closed', require_enforcement: true, rules: [] },
    });
    expect(read(changes)).toBeUndefined();
  });

  test('of changes that do not apply is read again, never taken for the whole network', () => {
    for (const status of [226, 200]) {
      expect(readNetwork(reply(status), { ...changes, base: '"0-a"' }, before)).toBeNull();
      expect(readNetwork(reply(status), changes, null)).toBeNull();
    }
    expect(readNetwork(reply(200), earlier, before)).toBeNull();
    expect(readNetwork(reply(200), { ...earlier, peers: [], removed: [] }, before)).toBeNull();
    for (const header of ['im', 'delta-base'])
      expect(readNetwork(reply(200, { [header]: 'x' }), { ...summary, peers: [] }, before)).toBeNull();
  });

  test('of the whole network is the network', () => {
    const whole = { ...summary, peers: [peer(1), peer(2)] };
    expect(readNetwork(reply(200), whole, before)).toEqual(whole);
    expect(readNetwork(reply(200), { ...whole, removed: [3] }, before)).toEqual(whole);
    expect(readNetwork(reply(200), whole, null)).toEqual(whole);
  });
});

test.each([
  [0, 'It has no peers.'],
  [1, 'Its peer loses the network.'],
  [2, 'All 2 peers lose the network and each other.'],
])('%d peers lose a network', (peers, text) => expect(describeLoss(peers)).toBe(text));

test('a mapped LAN is that of each connector that reports one for the route', () => {
  const route = '10.201.1.0/24';
  const map = [
    { route, local: '192.168.1.0/24' },
    { route: '10.201.2.0/24', local: '192.168.2.0/24' },
  ];
  const observed = health([healthOf(1, { map }), healthOf(2), healthOf(3, { map })]);
  const connectors = [peer(1), peer(2)];
  expect(findMappedLans(observed, connectors, route)).toEqual([{ peer: 1, local: '192.168.1.0/24' }]);
  expect(findMappedLans(observed, connectors, '10.201.3.0/24')).toEqual([]);
  expect(findMappedLans(null, connectors, route)).toEqual([]);
});

test('connectors of a route are those that serve it, by priority, then by time, then by id', () => {
  const lan = '192.168.50.0/24';
  const connector = (id: number, fields: Partial<Peer> = {}) => peer(id, { peer_type: 'connector', ...fields });
  const peers = [
    connector(1),
    connector(2, { serving_since: '2030-01-02T00:00:00Z' }),
    connector(3, { serving_since: at }),
    connector(4, { priority: 5 }),
    connector(5, { routes: ['192.168.51.0/24'] }),
    connector(6, { withdrawn: [lan] }),
    connector(7, { routes: [lan], serving_since: at }),
    peer(8),
    connector(9, { priority: 9, suspended_at: at }),
  ];
  expect(findConnectors(peers, lan).map(({ id }) => id)).toEqual([4, 3, 7, 2, 1]);
});

test('a search takes parts of all that is shown, in any order and case', () => {
  const peers = [
    peer(1, { name: 'Web-1', endpoint: '203.0.113.1:51820' }),
    peer(2, { peer_type: 'connector', routes: ['192.168.50.0/24'] }),
    peer(3, { suspended_at: at }),
  ];
  const find = (query: string) => searchPeers(peers, query).map(({ id }) => id);
  expect(find(' ')).toEqual([1, 2, 3]);
  expect(find('web')).toEqual([1]);
  expect(find('113.1 SERVER')).toEqual([1]);
  expect(find('192.168.50 connector')).toEqual([2]);
  expect(find('suspended')).toEqual([3]);
  expect(find('CCCC')).toEqual([3]);
  expect(find('none')).toEqual([]);
});

test.each([
  ['at the top', 0, { first: 0, end: 25 }],
  ['in the middle', 44_000, { first: 985, end: 1025 }],
  ['at the end', 437_000, { first: 9916, end: 9957 }],
  ['beyond the end', 999_999, { first: 9985, end: 10_000 }],
])('of a long table the rows on the screen are made: %s', (_where, scrolled, rows) => {
  expect(findVisibleRows(10_000, 44, scrolled, 440)).toEqual(rows);
});

test('no rows are rendered of an empty table', () => {
  expect(findVisibleRows(0, 44, 0, 440)).toEqual({ first: 0, end: 0 });
});

describe('the command to paste', () => {
  const token = 'cpn_abc-DEF_123';
  const textOf = (api: string, id: string) =>
    makeJoinCommands({ api, token, type: 'connector' }).find((each) => each.id === id)?.text ?? '';

  test('prompts for the key in any shell, and has it in no argument and no history', () => {
    expect(textOf('https://cp.example.net/vpn', 'debian')).toBe(
      'sudo cpn join --api https://cp.example.net/vpn --type connector',
    );
    const container = textOf('https://cp.example.net', 'container');
    expect(container).toMatch(/^sudo podman run -it --rm .* cpn join --api .* && sudo podman run -d /);
    expect(container).toMatch(/ cpn run$/);
    expect(container).not.toContain(token);
  });

  test.each([
    [' https://cp.example.net/vpn/ ', 'https://cp.example.net/vpn'],
    ['HTTP://203.0.113.1:8787', 'http://203.0.113.1:8787'],
    ['https://cp.example.net/a$(x)', 'https://cp.example.net/a$(x)'],
  ])('has the address that cpn join makes of %j', (typed, address) => {
    expect(readServiceAddress(typed)).toBe(address);
    expect(parseServiceAddress(typed.trim(), true).url).toBe(address);
  });

  test.each([
    ...['', 'cp.example.net', 'ftp://cp.example.net', 'https://', 'https://a b', 'https://cp.example.net/\nx'],
    ...['https://me:secret@cp.example.net', 'https://cp.example.net?x', 'https://cp.example.net/#x'],
  ])('has no address that cpn join refuses: %j', (typed) => {
    expect(readServiceAddress(typed)).toBeNull();
    expect(() => parseServiceAddress(typed, true)).toThrow();
  });

  test.each([
    ...[
      '203.0.113.22:51820',
      '[2001:db8::1]:51820',
      'edge-1.example.net:1',
      'EDGE_x.example.net:65535',
      '[::1]:7',
      'a:9',
    ],
    ...[
      '',
      'a',
      'a:',
      'a:0',
      'a:65536',
      'a:01',
      '1.2.3:9',
      '256.1.1.1:9',
      '01.2.3.4:9',
      '1.2.3.4.:9',
      '0x7f.1:9',
      'a..b:9',
    ],
    ...[
      '2001:db8::1:51820',
      '[1.2.3.4]:9',
      '[::ffff:1.2.3.4]:9',
      '[:::]:9',
      '[fe80::1%eth0]:9',
      '-x:9',
      'a b:9',
      'a:9 ',
    ],
    ...["a';x:9", '$(x):9', 'a:9;x', 'a:9\nb', '[]:9', '[::1:9', `${'a'.repeat(64)}.net:9`, 'bücher.example:9'],
  ])('has the endpoints that cpn join takes: %j', (typed) => {
    let isTaken = true;
    try {
      parseEndpoint(typed);
    } catch {
      isTaken = false;
    }
    expect(isEndpoint(typed)).toBe(isTaken);
  });

  test('has the endpoint, as one word of a shell', () => {
    const request = { api: 'https://cp.example.net', token, type: 'origin', endpoint: '[2001:db8::1]:51820' } as const;
    const [debian, container, cloudInit] = makeJoinCommands(request).map(({ text }) => text);
    expect(debian).toMatch(/ --type origin --endpoint '\[2001:db8::1\]:51820'$/);
    expect(container).toContain(" --endpoint '[2001:db8::1]:51820' && sudo podman");
    expect(cloudInit).toContain('\n      type = origin\n      endpoint = [2001:db8::1]:51820\n');
  });

  test('says how the daemon starts where cpn comes from its source', () => {
    const [debian] = makeJoinCommands({ api: 'https://cp.example.net', token, type: 'origin' });
    expect(debian?.hint).toContain('Without it, start the daemon after the join: sudo cpn run');
  });

  test.each([
    ['http://cp.example.net', true],
    ['http://192.0.2.7:8787', true],
    ['http://127.0.0.1:8787', false],
    ['http://localhost:8787', false],
    ['http://[::1]:8787', false],
    ['https://cp.example.net', false],
  ])('allows plain http where that is how the console is open: %s', (api, isAllowed) => {
    expect(textOf(api, 'debian').includes(' --insecure-http ')).toBe(isAllowed);
    expect(textOf(api, 'cloud-init').includes('\n      insecure-http = yes\n')).toBe(isAllowed);
  });

  test('quotes what a shell would read', () => {
    expect(textOf("https://cp.example.net/a'$(x)", 'debian')).toContain(" --api 'https://cp.example.net/a'\\''$(x)' ");
  });
});

describe('the wg-quick text of a phone', () => {
  const privateKey = `${'x'.repeat(42)}0=`;
  const connector = (id: number, fields: Partial<Peer> = {}) => peer(id, { peer_type: 'connector', ...fields });
  const self = peer(9, { peer_type: 'admin_device' });

  test('dials those with an endpoint, and reaches the others and the routes through connectors', () => {
    const map = network(
      [
        connector(1, { endpoint: '203.0.113.1:51820', routes: ['192.168.50.0/24'] }),
        connector(2, {
          endpoint: 'edge.example.net:51820',
          routes: ['192.168.51.0/24'],
          priority: 1,
          withdrawn: ['10.77.0.0/24'],
        }),
        connector(3, { routes: ['192.168.52.0/24'] }),
        peer(4, { endpoint: '203.0.113.4:51820' }),
        peer(5),
        self,
      ],
      { routes: ['192.168.50.0/24', '192.168.51.0/24', '192.168.52.0/24', '192.168.53.0/24', '0.0.0.0/0'] },
    );
    expect(
      renderPhoneConfig(map, self, privateKey)
        .split('\n')
        .filter((line) => /^(Allowed|Endpoint|Addr)/.test(line)),
    ).toEqual([
      'Address = 10.77.0.9/32',
      'AllowedIPs = 10.77.0.1/32, 10.77.0.0/24, 192.168.50.0/24, 192.168.52.0/24',
      'Endpoint = 203.0.113.1:51820',
      'AllowedIPs = 10.77.0.2/32, 192.168.51.0/24',
      'Endpoint = edge.example.net:51820',
      'AllowedIPs = 10.77.0.4/32',
      'Endpoint = 203.0.113.4:51820',
    ]);
  });

  test('is refused where a value would be a line of its own', () => {
    const map = network([peer(1, { endpoint: '203.0.113.1:51820\nPostUp = reboot' }), self]);
    expect(() => renderPhoneConfig(map, self, privateKey)).toThrow('no wg-quick file can hold');
  });
});

test('what the audit has is in words', () => {
  const entry: AuditEntry = {
    ...{ id: 1, at, action: 'network.update', address: null },
    actor: { kind: 'enrollment_key', id: 3, name: 'rack' },
    target: { kind: 'network', id: 1, name: 'office' },
    details: {
      ...{ name: 'office; role: owner', routes: ['192.168.50.0/24', '192.168.51.0/24'], peer_types: null },
      ...{ role_before: 'admin', expires_at: '2030-01-01T00:00:00.000Z', times: 2, withdrawn: [] },
    },
  };
  expect([describeActor(entry), describeTarget(entry), describeDetails(entry)]).toEqual([
    'enrolment key rack',
    'network office (1)',
    [
      'name: "office; role: owner"; routes: 192.168.50.0/24, 192.168.51.0/24; peer types: none; role before: admin',
      `expires at: ${formatExact('2030-01-01T00:00:00.000Z')}; times: 2; withdrawn: none`,
    ].join('; '),
  ]);
  const unknown: AuditEntry['actor'] = { kind: 'nobody', id: null, name: null };
  expect(describeActor({ actor: unknown })).toBe('no user');
});

test('a time is relative to now, and exact with its zone', () => {
  const now = Date.parse('2030-01-02T00:00:00.000Z');
  const ago = (seconds: number) => formatAgo(new Date(now - seconds * 1000).toISOString(), now);
  expect([0, 9, 45, 90, 3 * 3600, 3 * 86_400].map(ago)).toEqual([
    ...['just now', 'just now', '45 s ago', '1 min ago', '3 h ago', '3 days ago'],
  ]);
  // A clock that is some seconds off is no future.
  expect([-30, -90, -5 * 86_400].map(ago)).toEqual(['just now', 'in 1 min', 'in 5 days']);
  expect(formatExact('2030-07-01T10:00:05.000Z', 'en-GB', 'Europe/Berlin')).toBe('1 Jul 2030, 12:00:05 CEST');
});

test('texts and times are made for people, and from what they type', () => {
  expect(toSentence('there is no such path')).toBe('There is no such path.');
  expect(toSentence('Is it?')).toBe('Is it?');
  expect(inDays('2', new Date(at))).toBe('2030-01-03T00:00:00.000Z');
  expect([inDays('', new Date(at)), inDays('x', new Date(at))]).toEqual([null, null]);
  expect(splitWords(' 10.0.0.0/8,\n 192.168.0.0/16 ')).toEqual(['10.0.0.0/8', '192.168.0.0/16']);
});

describe('hosts that have not applied a removal', () => {
  const host = (id: number) => ({ id, name: `edge-${id}`, acknowledged_revision: null, last_seen: null });

  test('are named, the first ten of them', () => {
    const few = describePending({ revision: 7, pending: [host(1), host(2)] });
    expect(few).toContain('(revision 7)');
    expect(few).toMatch(/: edge-1, edge-2\.$/);
    const many = describePending({ revision: 7, pending: Array.from({ length: 13 }, (_, index) => host(index)) });
    expect(many).toMatch(/, edge-9 and 3 more\.$/);
  });

  test('of a deleted network are named with their versions, apart from those that never will', () => {
    const deleted = { revision: null, deleted_at: '2030-01-01T00:00:00.000Z' };
    const older = { ...host(2), version: '0.1.0', deletion: 'unsupported' as const };
    expect(describeDeletion({ ...deleted, pending: [{ ...host(1), deletion: null }, older] })).toEqual([
      'This network was deleted at 2030-01-01T00:00:00.000Z.',
      'Hosts that have not taken their tunnel down: edge-1.',
      'Hosts whose version of cpn keeps the tunnel up: edge-2 (cpn 0.1.0). Upgrade cpn there, or type “cpn leave” there.',
    ]);
    expect(describeDeletion({ ...deleted, pending: [] })[1]).toBe('All hosts have taken their tunnel down.');
  });
});
