import { expect, it, onTestFinished, vi } from 'vitest';
import { warnOfLosses, warnOfLostRoutes } from '../../../src/cli/output/losses.ts';
import { describeLosses } from '../../../src/console/logic/peers/bulk.ts';
import { findLosses } from '../../../src/core/export/find-losses.ts';
import { lossCases, lossRoutes } from './loss-cases.ts';

it.each(lossCases)('a connector $what', ({ peers, leaving, routes, devices }) => {
  const losses = findLosses({ routes: lossRoutes, peers }, leaving);
  expect([losses.routes, losses.devices.map(({ name }) => name)]).toEqual([routes, devices]);
});

/** The warnings that are written from now on. */
function readWarnings(): string[] {
  const written: string[] = [];
  const spy = vi.spyOn(process.stderr, 'write').mockImplementation((text) => written.push(String(text)) > 0);
  onTestFinished(() => spy.mockRestore());
  return written;
}

it.each([
  ['expired', -1, ['without peer-1, 192.168.50.0/24, 192.168.51.0/24 have no connector']],
  ['expires later', 1, []],
])('to the command line, a connector that %s is no other one', (_, ms, warnings) => {
  const written = readWarnings();
  const peers = lossCases[0]?.peers ?? [];
  const [one, two] = peers;
  if (one === undefined || two === undefined) throw new Error('the first case has two connectors');
  const now = new Date('2030-01-02T00:00:00.000Z');
  const expires_at = new Date(now.getTime() + ms).toISOString();
  warnOfLosses({ routes: lossRoutes, peers: [one, { ...two, expires_at }] }, one, now);
  expect(written).toHaveLength(warnings.length);
  for (const warning of warnings) expect(written.join('')).toContain(warning);
  written.length = 0;
  warnOfLostRoutes({ routes: lossRoutes, peers: [one, { ...two, expires_at }] }, one, [], now);
  expect(written).toHaveLength(warnings.length);
});

it('the console and the command line name these losses, and no others', () => {
  const written = readWarnings();
  for (const { what, peers, leaving, routes, devices } of lossCases) {
    const network = { routes: [...lossRoutes], peers: [...peers] };
    const names = [...lossRoutes, ...peers.filter((each) => !leaving.includes(each)).map(({ name }) => name)];
    const namedIn = (text: string) => [what, ...names.filter((name) => text.includes(name))];
    expect(namedIn(describeLosses(network, leaving).join('\n'))).toEqual([what, ...routes, ...devices]);
    const [only, ...more] = leaving;
    if (only === undefined || more.length > 0) continue;
    written.length = 0;
    warnOfLosses(network, only);
    expect(namedIn(written.join(''))).toEqual([what, ...routes, ...devices]);
  }
});

it('the command line names the routes that a connector alone served, and no longer does', () => {
  const written: string[] = [];
  const spy = vi.spyOn(process.stderr, 'write').mockImplementation((text) => written.push(String(text)) > 0);
  onTestFinished(() => spy.mockRestore());
  const alone = lossCases.find(({ what }) => what === 'next to an origin');
  const nextTo = lossCases.find(({ what }) => what === 'next to a connector of other routes');
  const lost = (losses: typeof alone, wanted: readonly string[] | null) => {
    written.length = 0;
    const { peers = [], leaving: [connector] = [] } = losses ?? {};
    if (connector !== undefined) warnOfLostRoutes({ routes: [...lossRoutes], peers: [...peers] }, connector, wanted);
    return lossRoutes.filter((route) => written.join('').includes(route));
  };
  const [lan = '', other = ''] = lossRoutes;
  expect([lost(alone, []), lost(alone, [lan]), lost(alone, null)]).toEqual([[lan, other], [other], []]);
  expect([lost(nextTo, []), lost(nextTo, [lan])]).toEqual([[lan], []]);
});
