import { expect, it } from 'vitest';
import type { SshClient } from '../../../src/core/host-state/actual.ts';
import { plan } from '../../../src/core/reconcile/plan.ts';
import { findServiceRoute, findTunnelledSessions } from '../../../src/core/routing/tunnelled-connections.ts';
import { address, bare, desireFor, dialled, network, peer, prefix, underlay, usualConstraints } from '../samples.ts';
import { simulate } from '../simulate.ts';

const dc = peer(2, { type: 'connector', endpoint: dialled(2) });
const self = peer(1);
const map = network([self, dc], { routes: [prefix('192.168.50.0/24')] });
const up = simulate(bare, plan(desireFor(self, map, {}, usualConstraints), bare, 1_800_000_000));

const [outside, inLan] = ['203.0.113.22', '172.16.0.2'];
const cases: [string, client: string, local: string | null, ends: boolean][] = [
  ['a peer', '10.77.0.2', self.address, true],
  ['a peer that uses another address of this host', '10.77.0.2', inLan, true],
  ['a client behind the connector', '192.168.50.7', inLan, true],
  ['a client behind the connector, without the address it came to', '192.168.50.7', null, true],
  ['a container that uses the tunnel address', '172.17.0.2', self.address, true],
  ['a client outside', '198.51.100.7', outside, false],
];

it.each(cases)('%s: the session ends with the tunnel, or not', (_, client, local, ends) => {
  const session: SshClient = { address: address(client), local: local === null ? null : address(local) };
  expect(findTunnelledSessions([session], self.address, up)).toEqual(ends ? [session] : []);
  // Without an interface nothing goes through it.
  expect(findTunnelledSessions([session], self.address, { ...up, link: null })).toEqual([]);
});

it('a client does not count that a subnet of this host or a throw route leads elsewhere', () => {
  const session: SshClient = { address: address('192.168.50.7'), local: address(inLan) };
  const find = (host: typeof up) => findTunnelledSessions([session], self.address, host);
  const connected = [{ prefix: prefix('192.168.50.0/25'), link: 'eth0' }];
  expect(find(up)).toEqual([session]);
  expect(find({ ...up, underlay: { ...underlay, connected } })).toEqual([]);
  expect(find({ ...up, throwRoutes: [{ prefix: prefix('192.168.50.7/32'), table: '8350' }] })).toEqual([]);
});

it.each<[string, addresses: readonly string[], allowed: readonly string[], route: string | null]>([
  ['in an accepted route', ['192.168.50.1'], [], '192.168.50.0/24'],
  ['in two accepted routes', ['192.168.60.1', '192.168.50.1'], [], '192.168.60.0/24'],
  ['with an address outside, which stays reachable', ['192.168.50.1', '198.51.100.9'], [], null],
  ['with an address outside that is tried first', ['198.51.100.9', '192.168.50.1'], [], null],
  ['in an allowed route', ['192.168.50.1'], ['192.168.50.0/24'], null],
  ['in an accepted and an allowed route', ['192.168.50.1', '192.168.60.1'], ['192.168.60.0/24'], null],
  ['in a full tunnel, whose rules keep it outside', ['198.51.100.9'], [], null],
  ['whose name has no address', [], [], null],
])('the control plane %s needs a route of the network, or none', (_, addresses, allowed, route) => {
  const routes = ['192.168.50.0/24', '192.168.60.0/24', '0.0.0.0/0'].map(prefix);
  expect(findServiceRoute({ routes, allowed: allowed.map(prefix) }, addresses.map(address))).toBe(route);
});
