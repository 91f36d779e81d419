import { expect, test } from 'vitest';
import { explainPath, explainPeer } from '../../src/console/logic/matrix/explain-path.ts';
import { indexReach } from '../../src/console/logic/matrix/reach.ts';
import { findDialled } from '../../src/console/logic/peers/connectors.ts';
import { describeProfile } from '../../src/console/logic/peers/device.ts';
import {
  draftPhoneConfig,
  fitsCode,
  nameFile,
  renderKeyAlone,
  renderPhoneConfig,
} from '../../src/console/logic/peers/phone-config.ts';
import { formatExact } from '../../src/console/logic/text/format.ts';
import type { PeerHealth, PeerPath } from '../../src/contract/health.ts';
import type { Network } from '../../src/contract/network.ts';
import type { Peer } from '../../src/contract/peer.ts';
import { labelOf } from '../../src/control-plane/domain/peer-label.ts';
import { describeEvent } from '../../src/core/events/describe-event.ts';

const at = '2030-01-01T00:00:00.000Z';
const key = (id: number) => `${String.fromCharCode(64 + id).repeat(43)}=`;

function peer(id: number, name: string, fields: Partial<Peer> = {}): Peer {
  const own = { id, name, peer_type: 'origin', address: `10.77.0.${id}`, public_key: key(id) } as const;
  return { ...own, endpoint: null, created_at: at, ...fields };
}

const endpoint = '203.0.113.1:51820';
const edge = peer(1, 'edge', { peer_type: 'connector', endpoint, identity_key: 'i' });
const web = peer(2, 'web', { identity_key: 'i' });
const profile = { connector: 1, public_key: edge.public_key, endpoint, routes: [], declined: [] };
const phone = peer(3, 'phone', { peer_type: 'admin_device', via: 'connectors', profile });

const network = (peers: Peer[], fields: Partial<Network> = {}): Network => ({
  ...{ id: 1, name: 'office', description: '', private_cidr: '10.77.0.0/24', routes: [], vpn_type: 'wireguard' },
  ...{ revision: 1, etag: '"1-nonce"', peers },
  ...fields,
});
const office = network([edge, web, phone]);

function reachOf(paths: PeerPath[], fields: Partial<PeerHealth> = {}) {
  const report = (id: number, changes: Partial<PeerHealth>): PeerHealth => ({
    ...{ id, name: `peer-${id}`, state: 'online', reachable_by: 1, witnesses: 1, why: 'it reaches the control plane' },
    ...{ last_seen: at, version: '1', platform: null, source_address: null, reported_at: at },
    ...{ paths: [], routes: [], drift: null, pin_mismatches: [], problem: null },
    ...changes,
  });
  const silent = { state: 'offline', last_seen: null, version: null, reported_at: null, why: 'no request' } as const;
  return indexReach(office.peers, { peers: [report(1, { paths, ...fields }), report(3, silent)], routes: [] });
}

test('the page of a phone has its last handshake at the connector, and nothing to type on it', () => {
  const describe = (path: PeerPath['path'], fields: Partial<PeerHealth> = {}) =>
    explainPeer(office, reachOf([{ peer: 3, path, handshake_age: 90 }], fields), phone);
  const handshake = `${formatExact('2029-12-31T23:58:30.000Z')}, at edge`;
  expect(describe('direct')).toEqual({
    summary: 'phone is connected to edge.',
    facts: [
      ['Connector', 'edge'],
      ['Last handshake', handshake],
      ['Profile', 'current'],
    ],
    remedies: [],
  });
  expect(describe('stale').summary).toContain('phone is not connected at the moment');
  expect(describe('down').summary).toContain('phone does not answer edge');
  expect(describe('direct', { state: 'offline' })).toMatchObject({
    summary: expect.stringContaining('The only connector of phone, edge, is offline'),
    facts: expect.arrayContaining([['Connector', 'edge, which is offline']]),
  });
  const unseen = explainPeer(office, reachOf([]), phone);
  expect([unseen.summary, Object.fromEntries(unseen.facts)['Last handshake']]).toEqual([
    'phone has not connected yet. Turn the tunnel on in its WireGuard app.',
    'none is reported',
  ]);
  // A phone of before profiles, which cpn did not enrol.
  const plain = peer(3, 'phone', { peer_type: 'admin_device' });
  expect(explainPeer(office, reachOf([{ peer: 3, path: 'direct', handshake_age: 90 }]), plain)).toEqual({
    summary: 'phone is connected to edge.',
    facts: [['Last handshake', handshake]],
    remedies: [],
  });
  for (const [from, to] of [
    [phone, edge],
    [edge, phone],
  ] as const) {
    const { remedies } = explainPath(office, reachOf([]), from, to);
    expect(remedies.map(({ at: host }) => host)).not.toContain('phone');
  }
});

