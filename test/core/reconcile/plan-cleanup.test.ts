import { describe, expect, it } from 'vitest';
import type { Actual } from '../../../src/core/host-state/actual.ts';
import type { OwnedResource, Receipt } from '../../../src/core/host-state/receipt.ts';
import { allForwardingKey, forwardingKey } from '../../../src/core/host-state/sysctl-keys.ts';
import { plan } from '../../../src/core/reconcile/plan.ts';
import { planCleanup } from '../../../src/core/reconcile/plan-cleanup.ts';
import type { Step } from '../../../src/core/reconcile/step.ts';
import { rulePairOf } from '../../../src/core/routing/route-table.ts';
import { mainRule, tunnelRule } from '../../../src/core/routing/tunnel-rules.ts';
import { bare, desireFor, dialled, network, peer, prefix } from '../samples.ts';
import { simulate } from '../simulate.ts';

const now = 1_800_000_000;
const self = peer(3);
const up = simulate(
  bare,
  plan(desireFor(self, network([peer(1, { type: 'connector', endpoint: dialled(1) }), self])), bare, now),
);
const lan = forwardingKey('eth1');
const opened: OwnedResource = {
  ...{ made: 'sysctl', key: lan, before: '0', after: '1' },
  opening: { link: 'eth1', all: '0', links: ['eth1'] },
};
const host: Actual = {
  ...up,
  firewall: ['forward cpn refuse-rest 1234'],
  hosts: { block: '# BEGIN cpn cpn0\n# END cpn cpn0\n', trouble: null },
  rules: [...rulePairOf('8350'), ...rulePairOf('8351'), mainRule, tunnelRule],
  throwRoutes: [
    { prefix: prefix('192.168.50.53/32'), table: '8350' },
    { prefix: prefix('192.168.50.54/32'), table: '8350' },
    { prefix: prefix('10.9.9.9/32'), table: '8351' },
  ],
  sysctls: { ...up.sysctls, [lan]: '1', [allForwardingKey]: '0' },
};
const receipt: Receipt = [
  { made: 'folder', path: '/etc/wireguard' },
  { made: 'interface', link: 'cpn0' },
  { made: 'firewall', link: 'cpn0' },
  { made: 'rules', link: 'cpn0', table: '8350' },
  { made: 'rules', link: 'cpn0' },
  opened,
  { made: 'hosts', link: 'cpn0' },
];
const kinds = (steps: readonly Step[]) => steps.map((step) => step.do);

describe('a cleanup', () => {
  it('reverts what was made last first, then removes the interface, and last the packet rules', () => {
    const expected = [
      'remove-hosts',
      'set-sysctl',
      'configure-link',
      'configure-link',
      'delete-link',
      'remove-firewall',
    ];
    expect(kinds(planCleanup(receipt, host))).toEqual(expected);
    const [first, ...rest] = receipt;
    expect(kinds(planCleanup([...rest, ...(first ? [first] : [])], host))).toEqual(expected);
    // Whatever the receipt's order is, forwarding ends before the packet rules do.
    expect(kinds(planCleanup(receipt.toReversed(), host)).slice(-2)).toEqual(['delete-link', 'remove-firewall']);
    const twice: Receipt = [opened, { ...opened, key: allForwardingKey, before: '1', after: '0' }];
    expect(planCleanup(twice, { ...host, sysctls: { ...host.sysctls, [allForwardingKey]: '0' } })).toMatchObject([
      { key: allForwardingKey },
      { key: lan },
    ]);
  });

  it('ends the rules of a table before the throw routes in it: no address enters the tunnel meanwhile', () => {
    const [step] = planCleanup([{ made: 'rules', link: 'cpn0', table: '8350' }], host);
    const [main, own] = rulePairOf('8350');
    expect(step).toMatchObject({
      do: 'configure-link',
      commands: [
        { remove: 'rule', rule: own },
        { remove: 'rule', rule: main },
        { remove: 'throw', prefix: '192.168.50.53/32', table: '8350' },
        { remove: 'throw', prefix: '192.168.50.54/32', table: '8350' },
      ],
    });
    expect(step?.changes).toHaveLength(4);
  });

  it('removes the rules of a full tunnel, and leaves those of other tables', () => {
    const [step] = planCleanup([{ made: 'rules', link: 'cpn0' }], host);
    expect(step).toMatchObject({ commands: [{ rule: tunnelRule }, { rule: mainRule }] });
  });

  it('finds nothing to do on a host that has none of it any more, except in the hosts file', () => {
    const gone = { ...host, link: null, device: null, firewall: null, rules: [], throwRoutes: [], sysctls: {} };
    expect(kinds(planCleanup(receipt, gone))).toEqual(['remove-hosts']);
    expect(planCleanup(receipt, { ...gone, hosts: { block: null, trouble: 'it is a folder' } })).toEqual([]);
  });

  it.each<[string, entry: OwnedResource, sysctls: Record<string, string>, reverts: boolean]>([
    ['as cpn set it', opened, {}, true],
    ['that another program changed since', { ...opened, after: '2' }, {}, false],
    ['that is gone', { ...opened, key: forwardingKey('eth9') }, {}, false],
    ['while another program turned on all forwarding', opened, { [allForwardingKey]: '1' }, false],
    ['where all forwarding is not known', opened, { [allForwardingKey]: '0' }, true],
  ])('reverts a setting or not: %s', (_, entry, sysctls, reverts) => {
    const steps = planCleanup([entry], { ...host, sysctls: { ...host.sysctls, ...sysctls } });
    expect(steps).toMatchObject(reverts ? [{ do: 'set-sysctl', key: lan, value: '0' }] : []);
  });

  it('reverts each of several settings', () => {
    const second = { ...opened, key: forwardingKey('eth2'), before: '0' };
    const sysctls = { ...host.sysctls, [second.key]: '1' };
    expect(planCleanup([opened, second], { ...host, sysctls })).toMatchObject([{ key: second.key }, { key: lan }]);
  });
});
