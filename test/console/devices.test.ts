import { encode } from 'uqr';
import { describe, expect, test } from 'vitest';
import { explainPeer } from '../../src/console/logic/matrix/explain-path.ts';
import { indexReach } from '../../src/console/logic/matrix/reach.ts';
import { changeRoutes, findRelays } from '../../src/console/logic/peers/connectors.ts';
import { describeDeletion, describePending } from '../../src/console/logic/peers/describe-removal.ts';
import { describeProfile, isDevice } from '../../src/console/logic/peers/device.ts';
import { isLoopback, makeJoinCommands, readServiceAddress } from '../../src/console/logic/peers/join-commands.ts';
import { peerTypes } from '../../src/console/logic/peers/peer-text.ts';
import {
  draftPhoneConfig,
  findModulePixels,
  fitsCode,
  nameFile,
  renderPhoneConfig,
} from '../../src/console/logic/peers/phone-config.ts';
import { formatExact } from '../../src/console/logic/text/format.ts';
import type { PeerHealth } from '../../src/contract/health.ts';
import { PeerType } from '../../src/contract/peer.ts';
import { at, connector, health, healthOf, lan, later, network, path, peer } from './samples.ts';

const endpoint = '203.0.113.1:51820';
const edge = connector(1, { name: 'edge', endpoint });
const profile = { connector: 1, public_key: edge.public_key, endpoint, routes: [], declined: [] };
const phone = peer(9, { name: 'phone', peer_type: 'admin_device', via: 'connectors', profile });

test('each type of peer has its own words', () => {
  expect(Object.keys(peerTypes).toSorted()).toEqual(PeerType.options.toSorted());
  expect(peerTypes).toEqual({ origin: 'server', connector: 'connector', admin_device: 'laptop or phone' });
});

describe('a device without cpn', () => {
  const silent = { version: null, last_seen: null };

  test.each<[object, Partial<PeerHealth> | undefined, boolean]>([
    [{ via: 'connectors' }, {}, true],
    [{ via: 'connectors', peer_type: 'origin', identity_key: 'i' }, {}, true],
    [{ peer_type: 'admin_device' }, undefined, true],
    [{ peer_type: 'admin_device' }, silent, true],
    [{ peer_type: 'admin_device' }, { ...silent, version: '1' }, false],
    [{ peer_type: 'admin_device' }, { ...silent, last_seen: at }, false],
    [{ peer_type: 'admin_device', identity_key: 'i' }, silent, false],
    [{ peer_type: 'origin' }, silent, false],
    [{ peer_type: 'connector' }, undefined, false],
  ])('is a peer with %j of which is known %j: %j', (fields, known, is) => {
    expect(isDevice(peer(1, fields), known && healthOf(1, known))).toBe(is);
  });

  test('had its last handshake where it was latest, by the time of the report', () => {
    const hosts = [edge, peer(2, { name: 'web' }), peer(3, { name: 'db' }), peer(4), phone];
    const reach = indexReach(
      hosts,
      health([
        healthOf(1, { reported_at: later(0), paths: [path(9, 'down', { handshake_age: 600 })] }),
        healthOf(2, { reported_at: later(60), paths: [path(9, 'direct', { handshake_age: 30 })] }),
        healthOf(3, { reported_at: later(30), paths: [path(9, 'stale', { handshake_age: 5 })] }),
        healthOf(4, { reported_at: null, paths: [path(9, 'direct', { handshake_age: 0 })] }),
      ]),
    );
    const { summary, facts } = explainPeer(network(hosts), reach, phone);
    expect(summary).toBe('phone is connected to web.');
    expect(Object.fromEntries(facts)['Last handshake']).toBe(`${formatExact(later(30))}, at web`);
  });

  test('is described by its connector, by an outdated profile, and by neither', () => {
    const office = network([edge, phone]);
    expect([phone, edge].map((each) => describeProfile(office, each))).toEqual(['through edge', null]);
    expect(describeProfile(network([phone]), phone)).toBe('outdated profile');
  });
});

