import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { AdminService, Network, NetworkPeer, PeerHealth } from '../../../src/api/admin-service.ts';
import { findConnector } from '../../../src/cli/api/device-connector.ts';
import { exportTunnel } from '../../../src/cli/commands/export.ts';
import { Input } from '../../../src/cli/input/input.ts';

let said: string;

beforeEach(() => {
  said = '';
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    said += String(text);
    return true;
  });
});
afterEach(() => vi.restoreAllMocks());

const range = '10.77.0.0/24';

function connector(id: number, facts: Partial<NetworkPeer> = {}): NetworkPeer {
  const endpoint = `203.0.113.${id}:51820`;
  return { id, name: `edge-${id}`, peer_type: 'connector', endpoint, ...facts } as NetworkPeer;
}

interface Facts {
  readonly states?: Readonly<Record<number, PeerHealth['state']>> | null;
  readonly hasProfiles?: boolean;
}

async function find(flags: object, peers: readonly NetworkPeer[], { states = {}, hasProfiles = true }: Facts = {}) {
  const admin = {
    describes: async () => hasProfiles,
    readHealth: async () => states && Object.entries(states).map(([id, state]) => ({ id: Number(id), state })),
  } as unknown as AdminService;
  const network = { id: 7, name: 'office', private_cidr: range, peers } as unknown as Network;
  return (await findConnector(new Input({ ...flags }, exportTunnel.flags, {}), admin, network))?.id ?? null;
}

describe('the connector that a new device dials', () => {
  const three = [connector(1), connector(2), connector(3)];

  it('is the preferred one', async () => {
    expect(await find({}, three)).toBe(1);
    expect(await find({}, [...three, connector(9, { priority: 5 })])).toBe(9);
  });

  it.each([
    ['offline are passed over', { 1: 'offline', 2: 'online', 3: 'online' }, 2],
    ['not observed are taken', { 1: 'unknown', 2: 'online' }, 1],
    ['offline are taken where no other is there', { 1: 'offline', 2: 'offline', 3: 'offline' }, 1],
    ['unknown to a service that observes none are taken', null, 1],
  ] as const)('of several: those that are %s', async (_, states, id) => {
    expect(await find({}, three, { states })).toBe(id);
  });

  it('is the one that is named, by id before name, also while it is offline', async () => {
    const peers = [connector(1, { name: '2' }), connector(2), connector(3)];
    const states = { 2: 'offline', 3: 'offline' } as const;
    expect(await find({ connector: '2' }, peers, { states })).toBe(2);
    expect(await find({ connector: 'edge-3' }, peers, { states })).toBe(3);
    await expect(find({ connector: 'edge-9' }, peers)).rejects.toThrow(
      'there are: "2" (1), "edge-2" (2), "edge-3" (3)',
    );
    await expect(find({ connector: '1', via: 'all' }, peers)).rejects.toThrow('--connector excludes --via all');
  });

  it.each([
    ['a host that is no connector', connector(1, { peer_type: 'origin' })],
    ['a connector without an endpoint', connector(1, { endpoint: null })],
    ['a suspended one', connector(1, { suspended_at: '2030-01-01T00:00:00Z' })],
    ['one that does not relay', connector(1, { withdrawn: [range] })],
  ])('is never %s', async (_, peer) => {
    expect(await find({}, [peer, connector(2)])).toBe(2);
    await expect(find({ via: 'connectors' }, [peer])).rejects.toThrow('has an endpoint and relays');
    await expect(find({ connector: '1' }, [peer, connector(2)])).rejects.toThrow('is not a connector of office');
  });

  it('is none with --via all, and without a connector or without profiles, which is said', async () => {
    expect([await find({ via: 'all' }, three), said]).toEqual([null, '']);
    expect(await find({}, [connector(1, { peer_type: 'origin' })])).toBeNull();
    expect(said).toContain('the device dials each peer that has an endpoint, and later peers are not in its file');
    expect(await find({}, three, { hasProfiles: false })).toBeNull();
    expect(said).toContain('this control plane has no profiles through a connector');
  });

  it('is refused where it was asked for and the service has no profiles', async () => {
    for (const flags of [{ via: 'connectors' }, { connector: '1' }])
      await expect(find(flags, three, { hasProfiles: false })).rejects.toThrow('use --via all');
  });

  it('is refused where the device would reach no peer', async () => {
    const silent = [connector(1, { endpoint: null })];
    for (const flags of [{}, { via: 'all' }])
      await expect(find(flags, silent)).rejects.toThrow(/no peer of office has an endpoint.*cpn set --endpoint/);
    const origins = [connector(1, { endpoint: null, peer_type: 'origin' })];
    await expect(find({}, origins)).rejects.toThrow(/enrol a connector.*cpn key create 7 --name NAME --type connector/);
  });
});
