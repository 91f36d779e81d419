import { describe, expect, it } from 'vitest';
import { evaluateNetwork } from '../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { checkKeptResolvers } from '../../../src/core/doctor/check-kept-resolvers.ts';
import type { Underlay } from '../../../src/core/host-state/actual.ts';
import { makeRule } from '../../../src/core/host-state/policy-rule.ts';
import type { NetworkMap } from '../../../src/core/map/model.ts';
import type { Address } from '../../../src/core/net/cidr.ts';
import { address, dialled, peer, prefix } from '../../core/samples.ts';
import { answerWith, Desk, joinedTo, mapAt } from '../desk.ts';

const relay = peer(2, { type: 'connector', endpoint: dialled(2) });
const lan = prefix('192.168.50.0/24');
const resolver = address('192.168.50.53');
const elsewhere = address('198.51.100.53');
const withRoute = (revision: string) => mapAt(revision, [relay], { routes: [lan] });
const withoutRoute = (revision: string) => mapAt(revision, [relay], { routes: [] });

/** A host with an accepted route, whose only resolver is outside of it. */
async function startDesk(): Promise<Desk> {
  const desk = await Desk.with(joinedTo(withRoute('"1"')));
  observe(desk, { resolvers: [elsewhere] });
  await passNetwork(desk.tools, 'cpn0', noUpdate, { withinMs: 20_000 });
  desk.touch(2, { latestHandshake: Math.floor(desk.tools.now().getTime() / 1000) - 10, rxBytes: 100, txBytes: 100 });
  return desk;
}

function observe(desk: Desk, changes: Partial<Underlay>): void {
  desk.actual = { ...desk.actual, underlay: { ...desk.actual.underlay, ...changes } };
}

async function pass(desk: Desk, map: NetworkMap | null = null): Promise<void> {
  if (map !== null) desk.answers = [answerWith(map)];
  await passNetwork(desk.tools, 'cpn0', map === null ? noUpdate : { map, resolved: null }, { withinMs: 20_000 });
}

const routesOf = (desk: Desk) => desk.actual.routes.map((route) => route.prefix);
const throwsOf = (desk: Desk) => desk.actual.throwRoutes ?? [];
const tunnelled = [{ address: resolver, route: lan }];

describe('a resolver that is reached through an accepted route', () => {
  it('is reached through it again after the route was gone, also for long', async () => {
    const desk = await startDesk();
    observe(desk, { resolvers: [resolver] });
    await pass(desk);
    expect((await desk.state()).tunnelledResolvers).toEqual(tunnelled);
    await pass(desk, withoutRoute('"2"'));
    expect(routesOf(desk)).toEqual([]);
    // Each of these passes has neither the route nor a file with it.
    for (let passes = 0; passes < 3; passes += 1) await pass(desk);
    await pass(desk, withRoute('"3"'));
    expect([routesOf(desk), throwsOf(desk)]).toEqual([[lan], []]);
    const { keptOutside, tunnelledResolvers } = await desk.state();
    expect({ keptOutside, tunnelledResolvers }).toEqual({ keptOutside: [], tunnelledResolvers: tunnelled });
  });

  it('does not cost the route where another program has a policy rule', async () => {
    const desk = await startDesk();
    observe(desk, { resolvers: [resolver] });
    await pass(desk, withoutRoute('"2"'));
    const rules = [...desk.actual.rules, { ...makeRule(100, { fwmark: 0x77, table: 'main' }), protocol: 'static' }];
    desk.actual = { ...desk.actual, rules };
    await pass(desk, withRoute('"3"'));
    expect(routesOf(desk)).toEqual([lan]);
  });

  it('is remembered while a local resolver may have more servers than can be seen', async () => {
    const desk = await startDesk();
    observe(desk, { resolvers: [resolver] });
    await pass(desk);
    await pass(desk, withoutRoute('"2"'));
    observe(desk, { resolvers: [] });
    await pass(desk);
    expect((await desk.state()).tunnelledResolvers).toEqual(tunnelled);
  });

  it('is remembered of a local resolver without readable settings, whose socket to it has the tunnel address', async () => {
    const desk = await startDesk();
    const stub = { address: address('127.0.0.1'), isListening: true, program: 'dnscrypt-proxy', isStated: false };
    const use = (servers: { observed: Address[]; tunnelled: Address[] }) =>
      observe(desk, { resolvers: [stub.address], stubs: [{ ...stub, stated: [], ...servers }] });
    use({ observed: [], tunnelled: [resolver] });
    await pass(desk);
    // While the route is gone, its queries go out by another address.
    use({ observed: [resolver], tunnelled: [] });
    await pass(desk, withoutRoute('"2"'));
    await pass(desk, withRoute('"3"'));
    expect([routesOf(desk), throwsOf(desk)]).toEqual([[lan], []]);
    use({ observed: [], tunnelled: [] });
    await pass(desk);
    expect((await desk.state()).tunnelledResolvers).toEqual(tunnelled);
  });

  it('is forgotten once the host names other resolvers: one of the same address is outside from then on', async () => {
    const desk = await startDesk();
    observe(desk, { resolvers: [resolver] });
    await pass(desk);
    await pass(desk, withoutRoute('"2"'));
    observe(desk, { resolvers: [elsewhere] });
    await pass(desk);
    expect((await desk.state()).tunnelledResolvers).toEqual([]);
    observe(desk, { resolvers: [resolver] });
    await pass(desk, withRoute('"3"'));
    expect(throwsOf(desk)).toMatchObject([{ prefix: '192.168.50.53/32' }]);
  });

  it('is one of the network only while the route is let through', async () => {
    const desk = await startDesk();
    observe(desk, { resolvers: [resolver] });
    await pass(desk);
    const { desired, state } = await evaluateNetwork(desk.tools, await desk.state(), { disallowed: [lan] });
    expect(desired.keptOutside).toMatchObject([{ address: resolver }]);
    expect(state.tunnelledResolvers).toEqual([]);
  });
});

describe('a resolver that was outside', () => {
  it('stays outside when the route is back', async () => {
    const desk = await Desk.with(joinedTo(withRoute('"1"')));
    observe(desk, { resolvers: [resolver] });
    await pass(desk);
    for (const map of [withoutRoute('"2"'), withRoute('"3"')]) await pass(desk, map);
    expect(throwsOf(desk)).toMatchObject([{ prefix: '192.168.50.53/32' }]);
    expect((await desk.state()).tunnelledResolvers).toEqual([]);
  });

  it('is queried by doctor, which names the route where it does not answer', () => {
    expect(checkKeptResolvers('cpn0', [{ address: resolver, route: lan, answers: true }])).toMatchObject([
      { verdict: 'ok' },
    ]);
    expect(checkKeptResolvers('cpn0', [{ address: resolver, route: lan, answers: false }])).toMatchObject([
      { verdict: 'problem', remedy: expect.stringContaining('cpn set cpn0 --allow-route 192.168.50.0/24') },
    ]);
  });
});
