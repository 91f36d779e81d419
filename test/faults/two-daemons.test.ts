import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Office, startOffice, status } from '../e2e/office.ts';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { addEdge, addMember, edgeAddress } from './members.ts';
import { injecting } from './record.ts';
import { whilePinging } from './while-pinging.ts';

let office: Office;
let host: Host;
let first: Daemon;

beforeAll(async () => {
  office = await startOffice();
  ({ host } = await addMember(office, await addEdge(office), 'host', '--wait', '0'));
  first = await startKeeper();
});

afterAll(() => office?.lab.stop());

/** A daemon that waits for updates, and would wait for an hour. */
async function startKeeper(): Promise<Daemon> {
  const daemon = await startDaemon(host, '--interval', '3600');
  await daemon.awaitLog('the network', ({ msg }) => msg === 'reconciling the network');
  await eventually('it waits for updates', async () => (await status(host)).sync.mode === 'push');
  return daemon;
}

/** Checks that a daemon works. */
async function expectRepair(daemon: Daemon): Promise<void> {
  const mark = daemon.mark();
  await host.exec(['ip', 'link', 'set', 'cpn0', 'mtu', '1300']);
  await daemon.awaitLog('the repair', ({ msg }) => msg === 'drift repaired', mark);
  expect((await status(host)).mtu).toBe(1420);
}

it('21: a second daemon ends at once, and names the first, which goes on undisturbed', () =>
  injecting(21, async (row) => {
    const losses = await whilePinging(host, edgeAddress, async () => {
      const mark = first.mark();
      row.injected('cpn run, twice');
      const { exitCode, stderr } = await host.cpn(['run'], { allowFailure: true });
      row.detected();
      const pid = first.log.find(({ msg }) => msg === 'started')?.pid;
      expect(exitCode).toBe(1);
      expect(stderr).toContain(`another cpn run (pid ${pid})`);
      expect(first.since(mark)).toEqual([]);
      await expectRepair(first);
      row.repaired();
    });
    row.lost(losses);
    expect(losses.lost).toBe(0);
  }));

it('21: a daemon that was killed does not keep the next one from starting', () =>
  injecting(21, async (row) => {
    const losses = await whilePinging(host, edgeAddress, async () => {
      row.injected('kill -9 of the first, cpn run');
      first.process.signal('SIGKILL');
      await first.process.exited;
      const next = await startKeeper();
      await expectRepair(next);
      row.repaired();
      expect(await next.stop()).toMatchObject({ exitCode: 0 });
    });
    row.lost(losses);
    expect(losses.lost).toBe(0);
  }));
