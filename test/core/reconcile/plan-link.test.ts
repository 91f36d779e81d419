import { describe, expect, it } from 'vitest';
import type { Actual, Link } from '../../../src/core/host-state/actual.ts';
import { acceptedMetric } from '../../../src/core/host-state/marks.ts';
import { isOurs, plan } from '../../../src/core/reconcile/plan.ts';
import type { LinkCommand, Step } from '../../../src/core/reconcile/step.ts';
import { rulePairOf } from '../../../src/core/routing/route-table.ts';
import {
  address,
  bare,
  desireFor,
  dialled,
  keyPair,
  network,
  options,
  peer,
  prefix,
  usualConstraints,
} from '../samples.ts';
import { simulate } from '../simulate.ts';

const now = 1_800_000_000;
const lan = prefix('192.168.50.0/24');
const connector = peer(1, { type: 'connector', endpoint: dialled(1) });
const laptop = peer(3, { type: 'admin_device' });
const office = network([connector, laptop]);
const desired = desireFor(laptop, office);
const settled = simulate(bare, plan(desired, bare, now));
const withLink = (changes: Partial<Link>): Actual => ({
  ...settled,
  link: settled.link && { ...settled.link, ...changes },
});
const commandsOf = (steps: readonly Step[]): LinkCommand[] =>
  steps.flatMap((step) => (step.do === 'configure-link' ? step.commands : []));

describe('the plan of an interface', () => {
  it('gives a new one its mark, and no other one', () => {
    expect(settled.link?.alias).toBe('cpn:7');
    expect(plan(desired, withLink({ alias: null }), now)).toEqual([]);
  });

  it.each([
    [1280, 1420],
    [1420, 1280],
    [576, 9000],
  ])('changes the MTU from %d to %d', (from, to) => {
    const wanted = desireFor(laptop, office, { options: { ...options, mtu: to } });
    const steps = plan(wanted, withLink({ mtu: from }), now);
    expect(commandsOf(steps)).toEqual([{ set: 'mtu', value: to }]);
    expect(steps[0]?.changes).toMatchObject([{ action: 'update', before: { mtu: from }, after: { mtu: to } }]);
    expect(plan(wanted, bare, now).length).toBeGreaterThan(0);
    expect(simulate(bare, plan(wanted, bare, now)).link?.mtu).toBe(to);
  });

  it('removes another address before it adds its own, which would be secondary in the same range', () => {
    const other = { address: address('10.77.0.9'), length: 24 };
    const commands = commandsOf(plan(desired, withLink({ addresses: [other] }), now));
    expect(commands.slice(0, 2)).toEqual([
      { remove: 'address', address: other },
      { add: 'address', address: desired.config.address },
    ]);
  });

  it.each([
    ['of another length', { address: laptop.address, length: 32 }],
    ['of IPv6 that is not link-local', { address: address('fd00::3'), length: 64 }],
  ])('removes an address %s', (_, other) => {
    const commands = commandsOf(
      plan(desired, withLink({ addresses: [other, ...(settled.link?.addresses ?? [])] }), now),
    );
    expect(commands).toEqual([{ remove: 'address', address: other }]);
  });

  it('leaves the link-local address alone that the kernel adds', () => {
    const addresses = [{ address: address('fe80::3'), length: 64 }, ...(settled.link?.addresses ?? [])];
    expect(plan(desired, withLink({ addresses }), now)).toEqual([]);
  });
});

describe('a route that a later network has', () => {
  const constraints = { ...usualConstraints, newerLinks: ['cpn1'] };
  const held = (metric?: number): Actual => {
    const routed = [{ prefix: lan, link: 'cpn1', ...(metric !== undefined && { metric }) }];
    return { ...bare, underlay: { ...bare.underlay, routed } };
  };
  const added = (routeTable: string | null, actual: Actual) =>
    commandsOf(plan(desireFor(laptop, office, { routeTable }, constraints), actual, now)).filter(
      (command) => 'add' in command && command.add === 'route',
    );

  it.each([
    [undefined, 0],
    [0, 0],
    [acceptedMetric, acceptedMetric],
  ])('is replaced by its metric: %s', (metric, replaces) => {
    expect(added(null, held(metric))).toMatchObject([{ prefix: lan, table: 'main', replaces }]);
  });

  it('in the main table is no route to replace in a table of this network', () => {
    const elsewhere = { ...held(), underlay: { ...held().underlay, routed: [] } };
    const connected = [...bare.underlay.connected, { prefix: lan, link: 'cpn1' }];
    const inTable = desireFor(laptop, office, { routeTable: '8350' }, { ...constraints, newerLinks: [] });
    const actual: Actual = { ...elsewhere, underlay: { ...elsewhere.underlay, connected } };
    const commands = commandsOf(plan({ ...inTable, newerLinks: [] }, actual, now));
    expect(commands).toContainEqual({ add: 'route', prefix: lan, table: '8350', metric: 0 });
  });
});

describe('an address that is kept outside', () => {
  const resolver = address('192.168.50.53');
  const keptOutside = [{ address: resolver, what: 'a resolver' }];
  const wanted = desireFor(laptop, office, { routeTable: '8350' });
  const throws = (routes: typeof desired.routes, actual: Actual, allowed: typeof desired.routes = []) =>
    commandsOf(plan({ ...wanted, routes, allowed, keptOutside }, actual, now)).filter(
      (command) => 'add' in command && command.add === 'throw',
    );

  it('has its route only where the table of accepted routes would lead it into the tunnel', () => {
    const foreign = { ...bare, rules: [{ ...rulePairOf('8350')[0], priority: 5000, protocol: 'static' }] };
    const here = { add: 'throw', prefix: '192.168.50.53/32', table: '8350' };
    expect(throws([lan], bare)).toEqual([here]);
    expect(throws([prefix('10.9.0.0/16')], bare)).toEqual([]);
    // These routes are in the main table, which a throw route of another table does not change.
    expect(throws([lan], foreign)).toEqual([]);
    expect(throws([lan], bare, [lan])).toEqual([]);
  });
});

it('an interface of a host that cannot be observed is ours unless it has the key of another', () => {
  const unread = (device: Actual['device']): Actual => ({ ...bare, device, unread: 'ip did not finish' });
  const of = (publicKey: NonNullable<Actual['device']>['publicKey']) =>
    isOurs(desired, unread(settled.device && { ...settled.device, publicKey }), []);
  expect(isOurs(desired, unread(null), [])).toBe(true);
  expect([of(laptop.publicKey), of(keyPair(9).publicKey), of(null)]).toEqual([true, false, false]);
});

it('a route that goes has the reason for which this host refuses it, or that no peer serves it', () => {
  const reasonsOf = (wanted: typeof desired) =>
    plan(wanted, settled, now)
      .flatMap((step) => step.changes)
      .flatMap(({ kind, action, target, reason }) =>
        kind === 'route' && action === 'remove' ? [[target, reason]] : [],
      );
  const taken = [{ prefix: lan, by: 'network lab' }];
  expect(reasonsOf(desireFor(laptop, office, {}, { ...usualConstraints, taken }))).toEqual([
    [lan, 'overlaps 192.168.50.0/24 of network lab'],
  ]);
  expect(reasonsOf(desireFor(laptop, { ...office, routes: [] }))).toEqual([[lan, 'no peer serves it']]);
});
