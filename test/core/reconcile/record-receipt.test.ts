import { describe, expect, it } from 'vitest';
import { tunnelTable } from '../../../src/core/host-state/marks.ts';
import type { OwnedResource, Receipt } from '../../../src/core/host-state/receipt.ts';
import { allForwardingKey, forwardingKey } from '../../../src/core/host-state/sysctl-keys.ts';
import { dropReverted, recordSteps } from '../../../src/core/reconcile/record-receipt.ts';
import type { LinkCommand, SetSysctl, Step } from '../../../src/core/reconcile/step.ts';
import { rulePairOf } from '../../../src/core/routing/route-table.ts';
import { mainRule, tunnelRule } from '../../../src/core/routing/tunnel-rules.ts';
import { bare, prefix } from '../samples.ts';

const [exit, lan, resolver] = ['0.0.0.0/0', '192.168.50.0/24', '192.168.50.53/32'].map(prefix) as [never, never, never];
const configure = (...commands: LinkCommand[]): Step => ({ do: 'configure-link', link: 'cpn0', commands, changes: [] });
const set = (key: string, value: string, receipt?: SetSysctl['receipt']): Step => ({
  ...{ do: 'set-sysctl', key, value, changes: [] },
  ...(receipt !== undefined && { receipt }),
});
const tunnel: OwnedResource = { made: 'rules', link: 'cpn0' };
const table = (number: string): OwnedResource => ({ made: 'rules', link: 'cpn0', table: number });
const [, own] = rulePairOf('8350');

describe('what is recorded of routes and rules', () => {
  it.each<[string, LinkCommand, Receipt]>([
    ['a route in a table of accepted routes', { add: 'route', prefix: lan, table: '8350' }, [table('8350')]],
    ['a throw route', { add: 'throw', prefix: resolver, table: '8350' }, [table('8350')]],
    ['a rule that leads to such a table', { add: 'rule', rule: own }, [table('8350')]],
    ['a route in the main table', { add: 'route', prefix: lan, table: 'main' }, []],
    ['the route of a full tunnel', { add: 'route', prefix: exit, table: tunnelTable }, [tunnel]],
    ['a rule of a full tunnel', { add: 'rule', rule: tunnelRule }, [tunnel]],
    ['another rule of a full tunnel', { add: 'rule', rule: mainRule }, [tunnel]],
    ['an address', { add: 'address', address: { address: '10.77.0.3' as never, length: 24 } }, []],
    ['a route that is removed', { remove: 'route', prefix: lan, protocol: '157', table: '8350' }, []],
    ['a throw route that is removed', { remove: 'throw', prefix: resolver, table: '8350' }, []],
    ['a rule that is removed', { remove: 'rule', rule: own }, []],
  ])('is its table, or that there is a full tunnel: %s', (_, command, receipt) => {
    expect(recordSteps([], [configure(command)], bare)).toEqual(receipt);
  });

  it('are all tables, and the full tunnel apart from them, each once', () => {
    const both = ['8350', '8351'].map((each): LinkCommand => ({ add: 'route', prefix: lan, table: each }));
    const all = configure(...both, ...both, { add: 'rule', rule: tunnelRule }, { add: 'rule', rule: mainRule });
    expect(recordSteps([], [all], bare)).toEqual([tunnel, table('8350'), table('8351')]);
    expect(recordSteps([tunnel, table('8350')], [all], bare)).toEqual([tunnel, table('8350'), table('8351')]);
  });
});

describe('a full tunnel', () => {
  const routeTo = (text: string) => ({ prefix: prefix(text), table: tunnelTable, protocol: '157', metric: 0 });
  const remove = (text: string): LinkCommand => ({
    ...{ remove: 'route', prefix: prefix(text), protocol: '157', table: tunnelTable },
  });
  const halves = { ...bare, routes: [routeTo('0.0.0.0/1'), routeTo('128.0.0.0/1')] };
  const receipt = [tunnel, table('8350')];

  it('is given up with the last of its routes, and the table of accepted routes stays', () => {
    expect(recordSteps(receipt, [configure(remove('0.0.0.0/1'))], halves)).toBe(receipt);
    const last = configure(remove('0.0.0.0/1'), remove('128.0.0.0/1'));
    expect(recordSteps(receipt, [last], halves)).toEqual([table('8350')]);
  });

  it('is not given up where its route is replaced, or another one is removed', () => {
    const replaced = configure(remove('0.0.0.0/1'), remove('128.0.0.0/1'), {
      ...{ add: 'route', prefix: exit, table: tunnelTable },
    });
    expect(recordSteps(receipt, [replaced], halves)).toBe(receipt);
    const elsewhere: LinkCommand = { remove: 'route', prefix: lan, protocol: '157', table: '8350' };
    expect(recordSteps(receipt, [configure(elsewhere)], halves)).toBe(receipt);
  });
});

describe('what is recorded of a sysctl', () => {
  const key = 'net.ipv4.conf.all.src_valid_mark';
  const was = (value: string) => ({ ...bare, sysctls: { [key]: value } });
  const entry = (before: string, after: string): OwnedResource => ({ made: 'sysctl', key, before, after });

  it('is its value before the first change, whatever it was at a later one', () => {
    const first = recordSteps([], [set(key, '1')], was('0'));
    expect(first).toEqual([entry('0', '1')]);
    expect(recordSteps(first, [set(key, '1')], was('2'))).toBe(first);
  });

  it('stays its value before the first change where a later pass makes something new, in any order', () => {
    const kept = [entry('0', '1'), tunnel];
    const steps = [set(key, '1'), configure({ add: 'route', prefix: lan, table: '8350' })];
    for (const each of [steps, steps.toReversed()])
      expect(recordSteps(kept, each, was('2'))).toEqual([...kept, table('8350')]);
  });

  it('is nothing where the kernel has no such key, or another step reverts it', () => {
    expect(recordSteps([], [set(key, '1')], bare)).toEqual([]);
    for (const receipt of ['none', 'remove'] as const)
      expect(recordSteps([], [set(key, '1', receipt)], was('0'))).toEqual([]);
  });

  it('is the present state of the host where forwarding is turned on again', () => {
    const forwarding = forwardingKey('eth1');
    const opening = (all: string) => ({ link: 'eth1', all, links: ['eth0', 'eth1'] });
    const opened = (all: string): OwnedResource => ({
      ...{ made: 'sysctl', key: forwarding, before: '0', after: '1', opening: opening(all) },
    });
    const known: Receipt = [entry('0', '1'), opened('0')];
    expect(recordSteps(known, [set(forwarding, '1', opening('1'))], bare)).toEqual([entry('0', '1'), opened('1')]);
    expect(dropReverted(known, [set(forwarding, '0', 'remove')])).toEqual([entry('0', '1')]);
    expect(dropReverted(known, [set(forwarding, '0', 'none'), set(key, '0')])).toBe(known);
  });

  it('of forwarding on all interfaces is void once it has its earlier value again', () => {
    const all: OwnedResource = { made: 'sysctl', key: allForwardingKey, before: '0', after: '1' };
    const forwards = (value: string) => ({ ...bare, sysctls: { [allForwardingKey]: value } });
    expect(recordSteps([all], [], forwards('1'))).toEqual([all]);
    expect(recordSteps([all], [], forwards('0'))).toEqual([]);
    expect(recordSteps([entry('0', '1')], [], was('0'))).toEqual([entry('0', '1')]);
  });
});
