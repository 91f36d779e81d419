import { describe, expect, it } from 'vitest';
import type { NetworkMap, Peer } from '../../../../src/core/map/model.ts';
import { findKeptSources } from '../../../../src/core/routing/topology/kept-sources.ts';
import { dialled, network, peer, prefix } from '../../samples.ts';

const follows = { followsRelay: true } as const;
const named = peer(1, { type: 'connector', endpoint: dialled(1), ...follows });
const other = peer(2, { type: 'connector', endpoint: dialled(2), ...follows });
const origin = peer(3, { endpoint: dialled(3), ...follows });
const laptop = peer(4, follows);
const old = peer(5);

const keptBy = (self: Peer, peers: readonly Peer[], changes: Partial<NetworkMap> = { relay: 1 }) =>
  findKeptSources(network(peers, changes), self).map(({ from, to, always }) => ({
    from: from.map(({ id }) => id),
    to: to.map(({ id }) => id),
    ...(always && { always }),
  }));

describe('a relay keeps the address of the sender', () => {
  const peers = [named, other, origin, laptop, old];

  it('between hosts without an endpoint, toward those that follow it, in each connection only if it is the named one', () => {
    expect(keptBy(named, peers)).toEqual([{ from: [4, 5], to: [4], always: true }]);
    expect(keptBy(other, peers)).toEqual([{ from: [4, 5], to: [4] }]);
  });

  it('of no peer, if the service names no relay', () => {
    const phone = peer(6, { via: { connector: 1 } });
    expect(keptBy(named, [...peers, phone], {})).toEqual([]);
  });

  it('of TCP connections that began elsewhere alone, if it is the named one and withdrew', () => {
    const drained = { ...named, withdrawn: [prefix('10.77.0.0/24')] };
    expect(keptBy(drained, [drained, other, laptop])).toEqual([{ from: [4], to: [4] }]);
  });

  it('toward no host that it does not reach itself', () => {
    const hidden = { ...named, endpoint: null };
    expect(keptBy(hidden, [hidden, other, origin, laptop])).toEqual([]);
  });

  it('from a device to all hosts that follow, and to it from all, if the device dials only this one', () => {
    const phone = peer(6, { via: { connector: 2 } });
    const toAndFrom = [
      { from: [6], to: [1, 3, 4], always: true },
      { from: [1, 3, 4, 5], to: [6], always: true },
    ];
    expect(keptBy(other, [named, other, origin, laptop, old, phone]).slice(1)).toEqual(
      toAndFrom.map(({ from, to, always }) => ({ from: from.length > 1 ? [...from, 6] : from, to, always })),
    );
    expect(keptBy(named, [named, other, laptop, phone])).toEqual([{ from: [4], to: [4], always: true }]);
  });

  it('from a device that may dial any connector, except to connectors that have it from itself', () => {
    const roaming = peer(6, { via: { connector: null } });
    expect(keptBy(named, [named, other, origin, roaming])).toEqual([
      { from: [6], to: [3], always: true },
      { from: [2, 3, 6], to: [6], always: true },
    ]);
    expect(keptBy(other, [named, other, origin, roaming])[0]).toEqual({ from: [6], to: [3] });
  });
});
