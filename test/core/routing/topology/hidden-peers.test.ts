import { describe, expect, it } from 'vitest';
import { findHiddenPeers } from '../../../../src/core/routing/topology/topology.ts';
import { address, network, peer, prefix, underlay } from '../../samples.ts';

const map = network([peer(1), peer(2), peer(3)]);
const own = address('10.77.0.1');

describe('a peer whose address this host has itself', () => {
  it('is found, with the interface that has it', () => {
    const connected = [
      ...underlay.connected,
      { prefix: prefix('10.77.0.3/32'), link: 'cpn1' },
      { prefix: prefix('10.77.0.9/32'), link: 'cpn1' },
    ];
    expect(findHiddenPeers(map, own, { ...underlay, connected })).toEqual([{ peer: peer(3), link: 'cpn1' }]);
    expect(findHiddenPeers(map, own, underlay)).toEqual([]);
  });

  it('is not this host, which may have one address in two networks', () => {
    const connected = [{ prefix: prefix('10.77.0.1/32'), link: 'cpn1' }];
    expect(findHiddenPeers(map, own, { ...underlay, connected })).toEqual([]);
  });
});