describe('the file of a phone', () => {
  const key = `${'A'.repeat(43)}=`;
  const linesOf = (text: string, name: string) => text.split('\n').filter((line) => line.startsWith(`${name} = `));

  test('has the phone’s own address and key, each other peer once, and what keeps it reachable', () => {
    const self = peer(9, { endpoint: '203.0.113.9:1' });
    const text = renderPhoneConfig(network([edge, peer(2), self], { routes: [lan] }), self, key);
    expect(text.split('\n\n')[0]).toBe(`[Interface]\nPrivateKey = ${key}\nAddress = 10.77.0.9/32\nMTU = 1280`);
    expect(text.split('\n\n')[1]).toBe(
      `[Peer]\nPublicKey = key-1\nAllowedIPs = 10.77.0.1/32, 10.77.0.0/24, ${lan}\nEndpoint = ${endpoint}\nPersistentKeepalive = 25\n`,
    );
    expect(text.split('[Peer]')).toHaveLength(2);
  });

  test('leads a route to one connector alone, the first in the order of hosts', () => {
    const peers = [
      connector(1, { endpoint, withdrawn: ['10.77.0.0/24'] }),
      connector(2, { endpoint, withdrawn: [lan] }),
      connector(3, { endpoint, priority: 5 }),
    ];
    const map = network(peers, { routes: [lan] });
    const text = renderPhoneConfig(map, peer(9), key);
    expect(linesOf(text, 'AllowedIPs')).toEqual([
      ...['AllowedIPs = 10.77.0.1/32', 'AllowedIPs = 10.77.0.2/32', `AllowedIPs = 10.77.0.3/32, 10.77.0.0/24, ${lan}`],
    ]);
    expect(findRelays(peers, '10.77.0.0/24').map(({ id }) => id)).toEqual([3, 2]);
  });

  test('leads no route anywhere that no connector serves, also where there is a relay', () => {
    const map = network([connector(1, { endpoint, routes: [] })], { routes: [lan] });
    expect(linesOf(renderPhoneConfig(map, peer(9), key), 'AllowedIPs')).toEqual([
      'AllowedIPs = 10.77.0.1/32, 10.77.0.0/24',
    ]);
  });

  test('is drafted with the routes that its profile would have, and not the default one', () => {
    const draft = draftPhoneConfig(network([edge], { routes: [lan, '0.0.0.0/0'] }), edge);
    expect(linesOf(draft, 'AllowedIPs')).toEqual([`AllowedIPs = 10.77.0.0/24, ${lan}`]);
    expect(linesOf(draft, 'Endpoint')).toEqual([`Endpoint = ${endpoint}`]);
  });

  test('fits a code of 117 modules, and none of more', () => {
    const [most, more] = ['a'.repeat(1273), 'a'.repeat(1274)];
    expect([most, more].map((text) => encode(text, { border: 0 }).size)).toEqual([117, 121]);
    expect([fitsCode(most), fitsCode(more)]).toEqual([true, false]);
    expect(fitsCode('a'.repeat(10_000))).toBe(false);
    expect([21, 73, 77, 117].map(findModulePixels)).toEqual([5, 5, 4, 4]);
  });

  test.each([
    ...['con', 'prn', 'aux', 'nul'],
    ...Array.from({ length: 10 }, (_, index) => [`com${index}`, `lpt${index}`]).flat(),
  ])('is not called %s, a device of Windows', (name) => {
    expect(nameFile({ id: 7, name, dns_label: name })).toBe(`${name}-7.conf`);
  });

  test.each([
    ['a'.repeat(15), `${'a'.repeat(15)}.conf`],
    ['a'.repeat(16), `${'a'.repeat(13)}-7.conf`],
    [`${'a'.repeat(12)}-bcd`, `${'a'.repeat(12)}-7.conf`],
    ['com', 'com.conf'],
    ['com10', 'com10.conf'],
  ])('of a peer called %s is %s', (label, file) => expect(nameFile({ id: 7, name: 'x', dns_label: label })).toBe(file));
});

