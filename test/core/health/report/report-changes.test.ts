import { describe, expect, it } from 'vitest';
import { emptyReport, type HostReport, type ObservedPath } from '../../../../src/core/health/report/compose-report.ts';
import { compareReports, mergeProbes, mergeReport } from '../../../../src/core/health/report/report-changes.ts';

const path = (peer: number, changes: Partial<ObservedPath> = {}): ObservedPath => ({
  ...{ peer, path: 'direct', handshake: 1_000, rtt_ms: 20, rx_rate: 40_000, tx_rate: 0 },
  ...changes,
});
const route = { route: '192.168.50.0/24', connector: 3 };
const report = (changes: Partial<HostReport> = {}): HostReport => ({
  ...emptyReport,
  ...{ paths: [path(2), path(3)], routes: [route] },
  ...changes,
});
const before = report();
const changesOf = (next: HostReport, listed: readonly unknown[] = [2, 3, route.route]) =>
  compareReports(before, next, (name) => listed.includes(name));

describe('the changes of a report', () => {
  it('are none between two that are the same', () => {
    expect(changesOf(report())).toEqual({ transitions: null, figures: [] });
  });

  it.each([
    ['the state of a path', { paths: [path(2, { path: 'down' }), path(3)] }, { paths: [path(2, { path: 'down' })] }],
    [
      'the relay of a path',
      { paths: [path(2, { path: 'relayed', via: 4 }), path(3)] },
      { paths: [path(2, { path: 'relayed', via: 4 })] },
    ],
    ['a new path', { paths: [path(2), path(3), path(4)] }, { paths: [path(4)] }],
    ['the connector of a route', { routes: [{ ...route, connector: 2 }] }, { routes: [{ ...route, connector: 2 }] }],
    ['a LAN', { routes: [{ ...route, lan: 'down' }] }, { routes: [{ ...route, lan: 'down' }] }],
    ['drift', { drift: 2 }, { drift: 2 }],
    ['a pin', { pinMismatches: [2] }, { pinMismatches: [2] }],
    ['a problem', { problem: 'wg failed' }, { problem: 'wg failed' }],
  ] as const)('are a transition for %s, and have nothing else', (_, changes, part) => {
    expect(changesOf(report(changes))).toEqual({ transitions: part, figures: [] });
  });

  it.each([
    ['a handshake that is much newer', { handshake: 1_601 }],
    ['another round trip', { rtt_ms: 41 }],
    ['a first round trip', { rtt_ms: undefined }],
    ['another rate', { rx_rate: 70_000 }],
    ['a peer that sends nothing any more', { rx_rate: 0 }],
  ])('are figures for %s', (_, changes) => {
    const moved = path(2, changes as Partial<ObservedPath>);
    expect(changesOf(report({ paths: [moved, path(3)] }))).toEqual({ transitions: null, figures: [moved] });
  });

  it.each([
    ['a newer handshake', { handshake: 1_600 }],
    ['a little more time', { rtt_ms: 39 }],
    ['a little more traffic', { rx_rate: 55_000, tx_rate: 4_000 }],
  ])('are none for %s', (_, changes) => {
    expect(changesOf(report({ paths: [path(2, changes), path(3)] })).figures).toEqual([]);
  });

  it('are a transition where a relayed peer has another relay', () => {
    const relayed = (via: number) => report({ paths: [path(2, { path: 'relayed', via }), path(3)] });
    const { transitions } = compareReports(relayed(4), relayed(5), () => true);
    expect(transitions).toEqual({ paths: [path(2, { path: 'relayed', via: 5 })] });
  });

  it.each(['rx_rate', 'tx_rate'])('are figures for another %s, up or down, beyond a floor and a share', (field) => {
    const compare = (from: number, to: number) => {
      const reports = [from, to].map((rate) => report({ paths: [path(2, { [field]: rate }), path(3)] }));
      return compareReports(reports[0] as HostReport, reports[1] as HostReport, () => true).figures.length;
    };
    expect([compare(0, 5_000), compare(0, 5_001), compare(5_001, 0)]).toEqual([0, 1, 1]);
    expect([compare(20_000, 30_000), compare(20_000, 30_001), compare(30_001, 20_000)]).toEqual([0, 1, 1]);
  });

  it('are all of it where a route is gone that is still in the network', () => {
    const next = report({ routes: [] });
    expect(changesOf(next).transitions).toEqual({ ...next, complete: true });
  });

  it('are all of it where an entry is gone that is still in the network, and none for what left it', () => {
    const next = report({ paths: [path(3)] });
    expect(changesOf(next)).toEqual({ transitions: { ...next, complete: true }, figures: [] });
    expect(changesOf(next, [3, route.route]).transitions).toBeNull();
    expect(changesOf(report({ routes: [] }), [2, 3]).transitions).toBeNull();
  });
});

describe('what was reported', () => {
  it('is what was sent, over what was sent before', () => {
    const down = path(2, { path: 'down' });
    const next = report({ paths: [down, path(3, { rtt_ms: 500 })], drift: 1 });
    const { transitions } = changesOf(next);
    const merged = mergeReport(before, transitions ?? {}, next);
    expect(merged).toEqual(report({ paths: [down, path(3)], drift: 1 }));
    expect(compareReports(merged, next, () => true)).toEqual({
      transitions: null,
      figures: [path(3, { rtt_ms: 500 })],
    });
  });

  it('has the results of probes as the paths to these peers, with what is known of them', () => {
    const merged = mergeProbes(before, [
      { peer: 2, answered: false },
      { peer: 9, answered: true },
    ]);
    expect(merged).toEqual(report({ paths: [path(2, { path: 'down' }), path(3), { peer: 9, path: 'direct' }] }));
  });

  it('has nothing of what left the network', () => {
    const next = report({ paths: [path(3)], routes: [] });
    expect(mergeReport(before, {}, next)).toEqual(next);
  });
});

it('a complete report replaces what was reported, and leaves no mark of its own', () => {
  const path = (peer: number) => ({ peer, path: 'direct' as const });
  const before = { ...emptyReport, paths: [path(2), path(3)] };
  const next = { ...emptyReport, paths: [path(3)], drift: 1 };
  expect(mergeReport(before, { ...next, complete: true }, next)).toEqual(next);
});

it('a problem that is over is a change, and one that lasts is none', () => {
  const between = (one: string | null, other: string | null) =>
    compareReports(report({ problem: one }), report({ problem: other }), () => true).transitions;
  expect(between('x', null)).toEqual({ problem: null });
  expect(between(null, 'x')).toEqual({ problem: 'x' });
  expect(between('x', 'x')).toBeNull();
});
