import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { plan } from '../e2e/office.ts';
import type { Daemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import { expectUnharmed } from './drift.ts';
import { never } from './drift-lab.ts';
import { NamedLab } from './named-lab.ts';
import { faultBegins, faultEnds } from './proxied-host.ts';
import { injecting } from './record.ts';
import { type SleepingDaemon, startSleepingDaemon } from './sleeping-daemon.ts';

let lab: NamedLab;
let sleeping: SleepingDaemon;
let daemon: Daemon;

beforeAll(async () => {
  lab = await NamedLab.start();
  sleeping = await startSleepingDaemon(lab.kept.host, '--interval', String(never));
  daemon = sleeping.daemon;
  await lab.awaitNowhere(daemon);
});

afterAll(() => lab?.office.lab.stop());

describe('without a pass for an hour, endpoints are resolved again', () => {
  it('38: with SIGHUP', () =>
    injecting(38, async (row) => {
      const losses = await expectUnharmed({ ...lab, daemon }, async () => {
        const mark = daemon.mark();
        row.injected('another address, of a peer without a handshake; SIGHUP');
        await lab.publish(lab.first);
        daemon.process.signal('SIGHUP');
        await lab.awaitMove(daemon, lab.first, mark, () => row.detected());
        row.repaired();
      });
      row.lost(losses);
    }));

  it('37: when the network card was down', () =>
    injecting(37, async (row) => {
      const { kept, first, second, untouched } = lab;
      const before = daemon.mark();
      row.injected('ip link set eth0 down, and up (ends all tunnels)');
      await kept.host.exec(['ip', 'link', 'set', 'eth0', 'down']);
      await daemon.awaitLog('the loss', ({ msg }) => msg === faultBegins, before);
      row.detected();
      const mark = daemon.mark();
      await lab.publish(second);
      await kept.host.exec(['sh', '-c', 'ip link set eth0 up && ip route add default via 203.0.113.1']);
      await lab.awaitMove(daemon, second, mark, () => {});
      await daemon.awaitLog('the return', ({ msg }) => msg === faultEnds, mark);
      for (const member of [untouched, first]) {
        await eventually(`${member.host.name} answers`, () => lab.works(member));
      }
      row.repaired();
      expect(await plan(kept.host)).toEqual({ exitCode: 0, changes: [] });
    }));

  it('39: when the host slept', () =>
    injecting(39, async (row) => {
      const { host } = lab.first;
      const losses = await expectUnharmed({ ...lab, daemon }, async () => {
        // Its handshake is fresh, and would be after a nap.
        const script = `ip address del ${host.address}/24 dev eth0; ip address add 203.0.113.24/24 dev eth0`;
        await host.exec(['sh', '-c', script]);
        await lab.publish(lab.first, '203.0.113.24');
        const mark = daemon.mark();
        row.injected('the wall clock goes on by 150 s, and a peer has moved');
        await sleeping.sleep(150);
        const line = await daemon.awaitLog('the jump', ({ msg }) => msg === 'reloading', mark);
        row.detected();
        expect(line).toMatchObject({ why: 'the clock jumped', seconds: 150 });
        await lab.awaitMove(daemon, lab.first, mark, () => {});
        row.repaired();
      });
      row.lost(losses);
    }));
});
