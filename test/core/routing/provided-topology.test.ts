import { describe, expect, test } from 'vitest';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { aliasOf } from '../../../src/core/reconcile/desired.ts';
import { parseConfig } from '../../../src/core/wg-quick/parse.ts';
import { renderConfig } from '../../../src/core/wg-quick/render.ts';
import {
  address,
  desireFor,
  dialled,
  keyPair,
  network,
  options,
  peer,
  prefix,
  underlay,
  usualConstraints,
} from '../samples.ts';

const presharedKey = new Secret(keyPair(90).publicKey);
const self = peer(1, { unlisted: true });
const gate = peer(2, {
  endpoint: dialled(2),
  type: 'connector',
  routes: [prefix('192.168.50.0/24')],
  given: { allowedIps: [prefix('10.77.0.0/24'), prefix('192.168.50.0/24')], presharedKey, keepalive: 21 },
});
const mute = peer(3, { given: { allowedIps: [prefix('10.77.0.3/32')], presharedKey: null, keepalive: null } });
const map = network([gate, mute, self]);

/** What is allowed to each peer, by its id. */
function allowed(desired: ReturnType<typeof desireFor>): Record<string, readonly string[]> {
  const ids = new Map(map.peers.map(({ publicKey, id }) => [publicKey, String(id)]));
  return Object.fromEntries(desired.config.peers.map((each) => [ids.get(each.publicKey), each.allowedIps]));
}

describe('a map of a ready wg-quick text', () => {
  test('is used as given: every peer directly, with endpoint, allowed IPs, preshared key and keepalive', () => {
    const desired = desireFor(self, map);
    expect(allowed(desired)).toEqual({ 2: ['10.77.0.0/24', '192.168.50.0/24'], 3: ['10.77.0.3/32'] });
    expect(desired.config.peers[0]).toMatchObject({ endpoint: dialled(2), keepalive: 21, presharedKey });
    expect(desired.config.peers[1]).toMatchObject({ endpoint: null, keepalive: null, presharedKey: null });
    expect(desired.routes).toEqual(['192.168.50.0/24']);
    expect(desired.report).toMatchObject([{ prefix: '192.168.50.0/24', via: 'peer-2', state: 'taken' }]);
    const written = parseConfig(renderConfig(desired.config));
    expect(written.peers[0]?.presharedKey?.reveal()).toBe(presharedKey.reveal());
  });

  test('has no relay and no relayed peer: a provided topology is used as it is', () => {
    const desired = desireFor(self, map, { failed: [{ peer: 3, back: false }] });
    expect(allowed(desired)).toEqual(allowed(desireFor(self, map)));
    expect(desired.relayedPeers).toEqual([]);
  });

  test('brings no route that is declined', () => {
    const desired = desireFor(self, map, { options: { ...options, acceptRoutes: false } });
    expect(allowed(desired)).toEqual({ 2: ['10.77.0.0/24'], 3: ['10.77.0.3/32'] });
    expect(desired.report).toMatchObject([{ state: 'refused', reason: 'not accepted' }]);
  });

  test('brings no route that the guard refuses, and all of the others', () => {
    const ssh = { ...usualConstraints, sshClients: [{ address: address('192.168.50.7'), local: null }] };
    const desired = desireFor(self, map, {}, ssh);
    expect(allowed(desired)).toEqual({ 2: ['10.77.0.0/24'], 3: ['10.77.0.3/32'] });
    expect(desired.report).toMatchObject([{ state: 'refused', reason: 'covers an SSH client (192.168.50.7)' }]);
  });

  test('brings not even its range where that would cut the host off', () => {
    const lan = [{ prefix: prefix('10.77.0.0/25'), link: 'eth0' }];
    const desired = desireFor(self, map, {}, { ...usualConstraints, underlay: { ...underlay, connected: lan } });
    expect(allowed(desired)).toEqual({ 2: ['192.168.50.0/24'], 3: [] });
    expect(desired.config.address.length).toBe(32);
  });

  test('brings no default route unless a person lets it through', () => {
    const whole = {
      ...gate,
      routes: [prefix('0.0.0.0/0')],
      given: { ...gate.given, allowedIps: [prefix('0.0.0.0/0')] },
    };
    const wide = network([whole as typeof gate, self], { routes: [prefix('0.0.0.0/0')] });
    expect(desireFor(self, wide).config.peers[0]?.allowedIps).toEqual([]);
    const allowed = { ...usualConstraints, allowed: [prefix('0.0.0.0/0')] };
    expect(desireFor(self, wide, {}, allowed).config.peers[0]?.allowedIps).toEqual(['0.0.0.0/0']);
  });
});

describe('a network without a configured range', () => {
  const alone = { cidr: prefix('10.77.0.1/32'), routes: [], id: null };

  test('has its peers one by one', () => {
    const desired = desireFor(self, network([self, peer(2, { endpoint: dialled(2) })], alone));
    expect(desired.config.address).toEqual({ address: '10.77.0.1', length: 32 });
    expect(desired.routes).toEqual(['10.77.0.2/32']);
    expect(desired.alias).toBe(aliasOf(network([], alone)));
  });

  test('routes each peer without an endpoint through the connector', () => {
    const relay = peer(2, { endpoint: dialled(2), type: 'connector' });
    const desired = desireFor(self, network([self, relay, peer(3)], alone));
    expect(desired.config.peers.map(({ allowedIps }) => allowedIps)).toEqual([['10.77.0.2/32', '10.77.0.3/32']]);
  });

  test('has no peer at an address that would cut the host off', () => {
    const resolver = peer(2, { endpoint: dialled(2), address: address('198.51.100.53') });
    const desired = desireFor(self, network([self, resolver, peer(3, { endpoint: dialled(3) })], alone));
    expect(desired.routes).toEqual(['10.77.0.3/32']);
  });

  test('is forwarded for by a connector, address by address', () => {
    const connector = peer(1, { type: 'connector', endpoint: dialled(1) });
    const { firewall } = desireFor(
      connector,
      network([connector, peer(2)], { ...alone, routes: [prefix('192.168.50.0/24')] }),
    );
    const inward = firewall?.rules.find(({ name }) => name === 'accept-inward');
    expect(inward?.text).toBe('iifname "cpn0" ip saddr { 10.77.0.1/32, 10.77.0.2/32 } ip daddr 192.168.50.0/24 accept');
  });
});

test('no peer of a wg-quick text gets a route that this host serves, or has out of service', () => {
  const route = prefix('192.168.50.0/24');
  for (const withdrawn of [[], [route]]) {
    const serving = { ...self, type: 'connector' as const, endpoint: dialled(1), withdrawn };
    const desired = desireFor(serving, network([gate, mute, serving]));
    expect(allowed(desired)).toEqual({ 2: ['10.77.0.0/24'], 3: ['10.77.0.3/32'] });
    expect(desired.report).toMatchObject([{ prefix: route, state: withdrawn.length === 0 ? 'served' : 'withdrawn' }]);
  }
});
