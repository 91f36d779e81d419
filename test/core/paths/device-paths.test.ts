import { describe, expect, it } from 'vitest';
import type { ActualPeer, Device } from '../../../src/core/host-state/actual.ts';
import type { Peer } from '../../../src/core/map/model.ts';
import { hostPrefix } from '../../../src/core/net/cidr.ts';
import { findDevicePaths, isTrial } from '../../../src/core/paths/device-paths.ts';
import { isForProbes, probeAddressOf, probePrefixOf } from '../../../src/core/paths/probe-address.ts';
import { dialled, network, peer, prefix } from '../samples.ts';

describe('a probe address', () => {
  it('is link-local, and never changes', () => {
    // Peers of other versions send echoes to it.
    expect(probeAddressOf(7, 3)).toMatchInlineSnapshot(`"fe80::6604:d936:d1d:9273"`);
    expect(isForProbes(probePrefixOf(7, 3))).toBe(true);
    expect(isForProbes(prefix('fe80::/10'))).toBe(false);
  });

  it('differs between networks, peers, and ids of two kinds', () => {
    const all = [probeAddressOf(7, 3), probeAddressOf(7, 4), probeAddressOf(8, 3), probeAddressOf(7, '3')];
    expect(new Set(all).size).toBe(4);
  });
});

const now = 1_800_000_000;
const self = peer(1);
const map = network([self, peer(2), peer(3), peer(4, { endpoint: dialled(4) })]);

const entry = (of: Peer, allowedIps: ActualPeer['allowedIps'], changes: Partial<ActualPeer> = {}): ActualPeer => ({
  ...{ publicKey: of.publicKey, presharedKey: null, endpoint: null, allowedIps, keepalive: 25 },
  ...{ latestHandshake: now - 120, rxBytes: 0, txBytes: 0, ...changes },
});
const deviceOf = (...peers: ActualPeer[]): Device => ({ publicKey: null, listenPort: 51820, fwmark: null, peers });
const both = (of: Peer) => [hostPrefix(of.address), probePrefixOf(7, of.id)];

describe('the paths of a device', () => {
  it('are the peers without an endpoint that have their own address and their probe address', () => {
    expect(findDevicePaths(null, map, self, now)).toEqual([]);
    expect(findDevicePaths(deviceOf(entry(peer(2), both(peer(2)))), map, self, now)).toEqual([2]);
  });

  it.each<[string, ActualPeer]>([
    ['under trial', entry(peer(2), [probePrefixOf(7, 2)])],
    ['with its address alone', entry(peer(2), [hostPrefix(peer(2).address)])],
    ['with the probe address of another', entry(peer(2), [hostPrefix(peer(2).address), probePrefixOf(7, 3)])],
    ['whose session is dead', entry(peer(2), both(peer(2)), { latestHandshake: now - 181 })],
    ['without a session', entry(peer(2), both(peer(2)), { latestHandshake: null })],
    ['with an endpoint in the map', entry(peer(4), both(peer(4)))],
    ['that is not in the map', entry(peer(9), both(peer(9)))],
  ])('leave out a peer %s', (_, found) => {
    expect(findDevicePaths(deviceOf(found), map, self, now)).toEqual([]);
  });

  it('are none on a host with an endpoint, and in a network without an id', () => {
    const device = deviceOf(entry(peer(2), both(peer(2))));
    expect(findDevicePaths(device, map, { ...self, endpoint: dialled(1) }, now)).toEqual([]);
    expect(findDevicePaths(device, { ...map, id: null }, self, now)).toEqual([]);
  });
});

describe('a peer under trial', () => {
  const triable = new Set([peer(2).publicKey]);
  const probe = [probePrefixOf(7, 2)];

  it('has its probe address alone, and began a short while ago', () => {
    expect(isTrial(entry(peer(2), probe, { latestHandshake: null, txBytes: 644 }), triable, now)).toBe(true);
    expect(isTrial(entry(peer(2), probe, { latestHandshake: now - 5, txBytes: 90_000 }), triable, now)).toBe(true);
  });

  it('is none if it carries packets, is unknown, or its attempt ended long ago', () => {
    expect(isTrial(entry(peer(2), both(peer(2))), triable, now)).toBe(false);
    expect(isTrial(entry(peer(2), []), triable, now)).toBe(false);
    expect(isTrial(entry(peer(3), probe), triable, now)).toBe(false);
    expect(isTrial(entry(peer(2), probe, { latestHandshake: null, txBytes: 1_100 }), triable, now)).toBe(false);
    expect(isTrial(entry(peer(2), probe, { latestHandshake: now - 61 }), triable, now)).toBe(false);
  });
});