describe('the commands for a host', () => {
  const token = 'cpn_abc';
  const textOf = (id: string, fields: object = {}) =>
    makeJoinCommands({ api: 'https://cp.example.net', token, type: 'origin', ...fields }).find((each) => each.id === id)
      ?.text;

  test.each(PeerType.options)('enrol it as %s', (type) => {
    for (const id of ['debian', 'container']) expect(textOf(id, { type })).toContain(` --type ${type}`);
    expect(textOf('cloud-init', { type })).toContain(`\n      type = ${type}\n`);
  });

  test('have the key in the file of cloud-init alone, which no other user reads', () => {
    const commands = makeJoinCommands({ api: 'https://cp.example.net', token, type: 'origin' });
    expect(commands.map(({ id, text, promptsForKey }) => [id, text.includes(token), promptsForKey])).toEqual([
      ['debian', false, true],
      ['container', false, true],
      ['cloud-init', true, false],
    ]);
    expect(commands[2]?.text).toContain(
      `  - path: /etc/credstore/cpn.enrollment-key\n    permissions: "0600"\n    content: ${token}\n`,
    );
    expect(commands[2]?.text).toMatch(
      /^#cloud-config\n.*\n {2}- \[systemctl, enable, --now, --no-block, cpn-join.service\]\n$/s,
    );
  });

  test('run a container that joins, and then one that stays and comes back', () => {
    const [join = '', run = ''] = textOf('container')?.split(' && ') ?? [];
    for (const each of [join, run])
      expect(each).toContain(
        ' --network host --cap-add NET_ADMIN --device /dev/net/tun -v cpn:/var/lib/cpn -v wireguard:/etc/wireguard cpn ',
      );
    expect([join, run]).toEqual([
      expect.stringMatching(/^sudo podman run -it --rm .* cpn join --api https:\/\/cp.example.net --type origin$/),
      expect.stringMatching(/^sudo podman run -d --name cpn --restart always .* cpn run$/),
    ]);
  });

  test.each<[string, boolean]>([
    ['http://localhost:8787', true],
    ['http://127.0.0.1', true],
    ['http://127.8.9.10', true],
    ['http://[::1]:8787', true],
    ['http://128.0.0.1', false],
    ['http://127.0.0.1.example.net', false],
    ['http://localhost.example.net', false],
    ['http://[::2]', false],
  ])('are for %s, which no other host reaches: %j', (api, is) => expect(isLoopback(api)).toBe(is));

  test.each(['https://:secret@cp.example.net', 'https://me@cp.example.net'])(
    'are for no address with credentials: %s',
    (api) => {
      expect(readServiceAddress(api)).toBeNull();
    },
  );
});

describe('the routes of a connector', () => {
  const range = '10.77.0.0/24';
  const other = '192.168.51.0/24';

  test.each<[string, object, readonly string[] | null, object]>([
    ['all, as before', {}, null, {}],
    ['some of all', {}, [lan], { routes: [lan], expected_routes: null }],
    ['none of all', {}, [], { routes: [], expected_routes: null }],
    ['all instead of none', { routes: [] }, null, { routes: null, expected_routes: [] }],
    ['the same in another order', { routes: [lan, other] }, [other, lan], {}],
    ['fewer', { routes: [lan, other] }, [lan], { routes: [lan], expected_routes: [lan, other] }],
    [
      'others where some are withdrawn',
      { routes: [lan], withdrawn: [other, range] },
      [],
      { routes: [], expected_routes: [lan, other] },
    ],
    ['all where it withdrew some of all', { withdrawn: [lan] }, null, {}],
  ])('change to %s', (_, fields, wanted, change) => {
    expect(changeRoutes(connector(1, fields), range, wanted)).toEqual(change);
  });
});

describe('hosts that have not applied a removal', () => {
  const host = (id: number, fields: object = {}) => {
    return { id, name: `edge-${id}`, acknowledged_revision: null, last_seen: null, ...fields };
  };
  const hosts = (count: number) => Array.from({ length: count }, (_, index) => host(index));

  test('are named up to ten, with the versions that are known', () => {
    expect(describePending({ revision: 7, pending: hosts(10) })).toMatch(/: edge-0, .*, edge-9\.$/);
    expect(describePending({ revision: 7, pending: hosts(11) })).toMatch(/, edge-9 and 1 more\.$/);
    expect(describePending({ revision: 7, pending: [host(1, { version: '0.2.0' })] })).toMatch(
      /: edge-1 \(cpn 0\.2\.0\)\.$/,
    );
  });

  test.each([
    [null, false],
    [undefined, false],
    ['following', false],
    ['unsupported', true],
  ])('of a deleted network keep their tunnel where their deletion is %j: %j', (deletion, keeps) => {
    const status = { revision: null, deleted_at: at, pending: [host(1, deletion === undefined ? {} : { deletion })] };
    const [, line] = describeDeletion(status as Parameters<typeof describeDeletion>[0]);
    expect(line).toContain(keeps ? 'keeps the tunnel up: edge-1' : 'have not taken their tunnel down: edge-1');
  });
});
