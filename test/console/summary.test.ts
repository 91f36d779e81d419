import { expect, test } from 'vitest';
import { findLastEvents, hasTrouble, summarizeNetwork } from '../../src/console/logic/network/summarize.ts';
import type { Event, EventType } from '../../src/contract/event.ts';
import type { Health, PeerHealth, RouteHealth } from '../../src/contract/health.ts';
import type { Peer, PeerType } from '../../src/contract/peer.ts';

const at = '2030-01-01T00:00:00.000Z';
const [office, lab] = ['192.168.1.0/24', '192.168.2.0/24'];

function peer(id: number, name: string, peer_type: PeerType): Peer {
  return { id, name, peer_type, address: `10.77.0.${id}`, public_key: 'k', endpoint: null, created_at: at };
}

function healthOf(id: number, fields: Partial<PeerHealth> = {}): PeerHealth {
  const verdict = { state: 'online', reachable_by: 1, witnesses: 1, why: `why ${id}` } as const;
  const seen = { last_seen: at, version: '0.1.0', platform: null, source_address: null, reported_at: at };
  const rest = { paths: [], routes: [], drift: null, pin_mismatches: [], problem: null };
  return { id, name: `peer-${id}`, ...verdict, ...seen, ...rest, ...fields };
}

const never = { state: 'unknown', never_answered: true } as const;
const up = (route: string, connector: number, standby: number[]): RouteHealth => {
  return { route, state: 'up', connector, standby, why: 'all hosts use it' };
};

const peers = [
  peer(1, 'edge-1', 'connector'),
  peer(2, 'edge-2', 'connector'),
  peer(3, 'web-1', 'origin'),
  peer(4, 'anna', 'admin_device'),
];
const network = { peers, routes: [office, lab] };

function summarize(health: Health) {
  const { troubles, ...rest } = summarizeNetwork(network, health);
  return { ...rest, troubles: troubles.map((each) => `${each.kind} ${'peer' in each ? each.peer.name : each.route}`) };
}

test('while all is well nothing needs attention, and a laptop that is off is only counted', () => {
  const health = {
    peers: [healthOf(1), healthOf(2), healthOf(3), healthOf(4, { state: 'offline' })],
    routes: [up(office, 1, [2]), up(lab, 1, [2])],
  };
  expect(summarize(health)).toEqual({
    counts: { online: 3, offline: 1, unknown: 0 },
    routes: { up: 2, dead: 0, unknown: 0 },
    troubles: [],
  });
});

test('what is down comes first: dead routes, hosts, problems, and a standby that never answered is named as such', () => {
  const dead: RouteHealth = { route: lab, state: 'dead', connector: null, standby: [], why: 'its LAN is down' };
  const health = {
    peers: [healthOf(1, { problem: 'nft failed' }), healthOf(2, never), healthOf(3, { state: 'offline' }), healthOf(4)],
    routes: [up(office, 1, []), dead],
  };
  expect(summarize(health).troubles).toEqual([
    `dead-route ${lab}`,
    'offline web-1',
    'failing edge-1',
    'silent-connector edge-2',
    `no-standby ${office}`,
  ]);
});

test('a route that no host confirms needs attention, once where its connector never answered', () => {
  const unknown: RouteHealth = { route: lab, state: 'unknown', connector: null, standby: [], why: 'never reached' };
  const routes = [up(office, 1, [2]), unknown];
  const summary = summarize({ peers: [healthOf(1), healthOf(2), healthOf(3), healthOf(4)], routes });
  expect(summary).toMatchObject({ routes: { up: 1, dead: 0, unknown: 1 }, troubles: [`unknown-route ${lab}`] });
  const { troubles } = summarize({ peers: [healthOf(1), healthOf(2, never), healthOf(3), healthOf(4)], routes });
  expect(troubles).toContain('silent-connector edge-2');
  expect(troubles).not.toContain(`unknown-route ${lab}`);
});

test('a network needs attention by what the control plane counts, not by a laptop that is off', () => {
  const base = {
    ...{ network: 1, peers: { online: 1, offline: 3, unknown: 0 }, routes: { up: 1, dead: 0, unknown: 0 } },
    ...{ offline_servers: 0, silent_connectors: 0 },
  };
  expect(hasTrouble(base)).toBe(false);
  const [dead, unknown] = [
    { up: 0, dead: 1, unknown: 0 },
    { up: 0, dead: 0, unknown: 1 },
  ];
  for (const fields of [{ offline_servers: 1 }, { silent_connectors: 1 }, { routes: dead }, { routes: unknown }]) {
    expect(hasTrouble({ ...base, ...fields })).toBe(true);
  }
});

test('the last events are the newest that state something of hosts and routes', () => {
  const event = (id: number, type: EventType): Event => {
    return { id, at, type, network: 1, peer: null, route: null, details: {} };
  };
  const events = [
    event(1, 'peer.offline'),
    event(2, 'network.updated'),
    event(3, 'route.dead'),
    event(4, 'peer.online'),
  ];
  expect(findLastEvents(events, 2).map(({ id }) => id)).toEqual([4, 3]);
});
