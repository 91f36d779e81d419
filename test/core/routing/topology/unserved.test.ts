import { describe, expect, it } from 'vitest';
import type { Peer } from '../../../../src/core/map/model.ts';
import { findUnserved } from '../../../../src/core/routing/topology/withdrawal.ts';
import { dialled, network, peer, prefix } from '../../samples.ts';

const [lan, other] = [prefix('192.168.50.0/24'), prefix('192.168.60.0/24')];
const range = prefix('10.77.0.0/24');
const self = peer(1, { type: 'connector', endpoint: dialled(1) });
const edge = (changes: Partial<Peer> = {}) => peer(2, { type: 'connector', endpoint: dialled(2), ...changes });
const clients = [peer(3, { name: 'laptop' }), peer(4, { name: 'phone' })];
const find = (peers: readonly Peer[], failed: Parameters<typeof findUnserved>[2] = []) =>
  findUnserved(network([self, ...peers, ...clients], { routes: [lan, other] }), self, failed);

describe('what nothing serves once a connector is drained', () => {
  it('is everything that the only connector serves, relaying included', () => {
    expect(find([])).toEqual({ routes: [lan, other], relayed: ['laptop', 'phone'] });
  });

  it('is nothing where another connector serves it', () => {
    expect(find([edge()])).toEqual({ routes: [], relayed: [] });
  });

  it('is what the other one is not assigned, or has out of service', () => {
    expect(find([edge({ routes: [lan] })]).routes).toEqual([other]);
    expect(find([edge({ withdrawn: [other, range] })])).toEqual({
      routes: [other],
      relayed: ['laptop', 'phone'],
    });
  });

  it('is no relaying where this one does not relay, or where at most one peer needs it', () => {
    const all = (own: Peer, ...peers: Peer[]) => findUnserved(network([own, ...peers]), own, []).relayed;
    expect(all(self, ...clients)).toEqual(['laptop', 'phone']);
    expect(all({ ...self, withdrawn: [range] }, ...clients)).toEqual([]);
    expect([all(self, clients[0] as Peer), all(self)]).toEqual([[], []]);
    expect(all(self, clients[0] as Peer, { ...(clients[1] as Peer), endpoint: dialled(4) })).toEqual([]);
  });

  it('is everything where the other one does not answer', () => {
    expect(find([edge()], [{ peer: 2, back: false }]).routes).toEqual([lan, other]);
    expect(find([edge()], [{ peer: 2, back: true }]).routes).toEqual([]);
  });
});
