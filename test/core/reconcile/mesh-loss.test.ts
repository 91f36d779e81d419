import { describe, expect, it } from 'vitest';
import type { NetworkMap } from '../../../src/core/map/model.ts';
import {
  type ComparedPeers,
  dropsMost,
  findMeshLoss,
  presentTunnel,
  type Tunnel,
} from '../../../src/core/reconcile/mesh-loss.ts';
import { plan } from '../../../src/core/reconcile/plan.ts';
import {
  address,
  bare,
  desireFor,
  dialled,
  keyPair,
  network,
  peer,
  prefix,
  underlay,
  usualConstraints,
} from '../samples.ts';
import { simulate } from '../simulate.ts';

/** A host that can be dialled, and so has each of the others as a peer. */
const self = peer(1, { endpoint: dialled(1) });
const hub = peer(2, { type: 'connector', endpoint: dialled(2) });
const office = network([self, hub, peer(3), peer(4), peer(5)]);
const before = desireFor(self, office).config;
const listing = (newest: NetworkMap, isBelieved = true, known = office): ComparedPeers => ({
  known: known.peers,
  newest: newest.peers,
  isBelieved,
});
const without = (...numbers: number[]): Tunnel => ({
  ...before,
  peers: before.peers.filter(({ publicKey }) => !numbers.some((each) => keyPair(each).publicKey === publicKey)),
});
const lossOf = (after: Tunnel, newest = office, isBelieved = true) =>
  findMeshLoss(before, after, listing(newest, isBelieved));

