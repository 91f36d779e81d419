import { expect, it, onTestFinished, vi } from 'vitest';
import { warnOfLosses } from '../../../src/cli/output/losses.ts';
import { describeLosses } from '../../../src/console/logic/peers/bulk.ts';
import { findLosses } from '../../../src/core/export/find-losses.ts';
import { lossCases, lossRoutes } from './loss-cases.ts';

it.each(lossCases)('a connector $what', ({ peers, leaving, routes, devices }) => {
  const losses = findLosses({ routes: lossRoutes, peers }, leaving);
  expect([losses.routes, losses.devices.map(({ name }) => name)]).toEqual([routes, devices]);
});

it('the console and the command line name these losses, and no others', () => {
  const written: string[] = [];
  const spy = vi.spyOn(process.stderr, 'write').mockImplementation((text) => written.push(String(text)) > 0);
  onTestFinished(() => spy.mockRestore());
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
