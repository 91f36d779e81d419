import { describe, expect, it } from 'vitest';
import { firewallMarks, unreadable, withoutTool } from '../../../src/core/forward/own-table.ts';
import type { Actual } from '../../../src/core/host-state/actual.ts';
import { allForwardingKey, forwardingKey, sourceFilterKey } from '../../../src/core/host-state/sysctl-keys.ts';
import type { Desired } from '../../../src/core/reconcile/desired.ts';
import {
  enablesForwarding,
  needsRules,
  pausesForwarding,
  planFirewall,
  planForwardingOff,
  planForwardingOn,
  planSysctls,
} from '../../../src/core/reconcile/plan-forwarding.ts';
import { bare, desireFor, dialled, network, peer } from '../samples.ts';

const connector = peer(1, { type: 'connector', endpoint: dialled(1) });
const opening = (link: string) => ({ link, all: '0', links: [] });
const ingress = [
  { link: 'eth1', closed: ['eth0'], opening: opening('eth1') },
  // It forwarded before: another tool decides.
  { link: 'docker0', closed: null, opening: opening('docker0') },
];
const desired: Desired = { ...desireFor(connector, network([connector, peer(3)])), ingress, unneeded: [] };
const all = [...ingress.map(({ link }) => link), 'cpn0'];
const marks = desired.firewall && firewallMarks(desired.firewall);
const on = (...links: string[]) => Object.fromEntries(links.map((link) => [forwardingKey(link), '1']));
const host = (changes: Partial<Actual>): Actual => ({ ...bare, firewall: marks, ...changes });
const sysctls = (steps: ReturnType<typeof planForwardingOff>) =>
  steps.map((step) =>
    step.do === 'set-sysctl'
      ? [
          step.key.replace(/^net\.ipv4\.(?:conf\.(.*)\.forwarding|ip_forward)$/, '$1') || 'all',
          step.value,
          step.changes.length,
        ]
      : step.do,
  );

describe('the table of packet rules', () => {
  const planned = (changes: Partial<Desired>, firewall: Actual['firewall']) =>
    planFirewall({ ...desired, ...changes }, { ...bare, firewall }).map((step) => [
      step.do,
      ...step.changes.map(({ action, reason }) => [action, reason]),
    ]);

  it('is added, replaced or left', () => {
    expect(planned({}, null)).toEqual([['set-firewall', ['add', 'a connector forwards packets']]]);
    expect(planned({ isConnector: false }, null)).toEqual([['set-firewall', ['add', 'this host forwards packets']]]);
    expect(planned({ forwards: false }, null)).toEqual([
      ['set-firewall', ['add', 'only the tunnel and this host reach the tunnel address']],
    ]);
    for (const other of [[], ['forward cpn refuse-rest 1234'], [...(marks ?? []), 'forward x'], [unreadable]])
      expect(planned({}, other)).toEqual([['set-firewall', ['update', 'the rules differ']]]);
    expect(planned({}, marks)).toEqual([]);
  });

  it('is removed if there are no rules, as far as there may be one', () => {
    for (const present of [marks, [unreadable]])
      expect(planned({ firewall: null }, present)).toEqual([
        ['remove-firewall', ['remove', 'this host has no packet rules']],
      ]);
    for (const absent of [null, [withoutTool]]) expect(planned({ firewall: null }, absent)).toEqual([]);
  });
});

describe('forwarding is turned off', () => {
  const off = (changes: Partial<Desired>, actual: Partial<Actual>) =>
    sysctls(planForwardingOff({ ...desired, ...changes }, host(actual)));

  it('for each interface that is no longer needed, and its record is dropped', () => {
    const unneeded = ['eth2', 'eth3', 'eth4'];
    const actual = { sysctls: on('eth2', 'eth4') };
    expect(off({ unneeded }, actual)).toEqual([
      ['eth2', '0', 1],
      ['eth4', '0', 1],
    ]);
    const steps = planForwardingOff({ ...desired, unneeded }, host(actual));
    expect(steps.map((step) => 'receipt' in step && step.receipt)).toEqual(['remove', 'remove']);
  });

  it('while the rules are missing, of the tunnel and the interfaces that only they limit: that is no change', () => {
    const without = { firewall: null, sysctls: on(...all) };
    expect(off({}, without)).toEqual([
      ['cpn0', '0', 0],
      ['eth1', '0', 0],
    ]);
    expect(off({}, { ...without, firewall: [unreadable] })).toEqual([]);
    expect(off({}, { sysctls: on(...all) })).toEqual([]);
    expect(off({}, { firewall: null, sysctls: on('eth1') })).toEqual([['eth1', '0', 0]]);
  });

  it('on a host that forwards nothing, unless its settings cannot be written', () => {
    const idle = { forwards: false, ingress: [] };
    expect(off(idle, { sysctls: on('cpn0') })).toEqual([['cpn0', '0', 1]]);
    expect(off(idle, { sysctls: on('cpn0'), isSealed: true })).toEqual([]);
    expect(off(idle, { sysctls: on('eth1') })).toEqual([]);
  });
});

describe('forwarding is turned on', () => {
  const turned = (changes: Partial<Desired>, actual: Partial<Actual>) =>
    sysctls(planForwardingOn({ ...desired, ...changes }, host(actual)));

  it('of each interface that needs it, and last of the tunnel', () => {
    expect(turned({}, {})).toEqual([
      ['eth1', '1', 1],
      ['docker0', '1', 1],
      ['cpn0', '1', 1],
    ]);
    expect(turned({}, { sysctls: on('eth1', 'cpn0') })).toEqual([['docker0', '1', 1]]);
    expect(turned({ forwards: false }, {})).toEqual([]);
  });

  it('again after a pause, which is no change, of what only the rules limit', () => {
    expect(turned({}, { firewall: null, sysctls: on(...all) })).toEqual([
      ['eth1', '1', 0],
      ['cpn0', '1', 0],
    ]);
  });

  it('of each interface after that of all is reverted, which turns off each', () => {
    const reverting = { revertsAll: true };
    const forwarding = { ...on(...all), [allForwardingKey]: '1' };
    expect(turned(reverting, { sysctls: forwarding })).toEqual([
      ['all', '0', 1],
      ['eth1', '1', 0],
      ['docker0', '1', 0],
      ['cpn0', '1', 0],
    ]);
    expect(turned(reverting, { sysctls: on(...all) })).toEqual([]);
  });
});

it('steps that turn forwarding on need the rules, and those that pause it are no change', () => {
  const steps = [
    ...planForwardingOff({ ...desired, unneeded: ['eth2'] }, host({ firewall: null, sysctls: on('cpn0', 'eth2') })),
    ...planForwardingOn(desired, host({ sysctls: on('eth1', 'docker0') })),
    ...planFirewall(desired, bare),
    ...planSysctls(
      { ...desired, sysctls: { [sourceFilterKey('cpn0')]: '2', 'net.ipv4.conf.all.src_valid_mark': '1' } },
      bare,
    ),
  ];
  expect(steps.map((step) => [enablesForwarding(step), pausesForwarding(step), step.changes.some(needsRules)])).toEqual(
    [
      [false, false, false],
      [false, true, false],
      [true, false, true],
      [false, false, true],
      [false, false, false],
      [false, false, false],
    ],
  );
  // The interface is ours, and goes with its settings.
  expect(steps.slice(4).map((step) => 'receipt' in step && step.receipt)).toEqual(['none', false]);
});
