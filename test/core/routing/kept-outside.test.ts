import { describe, expect, it } from 'vitest';
import { explainOutside, findNetwork } from '../../../src/core/explain/find-target.ts';
import type { NetworkOnHost } from '../../../src/core/explain/view.ts';
import type { Actual } from '../../../src/core/host-state/actual.ts';
import { makeRule } from '../../../src/core/host-state/policy-rule.ts';
import { parseEndpoint } from '../../../src/core/net/endpoint.ts';
import { restoreConfig } from '../../../src/core/reconcile/desired.ts';
import { plan } from '../../../src/core/reconcile/plan.ts';
import { planCleanup } from '../../../src/core/reconcile/plan-cleanup.ts';
import { recordSteps } from '../../../src/core/reconcile/record-receipt.ts';
import { explainBypassRoute } from '../../../src/core/routing/bypass-route.ts';
import { judgeRoutes, type RouteConstraints } from '../../../src/core/routing/guard.ts';
import { findStubResolvers, staysLocal, thrownFrom } from '../../../src/core/routing/kept-outside.ts';
import { placeRoutes } from '../../../src/core/routing/place-route.ts';
import { address, bare, desireFor, dialled, network, peer, prefix, underlay, usualConstraints } from '../samples.ts';
import { simulate } from '../simulate.ts';

const now = 1_800_000_000;
const dc = peer(1, { name: 'dc', type: 'connector', endpoint: dialled(1) });
const laptop = peer(3, { type: 'admin_device' });
const lan = prefix('192.168.50.0/24');
const office = network([dc, laptop]);
const resolver = address('192.168.50.53');
const client = address('192.168.50.7');

/** A host whose accepted routes are in table 8350, as far as its rules and routes let them. */
function on(changes: Partial<RouteConstraints> = {}, host: Pick<Actual, 'rules'> = bare): RouteConstraints {
  const constraints = { ...usualConstraints, ...changes };
  const place = placeRoutes(
    { routeTable: '8350', newerLinks: [], allowed: constraints.allowed },
    { routes: [], ...host, underlay: constraints.underlay },
  );
  return { ...constraints, isSeparate: (each) => place(each).table === '8350' };
}

const resolvedBy = (...resolvers: (typeof resolver)[]) => ({ underlay: { ...underlay, resolvers } });
const session = { address: client, local: address('203.0.113.22') };
const desire = (constraints: RouteConstraints, map = office) =>
  desireFor(laptop, map, { routeTable: '8350' }, constraints);
const keepsOut = desire(on({ ...resolvedBy(resolver), sshClients: [session] }));
const settled = simulate(bare, plan(keepsOut, bare, now));
const reasonOf = (constraints: RouteConstraints) => judgeRoutes(constraints).refuse(lan);

