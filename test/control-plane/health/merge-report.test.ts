import { expect, test } from 'vitest';
import type { RoutePath } from '../../../src/contract/health.ts';
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
