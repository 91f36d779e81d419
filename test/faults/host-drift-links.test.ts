import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { plan, status } from '../e2e/office.ts';
import { eventually } from '../lab/eventually.ts';
import { expectUnharmed, repairing, repairs } from './drift.ts';
import { answers, type DriftLab, lan, startDriftLab } from './drift-lab.ts';
import { injecting } from './record.ts';
import { testRecurringDrift } from './recurring-drift.ts';

let lab: DriftLab;

beforeAll(async () => {
  lab = await startDriftLab({ connector: 'touched' });
});

afterAll(() => lab?.office.lab.stop());

const routeAdded = `add route ${lan}: a peer serves it`;

describe('drift of addresses, routes and MTU is repaired at the event of the kernel', () => {
  it('31: an address is removed', async () => {
    const { address } = lab.kept.joined;
    await repairing(31, lab, {
      how: 'ip address del',
      script: `ip address del ${address}/24 dev cpn0`,
      changes: [`add address ${address}/24: the peer's address is not on the interface`, routeAdded],
      works: () => lab.reachesLan(),
      hitsAll: true,
    });
  });

  it('47: an address is added by hand', () =>
    repairing(47, lab, {
      how: 'ip address add',
      script: 'ip address add 10.98.0.1/24 dev cpn0',
      changes: ['remove address 10.98.0.1/24: not the address of this peer'],
      works: () => lab.reachesLan(),
    }));

  it('32: a route is removed', () =>
    repairing(32, lab, {
      how: 'ip route del',
      script: `ip route del ${lan} table 8350`,
      changes: [routeAdded],
      works: () => lab.reachesLan(),
    }));

  it('36: the MTU is changed', () =>
    repairing(36, lab, {
      how: 'ip link set mtu 1300',
      script: 'ip link set cpn0 mtu 1300',
      changes: ['update interface cpn0: the MTU differs'],
      works: async () => (await status(lab.kept.host)).mtu === 1420,
    }));
});

it('33: a more specific route of another program is reported, and stays', () =>
  injecting(33, async (row) => {
    const { kept, daemon, touched } = lab;
    const hijack = '192.168.50.0/25 via 203.0.113.11';
    const losses = await expectUnharmed(lab, async () => {
      const mark = daemon.mark();
      row.injected(`ip route add ${hijack}`);
      await kept.host.exec(['sh', '-c', `ip route add ${hijack}`]);
      const route = { prefix: lan, via: 'touched', state: 'active', reason: '192.168.50.0/25 of it leads to eth0' };
      const { state, routes, drift } = await status(kept.host);
      row.detected();
      expect({ state, routes, drift }).toEqual({ state: 'degraded', routes: [route], drift: [] });
      // A pass that has something to do leaves the route alone too.
      await kept.host.exec(['ip', 'link', 'set', 'cpn0', 'mtu', '1300']);
      const line = await daemon.awaitLog('the repair', ({ msg }) => msg === repairs, mark);
      expect(line.changes).toEqual(['update interface cpn0: the MTU differs']);
      const { stdout } = await kept.host.exec(['ip', 'route', 'show', '192.168.50.0/25']);
      expect(stdout).toContain('via 203.0.113.11');
      expect(await plan(kept.host)).toEqual({ exitCode: 0, changes: [] });
      await kept.host.exec(['sh', '-c', `ip route del ${hijack}`]);
      const { reason: _reason, ...well } = route;
      expect(await status(kept.host)).toMatchObject({ state: 'up', routes: [well] });
      await eventually('the LAN answers', () => lab.reachesLan());
      row.repaired();
      expect(await answers(kept.host, touched.joined.address)).toBe(true);
    });
    row.lost(losses);
  }));

it(
  '35: a route that a network manager keeps deleting is repaired with a backoff',
  () =>
    testRecurringDrift(35, lab, {
      monitor: 'ip monitor route',
      command: `ip route del ${lan} dev cpn0 table 8350`,
      target: `route ${lan}`,
      works: () => lab.reachesLan(),
    }),
  120_000,
);