describe('a resolver and an SSH client in an accepted route', () => {
  it('are kept outside of it one by one, and the route is taken', () => {
    expect(keepsOut.report).toEqual([
      {
        prefix: lan,
        via: 'dc',
        state: 'taken',
        reason: '192.168.50.53 stays outside: a resolver; 192.168.50.7 stays outside: an SSH client',
      },
    ]);
    expect(settled.throwRoutes).toEqual([
      { prefix: '192.168.50.53/32', table: '8350' },
      { prefix: '192.168.50.7/32', table: '8350' },
    ]);
    expect(keepsOut.config.peers[0]?.allowedIps).toContain(lan);
    expect(plan(keepsOut, settled, now)).toEqual([]);
  });

  it('have their routes before the route is there, and until it is gone', () => {
    const commandsOf = (steps: ReturnType<typeof plan>) =>
      steps.flatMap((step) => (step.do === 'configure-link' ? step.commands : []));
    const kinds = (steps: ReturnType<typeof plan>) =>
      commandsOf(steps).flatMap((command) =>
        'set' in command ? [] : [`${'add' in command ? `add ${command.add}` : `remove ${command.remove}`}`],
      );
    const rules = ['add rule', 'add rule'];
    expect(kinds(plan(keepsOut, bare, now))).toEqual(['add address', 'add throw', 'add throw', 'add route', ...rules]);
    const gone = desire(on(), { ...office, routes: [] });
    expect(kinds(plan(gone, settled, now))).toEqual([
      ...['remove rule', 'remove rule', 'remove route'],
      ...['remove throw', 'remove throw'],
    ]);
    expect(simulate(settled, plan(gone, settled, now)).throwRoutes).toEqual([]);
  });

  it('cost the whole route where it is in the main table, or is one address', () => {
    const server = resolvedBy(resolver);
    const foreign = { ...bare, rules: [{ ...makeRule(5000, { table: '77' }), protocol: 'static' }] };
    const routed = [{ prefix: prefix('192.168.0.0/16'), link: 'eth1' }];
    const reason = 'covers a resolver (192.168.50.53)';
    expect(reasonOf(on(server))).toBeNull();
    expect(reasonOf({ ...usualConstraints, ...server })).toBe(reason);
    expect(reasonOf(on(server, foreign))).toBe(reason);
    expect(reasonOf(on({ underlay: { ...server.underlay, routed } }))).toBe(reason);
    expect(judgeRoutes(on(server)).refuse(prefix('192.168.50.53/32'))).toBe(reason);
    expect(reasonOf(on({ ...server, allowed: [prefix('192.168.0.0/16')] }))).toBe(reason);
    // Of IPv6 no address is kept outside.
    const six = judgeRoutes(on(resolvedBy(address('fd50::53'))));
    expect([six.refuse(prefix('fd50::/31')), six.findOutside(prefix('fd50::/31'))]).toEqual([
      'covers a resolver (fd50::53)',
      [],
    ]);
  });

  it('are in the tunnel where a person lets the route through', () => {
    const through = on({ ...resolvedBy(resolver), allowed: [lan] });
    expect(desire(through)).toMatchObject({ keptOutside: [], report: [{ state: 'taken', reason: null }] });
  });

  it('are kept outside where the default route is let through as well', () => {
    const full = on({ ...resolvedBy(resolver), allowed: [prefix('0.0.0.0/0')] });
    const both = { ...office, routes: [prefix('0.0.0.0/0'), lan] };
    expect(desire(full, both).keptOutside).toEqual([{ address: resolver, what: 'a resolver' }]);
    expect(desire(full, both).rules).toContainEqual(expect.objectContaining({ to: '192.168.50.53/32' }));
  });

  it('stay outside after they were, though the tunnel leads there by now', () => {
    const { range } = usualConstraints.tunnelPrefixes;
    const up = { ...usualConstraints.tunnelPrefixes, present: [range, lan], accepted: [range, lan] };
    const observed = { ...resolvedBy(resolver), sshClients: [session] };
    expect(judgeRoutes(on({ ...observed, tunnelPrefixes: up })).findOutside(lan)).toEqual([]);
    const outside = [resolver, client];
    const kept = judgeRoutes(on({ ...observed, tunnelPrefixes: { ...up, outside } })).findOutside(lan);
    expect(kept.map((each) => each.address)).toEqual(outside);
    const own = { address: client, local: usualConstraints.tunnelPrefixes.own };
    expect(judgeRoutes(on({ sshClients: [own], tunnelPrefixes: { ...up, outside } })).findOutside(lan)).toEqual([]);
  });

  it('do not save a route that costs the host its gateway or its control plane', () => {
    expect(reasonOf(on({ api: [resolver], ...resolvedBy(resolver) }))).toBe('covers the control plane (192.168.50.53)');
    const gateways = [resolver];
    expect(reasonOf(on({ underlay: { ...underlay, resolvers: [], gateways } }))).toBe(
      'covers the default gateway (192.168.50.53)',
    );
  });

  it('are put back when their routes are gone, and stay with an earlier file', () => {
    const lost = { ...settled, throwRoutes: [] };
    expect(simulate(lost, plan(keepsOut, lost, now)).throwRoutes).toEqual(settled.throwRoutes);
    expect(plan(restoreConfig(keepsOut, keepsOut.config), settled, now)).toEqual([]);
  });

  it('are in the receipt with their table, and taken back with it', () => {
    const receipt = recordSteps([], plan(keepsOut, bare, now), bare);
    expect(receipt).toContainEqual({ made: 'rules', link: 'cpn0', table: '8350' });
    const other = { prefix: prefix('10.9.9.9/32'), table: '8351' };
    const shared = { ...settled, throwRoutes: [...(settled.throwRoutes ?? []), other] };
    // The interface may be gone before, as after a crash of one in user space.
    for (const present of [shared, { ...shared, link: null, device: null, routes: [] }]) {
      const steps = planCleanup(receipt, present).filter(({ do: kind }) => kind === 'configure-link');
      expect(steps.flatMap(({ changes }) => changes.map(({ target }) => target))).toEqual(
        expect.arrayContaining(['192.168.50.53/32', '192.168.50.7/32']),
      );
      expect(thrownFrom('8351', shared.throwRoutes)).toEqual(['10.9.9.9']);
      expect(JSON.stringify(steps)).not.toContain('10.9.9.9');
    }
  });

  it('are explained, and not waited for', () => {
    const view = {
      map: office,
      address: laptop.address,
      listed: true,
      enabled: true,
      desired: keepsOut,
    } as NetworkOnHost;
    const observed = { ...view, actual: settled };
    expect(findNetwork(resolver, [observed])).toBeNull();
    expect(explainOutside(resolver, observed)).toBe(
      'it is in the route 192.168.50.0/24 of network office, and stays outside: a resolver',
    );
    expect(findNetwork(address('192.168.50.9'), [observed])?.target.is).toBe('route');
    expect(explainBypassRoute(prefix('192.168.50.53/32'), 'cpn0', settled)).toBe('192.168.50.53/32 stays outside cpn0');
    expect(explainBypassRoute(lan, 'cpn0', settled)).toBeNull();
  });
});

