import { describe, expect, test } from 'vitest';
import { mostPaths, mostRoutes, type PathState, type Report, type RoutePath } from '../../../src/contract/health.ts';
import { type MergedReport, mergeReport, readReport } from '../../../src/control-plane/health/merge-report.ts';

const lan = '192.168.1.0/24';
const lab = '192.168.2.0/24';

/** Merges reports of a host, a second apart. Each has the connector of one route, or of more. */
function mergeAll(reports: readonly { readonly routes: readonly RoutePath[]; readonly complete?: boolean }[]) {
  return reports.reduce<MergedReport>((before, { routes, complete }, second) => {
    const scope = { sender: 9, peers: new Set([1, 2, 9]), prefixes: new Set([lan, lab]), at: at(second) };
    return mergeReport(before, { routes: [...routes], ...(complete && { complete }) }, scope);
  }, readReport(null));
}
const at = (second: number) => new Date(second * 1000).toISOString();
const use = (connector: number | null, route = lan) => ({ routes: [{ route, connector }] });
const unserved = (reports: Parameters<typeof mergeAll>[0]) => mergeAll(reports).unserved;

test('a route is unserved since the first report without a connector', () => {
  expect(unserved([use(1), use(2)])).toEqual([]);
  expect(unserved([use(null)])).toEqual([{ route: lan, since: at(0) }]);
  expect(unserved([use(1), use(null), use(null), use(2, lab)])).toEqual([{ route: lan, since: at(1) }]);
  expect(unserved([use(null), use(1)])).toEqual([]);
  expect(unserved([use(null), use(1), use(null)])).toEqual([{ route: lan, since: at(2) }]);
});

test('a complete report keeps the instant, and forgets routes that it leaves out', () => {
  const both = { routes: [...use(null).routes, ...use(null, lab).routes] };
  expect(unserved([both, { ...use(null), complete: true }])).toEqual([{ route: lan, since: at(0) }]);
  expect(unserved([both, { ...use(null), complete: true }, both])).toEqual([
    { route: lan, since: at(0) },
    { route: lab, since: at(2) },
  ]);
});

test('a route that an earlier version stored without a connector has no instant', () => {
  const stored = JSON.stringify({ ...mergeAll([use(null)]), unserved: undefined });
  const scope = { sender: 9, peers: new Set<number>(), prefixes: new Set([lan]), at: at(5) };
  expect(mergeReport(readReport(stored), use(null), scope).unserved).toEqual([]);
});

