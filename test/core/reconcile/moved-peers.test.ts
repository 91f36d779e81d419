import { describe, expect, it } from 'vitest';
import type { NetworkMap } from '../../../src/core/map/model.ts';
import type { Resolved } from '../../../src/core/names/resolved-names.ts';
import { parseEndpoint } from '../../../src/core/net/endpoint.ts';
import { findMovedPeers } from '../../../src/core/reconcile/moved-peers.ts';
import { address, desireFor, keyPair, network, peer } from '../samples.ts';

const self = peer(1);
const resolved: Resolved = {
  'edge.example': [address('203.0.113.2')],
  'other.example': [address('203.0.113.3')],
};
/** A network whose connector is said to be there. */
const officeAt = (endpoint: string | null): NetworkMap =>
  network([self, peer(2, { type: 'connector', endpoint: endpoint === null ? null : parseEndpoint(endpoint) })]);

/** Whether the connector moved for a host on which `before` was applied last. */
function hasMoved(before: string | null, after: string | null, now = resolved): boolean {
  const config = (endpoint: string | null, names: Resolved) =>
    desireFor(self, officeAt(endpoint), { resolved: names }).config;
  const moved = findMovedPeers(config(after, now), config(before, resolved), { map: officeAt(after), resolved: now });
  return moved.has(keyPair(2).publicKey);
}

describe('a peer moved', () => {
  it.each([
    ['203.0.113.2:51820', '203.0.113.3:51820'],
    ['203.0.113.2:51820', '203.0.113.2:51821'],
    ['203.0.113.2:51820', 'other.example:51820'],
    ['edge.example:51820', 'other.example:51820'],
    ['edge.example:51820', 'edge.example:51821'],
    ['edge.example:51820', '203.0.113.3:51820'],
  ])('when its endpoint was %s and is %s', (before, after) => {
    expect(hasMoved(before, after)).toBe(true);
  });

  it.each([
    ['203.0.113.2:51820', '203.0.113.2:51820'],
    ['203.0.113.2:51820', 'edge.example:51820'],
    ['203.0.113.2:51820', null],
  ])('not when its endpoint was %s and is %s', (before, after) => {
    expect(hasMoved(before, after)).toBe(false);
  });

  it('not when only the addresses of its name changed', () => {
    const now = { ...resolved, 'edge.example': [address('198.51.100.1'), address('203.0.113.2')] };
    expect(hasMoved('edge.example:51820', 'edge.example:51820', now)).toBe(false);
  });

  it('not when the last applied configuration is unknown, or the peer is new', () => {
    const map = officeAt('203.0.113.2:51820');
    const { config } = desireFor(self, map);
    const place = { map, resolved };
    expect(findMovedPeers(config, null, place).size).toBe(0);
    expect(findMovedPeers(config, { ...config, peers: [] }, place).size).toBe(0);
  });
});

it('a peer moved that had no endpoint before', () => {
  const dialledSelf = { ...self, endpoint: parseEndpoint('203.0.113.9:51820') };
  const at = (endpoint: string | null) => ({
    ...officeAt(endpoint),
    peers: [dialledSelf, ...officeAt(endpoint).peers.slice(1)],
  });
  const config = (endpoint: string | null) => desireFor(dialledSelf, at(endpoint)).config;
  const [before, after] = [config(null), config('203.0.113.2:51820')];
  expect(before.peers).toHaveLength(1);
  const moved = findMovedPeers(after, before, { map: at('203.0.113.2:51820'), resolved });
  expect([...moved]).toEqual([keyPair(2).publicKey]);
});