describe('a local subnet within an accepted route', () => {
  const wide = prefix('172.16.0.0/12');
  const connected = [...underlay.connected, { prefix: prefix('172.20.0.0/16'), link: 'br-1' }];
  const around = { ...underlay, connected };
  const map = { ...office, routes: [wide] };
  const near = peer(4, { endpoint: parseEndpoint('172.20.0.5:51820') });

  it('stays local, and the route is taken', () => {
    const desired = desire(on({ underlay: around }), map);
    expect(desired.report).toEqual([{ prefix: wide, via: 'dc', state: 'taken', reason: null }]);
    const actual = { ...settled, underlay: around };
    const seen = {
      map,
      address: laptop.address,
      listed: true,
      enabled: true,
      desired,
      actual,
    } as Partial<NetworkOnHost> as NetworkOnHost;
    expect(explainOutside(address('172.20.0.9'), seen)).toBe(
      'it is in the route 172.16.0.0/12 of network office, and stays local: this host is in 172.20.0.0/16 (br-1)',
    );
    expect(findNetwork(address('172.20.0.9'), [seen])).toBeNull();
    expect(findNetwork(address('172.21.0.9'), [seen])?.target.is).toBe('route');
  });

  it('keeps the endpoints that are in it', () => {
    const peers = [...map.peers, near];
    expect(desire(on({ underlay: around }), { ...map, peers }).lostEndpoints.size).toBe(0);
    expect(desire(on(), { ...map, peers }).lostEndpoints.size).toBe(1);
    const within = peer(1, { name: 'dc', type: 'connector', endpoint: parseEndpoint('172.20.0.5:51820') });
    const tunnelled = desire(on({ underlay: around }), { ...map, peers: [within, laptop] });
    expect(tunnelled.report).toMatchObject([{ state: 'taken' }]);
  });
});

describe('servers of local resolvers', () => {
  const stub = { address: address('127.0.0.53'), isListening: true, program: null, isStated: false, stated: [] };
  const remembered = [
    { address: resolver, what: 'a resolver' },
    { address: client, what: 'an SSH client' },
  ];

  it('are those observed and, until all are known, those kept outside before, and no SSH client', () => {
    const seen = { ...stub, observed: [address('192.168.50.54')] };
    const stated = { ...seen, isStated: true };
    const local = [stub.address];
    expect(findStubResolvers({ stubs: [seen], resolvers: local }, remembered)).toEqual(['192.168.50.54', resolver]);
    expect(findStubResolvers({ stubs: [stated, seen], resolvers: local }, remembered)).toContain(resolver);
    expect(findStubResolvers({ stubs: [stated], resolvers: local }, remembered)).toEqual(['192.168.50.54']);
    expect(findStubResolvers({ stubs: [], resolvers: [] }, remembered)).toEqual([resolver]);
    expect(findStubResolvers({ resolvers: [resolver] }, remembered)).toEqual([]);
  });

  it('stay local only in a subnet that is narrower than the route', () => {
    const local = (text: string) => staysLocal(lan, resolver, [{ prefix: prefix(text), link: 'eth1' }]);
    expect(['192.168.0.0/16', '192.168.50.0/24', '192.168.50.0/25', '192.168.50.128/25'].map(local)).toEqual([
      false,
      false,
      true,
      false,
    ]);
  });
});
