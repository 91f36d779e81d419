import { describe, expect, it } from 'vitest';
import { emptiesTunnel, identifyMap, withoutRemoved, withoutUnlisted } from '../../../src/core/map/map-validation.ts';
import type { NetworkMap, Peer } from '../../../src/core/map/model.ts';
import { dialled, keyPair, network, peer, prefix } from '../samples.ts';

const self = peer(1);
const full = network([self, peer(2), peer(3)]);
const empties = (known = full, newer = full) => emptiesTunnel(known, newer, [self.publicKey]);

describe('a newer map empties the tunnel', () => {
  it('it does when it lists no peer', () => expect(empties(full, network([]))).toBe(true));
  it('it does when it lists this host alone', () => expect(empties(full, network([self]))).toBe(true));
  it('it does when it lists all peers but this host', () =>
    expect(empties(full, network([peer(2), peer(3)]))).toBe(true));
  it('it does not when it lists one peer less', () => expect(empties(full, network([self, peer(2)]))).toBe(false));
  it('it does not when there was no other peer before', () =>
    expect(empties(network([self]), network([self]))).toBe(false));
  it('it does not when the service states that all the others are gone, but does when it states it of some', () => {
    expect(empties(withoutRemoved(full, [2, 3]), network([self]))).toBe(false);
    expect(empties(withoutRemoved(full, [2]), network([self]))).toBe(true);
    expect(empties(withoutRemoved(full, [2, 3]), network([]))).toBe(true);
  });
  it('it does not when this host was not in the one before either', () => {
    expect(empties(network([]), network([]))).toBe(false);
    expect(empties(network([peer(2)]), network([peer(2)]))).toBe(false);
  });
});

describe('a service that lists the others alone', () => {
  const own = peer(1, { unlisted: true });
  const keep = (known: NetworkMap, newer: NetworkMap) => withoutUnlisted(known, newer, [self.publicKey]);

  it('removes no peer by not listing this host', () => {
    const kept = keep(network([peer(2), own]), network([peer(3)]));
    expect(kept.peers).toEqual([peer(3), own]);
    expect(keep(kept, network([peer(4)])).peers).toEqual([peer(4), own]);
  });

  it('is believed when it once listed this host, and when it does now', () => {
    expect(keep(full, network([peer(2)])).peers).toEqual([peer(2)]);
    expect(keep(network([own]), full)).toBe(full);
  });

  it('is believed when it gave the address of this host to another', () => {
    const newOwner = peer(5, { address: own.address });
    expect(keep(network([own]), network([newOwner])).peers).toEqual([newOwner]);
    // A peer that the service lists with the id of this host is this host, whatever its address.
    const moved = peer(6, { id: own.id });
    expect(keep(network([own]), network([moved])).peers).toEqual([moved]);
  });
});

describe('the name of a map', () => {
  const unnamed = { revision: null };

  it('is its revision', () => expect(identifyMap(full)).toBe('"1"'));

  it('without a revision is the same for the same content, in whatever order its fields came', () => {
    const one = network([peer(1, { endpoint: dialled(1) })], unnamed);
    const turned = network(
      one.peers.map((each) => Object.fromEntries(Object.entries(each).reverse()) as typeof each),
      unnamed,
    );
    expect(identifyMap(turned)).toBe(identifyMap(one));
  });

  it.each<[string, Partial<Peer>]>([
    ['name', { name: 'db' }],
    ['kind', { type: 'connector' }],
    ['key', { publicKey: peer(9).publicKey }],
    ['address', { address: peer(9).address }],
    ['endpoint', { endpoint: dialled(9) }],
    ['routes', { routes: [] }],
    ['routes out of service', { withdrawn: [prefix('192.168.50.0/24')] }],
    ['time in service', { servingSince: 1 }],
    ['priority', { priority: 1 }],
    ['connector', { via: { connector: 1 } }],
    ['use of the relay', { followsRelay: true }],
    ['masquerading', { masquerades: true }],
    ['prefixes of a wg-quick text', { given: { allowedIps: [], presharedKey: null, keepalive: null } }],
  ])('without a revision is another for another %s of a peer', (_, changes) => {
    const nameWith = (more: Partial<Peer>) => identifyMap(network([peer(1), peer(2, more)], unnamed));
    expect(nameWith(changes)).not.toBe(nameWith({}));
    const skipped = { id: 3, name: null, publicKey: null, address: null, reason: 'key' };
    expect(identifyMap(network([peer(1)], { ...unnamed, skipped: [skipped] }))).not.toBe(
      identifyMap(network([peer(1)], unnamed)),
    );
  });

  it('without a revision tells apart connectors, keys and keepalives of peers', () => {
    const given = (keepalive: number | null, key: number | null) => ({
      given: { allowedIps: [], presharedKey: key === null ? null : keyPair(key).privateKey, keepalive },
    });
    const variants: Partial<Peer>[] = [
      { via: { connector: 1 } },
      { via: { connector: 3 } },
      { via: { connector: null } },
      given(null, null),
      given(25, null),
      given(null, 8),
      given(null, 9),
    ];
    const names = variants.map((changes) => identifyMap(network([peer(1), peer(2, changes)], unnamed)));
    expect(new Set(names).size).toBe(names.length);
  });

  it('without a revision is another for other content', () => {
    const names = [
      network([peer(1)], unnamed),
      network([peer(1, { endpoint: dialled(1) })], unnamed),
      network([peer(1), peer(2)], unnamed),
      network([peer(1)], { ...unnamed, routes: [] }),
      network([peer(1)], { ...unnamed, relay: 1 }),
      network([peer(1)], { ...unnamed, relay: 2 }),
    ].map(identifyMap);
    expect(new Set(names).size).toBe(names.length);
  });
});
