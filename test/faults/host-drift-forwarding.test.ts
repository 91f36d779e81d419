import { afterAll, beforeAll, describe, it } from 'vitest';
import { repairing } from './drift.ts';
import { type DriftLab, startDriftLab } from './drift-lab.ts';
import { testRecurringDrift } from './recurring-drift.ts';

let lab: DriftLab;

beforeAll(async () => {
  lab = await startDriftLab({ connector: 'kept' });
});

afterAll(() => lab?.office.lab.stop());

describe('drift of a connector is repaired at the event of the kernel', () => {
  it('50: the packet rules are flushed', () =>
    repairing(50, lab, {
      how: 'nft flush ruleset',
      script: 'nft flush ruleset',
      changes: ['add firewall inet cpn_cpn0: a connector forwards packets'],
      works: () => lab.reachesLan(),
    }));

  it('51: forwarding is switched off', () =>
    repairing(51, lab, {
      how: 'ip_forward = 1, and 0 again',
      script: 'for value in 1 0; do echo $value >/proc/sys/net/ipv4/ip_forward; done',
      changes: ['eth1', 'cpn0'].map(
        (link) => `update sysctl net.ipv4.conf.${link}.forwarding: a connector forwards packets`,
      ),
      works: () => lab.reachesLan(),
    }));

  it('46: the interface is set down', () =>
    repairing(46, lab, {
      how: 'ip link set down',
      script: 'ip link set cpn0 down',
      changes: ['update interface cpn0: the interface is down'],
      works: () => lab.reachesLan(),
      hitsAll: true,
    }));
});

it(
  '35: packet rules that a network manager flushes all the time are loaded at once each time',
  () =>
    testRecurringDrift(35, lab, {
      monitor: 'nft monitor ruleset',
      command: 'nft list tables | grep -q . && nft flush ruleset',
      target: 'firewall inet cpn_cpn0',
      isProtective: true,
      works: () => lab.reachesLan(),
    }),
  120_000,
);