describe('a report', () => {
  const everyone = new Set(Array.from({ length: 2 * mostPaths }, (_, id) => id + 1));
  const scope = { sender: 9, peers: everyone, prefixes: new Set([lan, lab]), at: at(1) };
  const merge = (report: Report, before = readReport(null), of = scope) => mergeReport(before, report, of);
  const direct = (peer: number) => ({ peer, path: 'direct' as PathState });
  const full: Report = {
    ...{ paths: [direct(1)], routes: [{ route: lan, connector: 1 }], drift: 3, pin_mismatches: [1], problem: 'nft' },
    probes: [{ peer: 2, answered: false }],
    map: [{ route: lan, local: '192.168.1.0/24' }],
  };
  const none = { paths: [], routes: [], map: [], drift: null, pin_mismatches: [], problem: null };

  test.each(['paths', 'routes', 'map', 'drift', 'pin_mismatches', 'problem', 'probes'] as const)(
    'that leaves out %s keeps what was reported before',
    (field) => {
      const { [field]: _, ...others } = full;
      const before = merge(full);
      expect(merge(others, before, { ...scope, at: at(2) })[field]).toEqual(before[field]);
    },
  );

  test.each([
    [{ drift: 0 }, { drift: 0 }],
    [{ problem: null }, { problem: null }],
    [{ map: [] }, { map: [] }],
    // Only what is 1:1, of a route of the network, and without host bits.
    [{ map: [{ route: lan, local: '192.168.7.9/24' }] }, { map: [{ route: lan, local: '192.168.7.0/24' }] }],
    [{ map: [{ route: lan, local: '192.168.0.0/16' }] }, { map: [] }],
    [{ map: [{ route: '10.99.0.0/24', local: '192.168.7.0/24' }] }, { map: [] }],
    [{ pin_mismatches: [] }, { pin_mismatches: [] }],
    [{ pin_mismatches: [2, 1, 2] }, { pin_mismatches: [2, 1] }],
    [{ paths: [] }, {}],
    [{ routes: [] }, {}],
    [{ routes: [{ route: lan, connector: null }] }, { routes: [{ route: lan, connector: null }] }],
  ])('with %j replaces that, and nothing else', (report, change) => {
    const { unserved: _, ...before } = merge(full);
    expect(merge(report, merge(full))).toMatchObject({ ...before, ...change });
  });

  test('that is complete replaces all but the results of probes', () => {
    const before = merge(full);
    const { probes, ...others } = merge({ complete: true }, before);
    expect([probes, others]).toEqual([before.probes, { ...none, unserved: [] }]);
    expect(probes).toEqual([{ peer: 2, answered: false, at: at(1) }]);
  });

  test.each([
    ['itself', 9],
    ['a peer that is not in the network', 9_999],
  ])('says nothing of %s', (_what, id) => {
    const report: Report = {
      paths: [direct(id), { ...direct(1), via: id }],
      ...{ pin_mismatches: [id], probes: [{ peer: id, answered: true }] },
    };
    expect(merge(report)).toEqual({ ...none, unserved: [], probes: [], paths: [direct(1)] });
  });

  test('says nothing of routes and connectors that are not in the network, but may be a connector itself', () => {
    const routes = [lan, '192.168.9.0/24'].flatMap((route) => [{ route, connector: 9_999 }]);
    const own = { route: lab, connector: 9, lan: 'down' as const };
    expect(merge({ routes: [...routes, own] }).routes).toEqual([own]);
  });

  test.each([
    ['that answered', true, { peer: 1, path: 'direct', rtt_ms: 5 }],
    ['that did not answer', false, { peer: 1, path: 'down', rtt_ms: 5 }],
  ] as const)('of a probe %s has the path of that peer, with what is known of it', (_what, answered, path) => {
    const before = merge({ paths: [{ peer: 1, path: 'stale', rtt_ms: 5 }, direct(2)] });
    expect(merge({ probes: [{ peer: 1, answered }] }, before).paths).toEqual([direct(2), path]);
    const relayed = merge({ paths: [{ peer: 1, path: 'relayed', via: 2, rtt_ms: 5 }] });
    expect(merge({ probes: [{ peer: 1, answered }] }, relayed).paths).toEqual([{ peer: 1, path: path.path }]);
  });

  test('has round-trip times of a tenth of a millisecond', () => {
    const rtts = [1.26, 0.04, 0, 12].map((rtt_ms, peer) => ({ ...direct(peer + 1), rtt_ms }));
    expect(merge({ paths: rtts }).paths.map(({ rtt_ms }) => rtt_ms)).toEqual([1.3, 0, 0, 12]);
  });

  test('leaves the latest paths, routes and results of probes within their limits', () => {
    const some = (from: number, count: number) => Array.from({ length: count }, (_, index) => from + index);
    const prefixes = new Set(some(0, 60).map((third) => `10.1.${third}.0/24`));
    const of = { ...scope, sender: 9_998, prefixes };
    const reports: Report[] = [some(1, mostPaths), some(mostPaths + 1, 10)].map((peers) => ({
      paths: peers.map(direct),
      routes: peers.slice(0, mostRoutes).map((_, index) => ({ route: `10.1.${index}.0/24`, connector: peers[0] ?? 0 })),
      probes: peers.slice(0, 60).map((peer) => ({ peer, answered: true })),
    }));
    const merged = reports.reduce((before, report) => merge(report, before, of), readReport(null));
    expect(merged.paths.map(({ peer }) => peer)).toEqual(expect.arrayContaining(some(mostPaths + 1, 10)));
    expect(merged.paths).toHaveLength(mostPaths);
    expect(merged.routes).toHaveLength(mostRoutes);
    expect(merged.routes.slice(-10).map(({ connector }) => connector)).toEqual(Array(10).fill(mostPaths + 1));
    expect(merged.probes.map(({ peer }) => peer)).toEqual([...some(7, 54), ...some(mostPaths + 1, 10)]);
    const more = merge(
      { routes: [...prefixes].slice(mostRoutes).map((route) => ({ route, connector: 1 })) },
      merged,
      of,
    );
    expect(more.routes.map(({ route }) => route)).toEqual(expect.arrayContaining([...prefixes].slice(mostRoutes)));
    expect(more.routes).toHaveLength(mostRoutes);
  });
});