describe('the mesh loss of a change', () => {
  it('is null if the change removes nothing, adds, or removes a route', () => {
    expect(lossOf(before)).toBeNull();
    expect(findMeshLoss(without(3, 4, 5), before, listing(office))).toBeNull();
    expect(lossOf(desireFor(self, { ...office, routes: [] }).config)).toBeNull();
  });

  it('is the range, or this host’s own address', () => {
    const connected = [{ prefix: prefix('10.77.0.128/25'), link: 'eth1' }];
    const overlapped = desireFor(
      self,
      office,
      {},
      { ...usualConstraints, underlay: { ...underlay, connected } },
    ).config;
    expect(lossOf(overlapped)).toBe("the network's range 10.77.0.0/24");
    expect(lossOf(desireFor(self, { ...office, cidr: prefix('10.77.0.0/25') }).config)).toMatch(/range/);
    expect(lossOf(desireFor(self, { ...office, cidr: prefix('10.77.0.0/16') }).config)).toBeNull();
    expect(findMeshLoss(overlapped, before, listing(office))).toBeNull();
    const moved = { ...before, address: { address: address('10.77.0.9'), length: 24 } };
    expect(lossOf(moved)).toBe("this host's own address 10.77.0.1");
  });

  it('is more than half of the peers, and not half of them', () => {
    expect(lossOf(without(3, 4))).toBeNull();
    // Of six peers three are left; with one of them under a new key, it is no more than half either.
    const six = network([self, hub, peer(3), peer(4), peer(5), peer(6), peer(7)]);
    const all = desireFor(self, six).config;
    const left = (...numbers: number[]): Tunnel => ({
      ...all,
      peers: all.peers.filter(({ publicKey }) => numbers.some((each) => keyPair(each).publicKey === publicKey)),
    });
    expect(findMeshLoss(all, left(2, 3, 4), listing(six, false, six))).toBeNull();
    expect(findMeshLoss(all, left(2, 3), listing(six, false, six))).toBe('4 of 6 peers');
    const strange = {
      ...left(2, 3),
      peers: [...left(2, 3).peers, { publicKey: keyPair(30).publicKey, allowedIps: [] }],
    };
    expect(findMeshLoss(strange, left(2), listing(six, true, { ...six, peers: six.peers.slice(0, 3) }))).toBeNull();
    expect(lossOf(without(3, 4, 5))).toBe('3 of 4 peers');
    // Behind a NAT all others are met through the connector.
    const behind = network([peer(1), ...office.peers.slice(1)]);
    expect(lossOf(desireFor(peer(1), behind).config, behind)).toBe('3 of 4 peers');
  });

  it('is a peer that is left without allowed IPs too, unless it is reached through another', () => {
    const empty = { ...before, peers: before.peers.map((each) => ({ ...each, allowedIps: [] })) };
    expect(lossOf(empty)).toBe('4 of 4 peers');
    const [first, ...others] = empty.peers;
    const through = { ...before, peers: [{ ...first, allowedIps: [office.cidr] }, ...others] } as Tunnel;
    expect(lossOf(through)).toBeNull();
  });

  it('is no peer that had no allowed IPs before either', () => {
    const [one, ...others] = before.peers;
    const used = { ...before, peers: [one, ...others.map((each) => ({ ...each, allowedIps: [] }))] } as Tunnel;
    expect(findMeshLoss(used, { ...used, peers: used.peers.slice(0, 1) }, listing(office))).toBeNull();
    expect(findMeshLoss(used, { ...used, peers: used.peers.slice(1) }, listing(office))).toBe('1 of 1 peers');
  });

  it('excludes peers that are no longer listed, once the removal is accepted', () => {
    const fewer = network([self, hub]);
    expect(lossOf(without(3, 4, 5), fewer)).toBeNull();
    expect(lossOf(without(3, 4, 5), fewer, false)).toBe('3 of 4 peers');
    // Of those that are listed still, most go.
    expect(lossOf(without(2, 3, 4, 5), network([self, hub, peer(3)]))).toBe('2 of 2 peers');
  });

  it('excludes peers with a new key, and peers that the network never listed', () => {
    const renewed = network([
      self,
      hub,
      ...[3, 4, 5].map((each) => peer(each, { publicKey: keyPair(each + 10).publicKey })),
    ]);
    expect(lossOf(desireFor(self, renewed).config, renewed, false)).toBeNull();
    const strangers = [20, 21, 22, 23, 24, 25].map((each) => ({
      publicKey: keyPair(each).publicKey,
      allowedIps: [prefix('10.77.0.99/32')],
    }));
    expect(
      findMeshLoss({ ...before, peers: [...before.peers, ...strangers] }, before, listing(office, false)),
    ).toBeNull();
  });

  it('is computed from the host’s interface if there is no file', () => {
    const desired = desireFor(self, office);
    const host = simulate(bare, plan(desired, bare, 0));
    expect(presentTunnel(bare, before.address)).toBeNull();
    const link = host.link && {
      ...host.link,
      addresses: [{ address: address('172.30.0.1'), length: 30 }, ...host.link.addresses],
    };
    expect(presentTunnel({ ...host, link }, before.address)?.address).toEqual(before.address);
    expect(presentTunnel({ ...host, device: null }, before.address)).toBeNull();
    const present = presentTunnel(host, before.address) as Tunnel;
    expect(findMeshLoss(present, without(3, 4, 5), listing(office))).toBe('3 of 4 peers');
  });
});

it('a map drops most peers that lists less than half of the others, under the same or new keys', () => {
  const drops = (newer: NetworkMap) => dropsMost(office, newer, [self.publicKey]);
  expect(drops(office)).toBe(false);
  expect(drops(network([self, hub, peer(3)]))).toBe(false);
  expect(drops(network([self, hub, peer(20), peer(21), peer(22)]))).toBe(true);
  expect(drops(network([self, hub, peer(3, { publicKey: keyPair(13).publicKey })]))).toBe(false);
  expect(drops(network([self]))).toBe(true);
  // This host is none of the others: half of two are left, not two of three.
  const three = network([self, hub, peer(3), peer(4)]);
  expect(dropsMost(three, network([self, hub]), [self.publicKey])).toBe(true);
  expect(dropsMost(network([self, hub, peer(3)]), network([hub]), [self.publicKey])).toBe(false);
});

it('a peer that only the newest map lists is not lost, with its key or with another of its id', () => {
  const { peers } = before;
  const known = { ...office, peers: [self, hub] };
  const fresh = network([self, hub, peer(3), peer(4), peer(5)]);
  const toRelay = { ...before, peers: peers.map((each) => ({ ...each, allowedIps: [] })) };
  expect(findMeshLoss(before, toRelay, listing(fresh, true, known))).toBe('4 of 4 peers');
  expect(findMeshLoss(before, toRelay, listing({ ...fresh, peers: [self, hub] }, true, known))).toBe('1 of 1 peers');
});