test('an outdated profile is shown with the reasons, and a connector with the phones that have no other', () => {
  const moved = network([{ ...edge, endpoint: '203.0.113.9:51820' }, web, phone], { routes: ['192.168.50.0/24'] });
  expect(explainPeer(moved, reachOf([]), phone).facts).toContainEqual([
    'Profile',
    'outdated: edge is at 203.0.113.9:51820, and the profile has 203.0.113.1:51820; the profile lacks 192.168.50.0/24',
  ]);
  expect([office, moved].map((each) => describeProfile(each, phone))).toEqual(['through edge', 'outdated profile']);
  expect(describeProfile(office, edge)).toBeNull();
  const gone = { ...phone, profile: { ...profile, connector: 9 } };
  expect(explainPeer(office, reachOf([]), gone)).toMatchObject({
    summary: expect.stringContaining('The connector of phone is gone'),
    facts: expect.arrayContaining([['Connector', 'gone from the network']]),
  });
  expect(explainPeer(office, reachOf([]), edge).facts).toContainEqual(['Only connector of', 'phone']);
  const details = { why: 'silent', only_connector_of: [{ id: 3, name: 'phone' }, { id: 4 }] };
  expect(describeEvent({ type: 'peer.offline', peer: { id: 1, name: 'edge' }, route: null, details })).toBe(
    'edge is offline: silent; it is the only connector of phone, peer 4',
  );
});

test('a profile through a connector fits a code with 300 peers, and all peers do not', () => {
  const many = (count: number) =>
    network([
      edge,
      ...Array.from({ length: count - 1 }, (_, at) => peer(at + 2, `web-${at}`, { endpoint, public_key: key(2) })),
    ]);
  const draft = draftPhoneConfig(many(300), edge);
  expect(draft.length).toBeLessThan(320);
  expect(renderPhoneConfig(office, phone, key(3)).length).toBeLessThanOrEqual(draft.length);
  expect([draft, draftPhoneConfig(many(5), null)].map(fitsCode)).toEqual([true, true]);
  expect([20, 300].map((count) => fitsCode(draftPhoneConfig(many(count), null)))).toEqual([false, false]);
});

test('a value that no file can hold is found before anything is enrolled, and never loses the key', () => {
  const hostile = network([{ ...edge, endpoint: `${endpoint}\nPostUp = reboot` }]);
  for (const connector of [hostile.peers[0] as Peer, null])
    expect(() => draftPhoneConfig(hostile, connector)).toThrow('no wg-quick file can hold');
  expect(renderKeyAlone(phone, key(3))).toBe(`[Interface]\nPrivateKey = ${key(3)}\nAddress = 10.77.0.3/32\n`);
});

test('each peer of a network has a file of its own name, which the WireGuard apps and Windows accept', () => {
  const names = [
    '北京手机',
    'Москва тел',
    '🎉',
    "Zoë's iPhone 15 Pro",
    "Zoë's iPhone 15 Pro Max",
    'phone',
    'aux',
    'CON',
    'lpt1',
  ];
  const labels = names.map(labelOf);
  const files = names.map((name, at) => {
    const label = labels[at] || `peer-${at + 1}`;
    return nameFile({ id: at + 1, name, ...(label !== name && { dns_label: label }) });
  });
  expect(files).toEqual([
    ...['beijingshouji.conf', 'moskva-tel.conf', 'tada.conf', 'zoes-iphone-1-4.conf', 'zoes-iphone-1-5.conf'],
    ...['phone.conf', 'aux-7.conf', 'con-8.conf', 'lpt1-9.conf'],
  ]);
  // A replica of an earlier version sends no label.
  const earlier = ['北京', '../../x', '', 'My phone of the last year'].map((name) => nameFile({ id: 123_456, name }));
  expect(earlier).toEqual(['wg-123456.conf', 'x.conf', 'wg-123456.conf', 'my-phone-123456.conf']);
  for (const file of [...files, ...earlier]) expect(file).toMatch(/^[a-zA-Z0-9_=+.-]{1,15}\.conf$/);
});

test('a chosen connector that another admin removed is gone, and no other way takes its place', () => {
  const other = peer(4, 'edge-2', { peer_type: 'connector', endpoint });
  expect(findDialled('4', [edge, other])).toBe(other);
  expect([findDialled('4', [edge]), findDialled('4', []), findDialled('all', [edge])]).toEqual(['gone', 'gone', 'all']);
  expect([findDialled(null, [edge, other]), findDialled(null, [])]).toEqual([edge, 'all']);
});
