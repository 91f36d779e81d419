import { expect, it } from 'vitest';
import {
  type ConnectorProfile,
  findOutdated,
  findProfileConnectors,
  findProfileRoutes,
  type ListedPeer,
  renderProfile,
} from '../../../src/core/export/device-profile.ts';
import { parseConfig } from '../../../src/core/wg-quick/parse.ts';
import { keyPair } from '../samples.ts';

const range = '10.77.0.0/24';
const [lan, other] = ['192.168.50.0/24', '192.168.51.0/24'];
const peer = (id: number, fields: Partial<ListedPeer> = {}): ListedPeer => ({
  ...{ id, name: `peer-${id}`, peer_type: 'origin', public_key: keyPair(id).publicKey, endpoint: null },
  ...fields,
});
const edge = peer(1, { name: 'edge', peer_type: 'connector', endpoint: 'edge.example.net:51820' });
const profile: ConnectorProfile = {
  connector: 1,
  public_key: edge.public_key,
  endpoint: 'edge.example.net:51820',
  routes: [lan],
  declined: ['0.0.0.0/0'],
};
const network = { private_cidr: range, routes: [lan, '0.0.0.0/0'], peers: [edge] };

it('a profile names a connector that can be dialled and relays, the best first', () => {
  const dialled = { peer_type: 'connector', endpoint: '203.0.113.1:51820' };
  const peers = [
    peer(2, { ...dialled, serving_since: '2026-01-02T00:00:00.000Z' }),
    peer(3, { ...dialled, serving_since: '2026-01-01T00:00:00.000Z' }),
    peer(4, { ...dialled, serving_since: '2026-01-01T00:00:00.000Z', withdrawn: [lan] }),
    peer(5, { ...dialled, priority: 1 }),
    peer(6, { ...dialled, priority: 9, withdrawn: [range] }),
    peer(7, { ...dialled, priority: 9, suspended_at: '2026-01-01T00:00:00.000Z' }),
    peer(8, { ...dialled, priority: 9, endpoint: null }),
    peer(9, { endpoint: '203.0.113.9:51820', priority: 9 }),
    peer(10, dialled),
  ];
  expect(findProfileConnectors({ ...network, peers }).map(({ id }) => id)).toEqual([5, 3, 4, 2, 10]);
  expect(findProfileRoutes([lan, '0.0.0.0/0', '::/0'])).toEqual([lan]);
});

it('its file is a wg-quick text of about 300 bytes, whatever the network has', () => {
  const privateKey = keyPair(9).privateKey.reveal();
  const literal = { ...profile, endpoint: '203.0.113.1:51820' };
  const text = renderProfile({ privateKey, address: '10.77.0.9', range, profile: literal });
  expect(text.length).toBeLessThan(310);
  expect(parseConfig(text)).toMatchObject({
    address: { address: '10.77.0.9', length: 32 },
    mtu: 1280,
    peers: [{ publicKey: edge.public_key, allowedIps: [range, lan], keepalive: 25, presharedKey: null }],
  });
  const presharedKey = keyPair(8).privateKey.reveal();
  const secret = renderProfile({ privateKey, address: '10.77.0.9', range, profile, presharedKey });
  expect(secret).toContain(`PresharedKey = ${presharedKey}\n`);
  expect(secret).toContain('Endpoint = edge.example.net:51820\n');
  const hostile = { ...profile, endpoint: '203.0.113.1:51820\nPostUp = reboot' };
  expect(() => renderProfile({ privateKey, address: '10.77.0.9', range, profile: hostile })).toThrow(
    'no wg-quick file',
  );
});

it('a profile is outdated once its connector or the routes are others, and says why', () => {
  const phone = peer(9, { profile });
  const faultsOf = (changes: object, device: Partial<ListedPeer> = {}) =>
    findOutdated({ ...network, ...changes }, { ...phone, ...device });
  const withEdge = (fields: Partial<ListedPeer>) => faultsOf({ peers: [{ ...edge, ...fields }, phone] });
  expect([faultsOf({}), findOutdated(network, peer(5))]).toEqual([[], []]);
  const gone = ['its connector, peer 1, is no longer in the network'];
  expect(faultsOf({ peers: [phone] })).toEqual(gone);
  expect(withEdge({ peer_type: 'origin' })).toEqual(gone);
  expect(withEdge({ suspended_at: '2026-01-01T00:00:00.000Z' })).toEqual(gone);
  expect(withEdge({ public_key: phone.public_key })).toEqual(['edge has another key']);
  expect(withEdge({ endpoint: null })).toEqual(['edge has no endpoint']);
  expect(withEdge({ endpoint: '203.0.113.9:51820' })).toEqual([
    'edge is at 203.0.113.9:51820, and the profile has edge.example.net:51820',
  ]);
  expect(withEdge({ network_secret_tag: 'f'.repeat(16) })).toEqual(['edge has another network secret']);
  expect(withEdge({ name: 'edge-2', priority: 7, withdrawn: [lan] })).toEqual([]);
  expect(faultsOf({ routes: [lan, other, '0.0.0.0/0'] })).toEqual([`the profile lacks ${other}`]);
  expect(faultsOf({ routes: [other] })).toEqual([`the profile lacks ${other}`, `${lan} is no longer in the network`]);
});

it('a route that was left out on purpose does not outdate a profile', () => {
  const faultsOf = (fields: Partial<ConnectorProfile>, routes: readonly string[]) =>
    findOutdated({ ...network, routes }, peer(9, { profile: { ...profile, ...fields } }));
  expect(faultsOf({ declined: [other] }, [lan, other])).toEqual([]);
  expect(faultsOf({ routes: [], declined: [lan] }, [lan, other])).toEqual([]);
  expect(faultsOf({ routes: [], declined: [] }, [lan])).toEqual([`the profile lacks ${lan}`]);
  expect(faultsOf({ routes: [], declined: ['0.0.0.0/0'] }, [lan])).toEqual([`the profile lacks ${lan}`]);
});
