import { describe, expect, it } from 'vitest';
import type { PeerFailure } from '../../../src/core/map/model.ts';
import {
  explainFullTunnel,
  remedyOfMissing,
  remedyOfRefused,
  reportRoute,
} from '../../../src/core/routing/route-report.ts';
import type { RouteOwner } from '../../../src/core/routing/topology/route-owner.ts';
import { dialled, network, peer, prefix } from '../samples.ts';

const [lan, exit] = [prefix('192.168.50.0/24'), prefix('0.0.0.0/0')];
const dc = peer(1, { name: 'dc', type: 'connector', endpoint: dialled(1) });
const spare = peer(2, { name: 'spare', type: 'connector', endpoint: dialled(2) });
const relay = peer(3, { name: 'relay', type: 'connector', endpoint: dialled(3) });
const owner = (changes: Partial<RouteOwner> = {}): RouteOwner => ({
  ...{ prefix: lan, via: dc, hop: dc, standby: [spare], note: null },
  ...changes,
});
const report = (route: RouteOwner, failed: readonly PeerFailure[] = [], peers = [dc, spare, relay]) =>
  reportRoute(route, { map: network(peers), failed, tunnelled: new Map() }, () => null);
const alone = { hop: null, standby: [] };

describe('the report of a route', () => {
  it.each<[string, Partial<RouteOwner>, string | null, string, string | null]>([
    ['served here', { ...alone, via: null, note: 'served here' }, null, 'served', null],
    ['withdrawn here', { ...alone, via: null, note: 'withdrawn here' }, null, 'withdrawn', null],
    ['not accepted', { ...alone, note: 'not accepted' }, 'dc', 'refused', 'not accepted'],
    ['without a hop', { ...alone }, 'dc', 'missing', null],
    ['without a connector', { ...alone, via: null, note: 'no connector' }, null, 'missing', 'no connector'],
  ])('%s has one entry', (_, changes, via, state, reason) => {
    const peers = reason === 'no connector' ? [peer(4)] : undefined;
    expect(report(owner(changes), [], peers)).toEqual([{ prefix: lan, via, state, reason }]);
  });

  it('that is taken has an entry for each connector that would take over', () => {
    expect(report(owner())).toEqual([
      { prefix: lan, via: 'dc', state: 'taken', reason: null },
      { prefix: lan, via: 'spare', state: 'standby', reason: null },
    ]);
  });

  it('says of each connector how it answers, and nothing of the relay in between', () => {
    const failed = [
      { peer: 1, back: false },
      { peer: 2, back: true },
    ];
    const reasons = (list: readonly PeerFailure[], changes = {}) =>
      report(owner(changes), list).map(({ reason }) => reason);
    expect(reasons(failed)).toEqual(['does not answer', expect.stringContaining('answers again')]);
    expect(reasons([{ peer: 3, back: false }], { hop: relay })).toEqual([null, null]);
    expect(reasons([{ peer: 1, back: true }], { hop: relay })).toEqual([
      expect.stringContaining('answers again'),
      null,
    ]);
    expect(reasons(failed, { prefix: exit })[0]).toBeNull();
  });

  it('is refused by the guard first, and then because of the endpoints of its connectors', () => {
    const tunnelled = new Map([[lan, 'covers the endpoint of dc']]);
    const reasonOf = (refuse: string | null) =>
      reportRoute(owner(), { map: network([dc]), failed: [], tunnelled }, () => refuse).map(({ reason }) => reason);
    expect([reasonOf('overlaps'), reasonOf(null)]).toEqual([['overlaps'], ['covers the endpoint of dc']]);
  });
});

describe('a route without a connector', () => {
  const reasonWith = (...peers: (typeof dc)[]) =>
    report(owner({ ...alone, via: null, note: 'no connector' }), [], peers)[0]?.reason;
  const hidden = (number: number, changes = {}) =>
    peer(number, { name: `edge-${number}`, type: 'connector', ...changes });

  it.each<[string, (typeof dc)[], string]>([
    ['no peer', [], 'no connector'],
    ['no connector', [peer(5)], 'no connector'],
    ['a connector without endpoint', [hidden(5)], 'no connector in reach; edge-5 has no endpoint'],
    ['two of them', [hidden(5), hidden(6)], 'no connector in reach; edge-5, edge-6 have no endpoint'],
    ['one that serves another route', [hidden(5, { routes: [exit] })], 'no connector'],
    [
      'one that serves it among others',
      [hidden(5, { routes: [lan] })],
      'no connector in reach; edge-5 has no endpoint',
    ],
    ['one that withdrew it', [hidden(5, { withdrawn: [lan] })], 'no connector; out of service at edge-5'],
    ['one with endpoint that withdrew it', [{ ...dc, withdrawn: [lan] }], 'no connector; out of service at dc'],
    [
      'one that has an endpoint, and one that has none',
      [dc, hidden(5)],
      'no connector in reach; edge-5 has no endpoint',
    ],
  ])('says what its connectors lack: %s', (_, peers, reason) => expect(reasonWith(...peers)).toBe(reason));

  it('has a remedy for each reason', () => {
    const endpoint = 'give the connector an endpoint, on its host: cpn set --endpoint HOST:PORT';
    const start = 'start a connector for it, or put one back into service';
    expect(remedyOfMissing('no connector in reach; edge-5 has no endpoint')).toBe(endpoint);
    expect(remedyOfMissing('no connector')).toBe(start);
    expect(remedyOfMissing('no connector; out of service at dc')).toBe(start);
    expect(remedyOfMissing('it is not on this host')).toBeNull();
  });
});

it.each([
  ['not accepted', '"cpn set cpn0 --accept-routes"'],
  ['lies within 10.77.0.0/24, the network itself', null],
  ['covers the endpoint of dc, which serves it (192.168.50.1)', null],
  [null, null],
  ['covers a resolver (192.168.50.53)', '"cpn set cpn0 --allow-route 192.168.50.0/24"'],
])('a refused route has a remedy only where an option lets it through: %s', (reason, remedy) => {
  const given = remedyOfRefused({ prefix: lan, reason }, 'cpn0');
  if (remedy === null) expect(given).toBeNull();
  else expect(given).toContain(remedy);
});

it.each([
  [true, true, 'IPv6 is rejected'],
  [false, true, 'IPv6 goes outside the tunnel'],
  [true, false, 'DNS queries to the resolver go outside the tunnel; IPv6 is rejected'],
  [false, false, 'IPv6 and DNS queries to the resolver go outside the tunnel'],
])('a full tunnel says what goes outside (IPv6 rejected: %s, DNS inside: %s)', (rejects, isInside, text) => {
  expect(explainFullTunnel(rejects, isInside)).toBe(text);
});
