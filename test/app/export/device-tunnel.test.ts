import { describe, expect, it } from 'vitest';
import type { Network } from '../../../src/api/admin-service.ts';
import { type DevicePlan, desireDevice, resolveEndpoints, toMap } from '../../../src/app/export/device-tunnel.ts';
import type { Options } from '../../../src/core/map/options.ts';
import { parseEndpoint } from '../../../src/core/net/endpoint.ts';
import { address, dialled, keyPair, network, options, peer, prefix } from '../../core/samples.ts';
import { SimulatedHost } from '../simulated-host.ts';

const routes = ['192.168.50.0/24', '0.0.0.0/0', '127.0.0.0/8'].map(prefix);
const named = peer(2, { type: 'connector', endpoint: parseEndpoint('edge.example.net:51820') });
const device = peer(9, { type: 'admin_device' });
const map = network([named, peer(3), device], { routes });

const plan = (changes: Partial<DevicePlan> = {}): DevicePlan => ({
  ...{ map, keyPair: keyPair(9), peer: device, link: 'wg0', options, networkSecret: null, connector: null },
  resolved: { 'edge.example.net': [address('203.0.113.2'), address('2001:db8::2')] },
  ...changes,
});

describe.each([
  ['dials all peers', null],
  ['dials one connector', 2],
] as const)('a device that %s', (_, connector) => {
  const desire = (changes: Partial<Options> = {}, others: Partial<DevicePlan> = {}) =>
    desireDevice(plan({ ...others, connector, options: { ...options, ...changes } }));

  it('has the MTU that every path carries, or the one that was chosen', () => {
    expect(desire().config.mtu).toBe(1280);
    expect(desire({ mtu: 1400 }).config.mtu).toBe(1400);
  });

  it('listens on the port that was chosen, or on any', () => {
    expect(desire().config.listenPort).toBeNull();
    expect(desire({ listenPort: 51_821 }).config.listenPort).toBe(51_821);
  });

  it('has an address of its own alone', () => {
    expect(desire().config.address).toEqual({ address: '10.77.0.9', length: 32 });
  });

  it('dials the first address of a name, and none of one that does not resolve', () => {
    const endpointOf = (resolved: DevicePlan['resolved']) => desire({}, { resolved }).config.peers[0]?.endpoint;
    expect(endpointOf(plan().resolved)).toEqual({ host: '203.0.113.2', port: 51_820 });
    expect(endpointOf({ 'edge.example.net': [address('2001:db8::2')] })).toEqual({ host: '2001:db8::2', port: 51_820 });
    expect(endpointOf({})).toBeNull();
  });

  it('accepts the routes that are safe, names the refused ones, and accepts none where none is wanted', () => {
    const accepted = (changes: Partial<Options>) => desire(changes).config.peers[0]?.allowedIps ?? [];
    expect(accepted({})).toContain('192.168.50.0/24');
    for (const refused of ['0.0.0.0/0', '127.0.0.0/8']) expect(accepted({})).not.toContain(refused);
    expect(desire().refused.map((each) => String(each.prefix))).toContain('127.0.0.0/8');
    expect(accepted({ allowRoutes: [prefix('0.0.0.0/0')] })).toContain('0.0.0.0/0');
    for (const route of routes) expect(accepted({ acceptRoutes: false })).not.toContain(route);
  });
});

it.each([
  ['is gone', network([device])],
  ['has no endpoint', network([{ ...named, endpoint: null }, device])],
])('a device gets no tunnel to a connector that %s', (_, without) => {
  expect(() => desireDevice(plan({ map: without, connector: 2 }))).toThrow('try again');
});

it('a device that is not listed gets no tunnel', () => {
  expect(() => desireDevice(plan({ map: network([named]) }))).toThrow('does not list the device');
});

it('a literal endpoint is dialled as it is, of either family', () => {
  for (const endpoint of [dialled(2), parseEndpoint('[2001:db8::2]:51820')]) {
    const own = network([{ ...named, endpoint }, device]);
    for (const connector of [null, 2])
      expect(desireDevice(plan({ map: own, resolved: {}, connector })).config.peers[0]?.endpoint).toEqual(endpoint);
  }
});

it('names are resolved once, IPv4 first, and each that does not resolve is reported', async () => {
  const simulated = await SimulatedHost.empty();
  const warnings: string[] = [];
  simulated.dnsRecords = {
    'two.example': [address('2001:db8::2'), address('192.0.2.2')],
    'one.example': [address('192.0.2.1')],
  };
  const peers = ['two.example', 'one.example', 'two.example', 'none.example', '203.0.113.2'].map((host, at) =>
    peer(at + 2, { endpoint: parseEndpoint(`${host}:51820`) }),
  );
  const tools = { ...simulated.tools, warn: (text: string) => void warnings.push(text) };
  expect(await resolveEndpoints(tools, [...peers, peer(8)])).toEqual({
    ...{ 'two.example': ['192.0.2.2', '2001:db8::2'], 'one.example': ['192.0.2.1'], 'none.example': [] },
  });
  expect(simulated.resolvedNames.toSorted()).toEqual(['none.example', 'one.example', 'two.example']);
  expect(warnings).toEqual([expect.stringMatching(/^none\.example does not resolve/)]);
});

it('the map of a host has each field of what an administrator reads, and its defaults', () => {
  const { publicKey } = keyPair(2);
  const plain = { ...{ id: 2, name: 'edge', peer_type: 'connector', public_key: publicKey }, address: '10.77.0.2' };
  const rich = {
    ...{ ...plain, endpoint: '203.0.113.2:51820', routes: ['192.168.50.0/24'], withdrawn: ['192.168.60.0/24'] },
    ...{ serving_since: '2026-01-01T00:00:00.000Z', priority: 0, via: true },
    profile: { connector: 7, public_key: publicKey, endpoint: '', routes: [], declined: [] },
  };
  const peers = [{ ...plain, endpoint: null }, rich, { ...rich, profile: undefined }, { ...rich, via: false }];
  const listed = { id: 7, name: 'office', private_cidr: '10.77.0.0/24', routes: ['192.168.50.0/24'], peers };
  const { peers: read, ...whole } = toMap(listed as unknown as Network);
  expect(whole).toEqual({ id: 7, name: 'office', cidr: '10.77.0.0/24', routes: ['192.168.50.0/24'], revision: null });
  const base = { id: 2, name: 'edge', type: 'connector', publicKey, address: '10.77.0.2' };
  const full = {
    ...{ ...base, endpoint: dialled(2), routes: ['192.168.50.0/24'], withdrawn: ['192.168.60.0/24'] },
    ...{ servingSince: Date.UTC(2026, 0, 1), priority: 0 },
  };
  expect(read).toEqual([
    { ...base, endpoint: null, routes: null, withdrawn: [] },
    { ...full, via: { connector: 7 } },
    { ...full, via: { connector: null } },
    full,
  ]);
});
