/** How soon, and how surely, a peer that is removed, suspended or expired loses what it reached. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { join, type Office, startOffice } from './office.ts';

let office: Office;

beforeAll(async () => {
  office = await startOffice();
}, 60_000);

afterAll(() => office?.lab.stop());

const admin = async (...args: string[]) => (await office.controlPlane.cpn(args)).stdout;

/** The keys of the peers that WireGuard has on a host. */
async function peersOf(host: Host): Promise<readonly string[]> {
  const { stdout } = await host.exec(['wg', 'show', 'cpn0', 'peers']);
  return stdout.split('\n').filter((line) => line !== '');
}

describe('in a network of two', () => {
  let server: Host;
  let laptop: Host;
  let daemon: Daemon;

  beforeAll(async () => {
    server = await office.lab.addHost('server', { address: '203.0.113.11/24' });
    laptop = await office.lab.addHost('laptop', { address: '203.0.113.12/24' });
    await join(office, server, '--endpoint', '203.0.113.11:51820');
    await join(office, laptop);
    daemon = await startDaemon(server, '--interval', '3600');
    await eventually('the server has the laptop', async () => (await peersOf(server)).length === 1);
  }, 60_000);

  it('the command that suspends a peer names the host whose daemon is stopped, until that has applied it', async () => {
    await daemon.stop();
    const suspend = ['peer', 'suspend', 'office', 'laptop', '--yes'];
    const { stderr } = await office.controlPlane.cpn([...suspend, '--wait', '1']);
    expect(stderr).toMatch(/hosts that have not applied it: server \(last request \d+ s ago\); they may still reach/);
    const removals = async () => JSON.parse(await admin('api', 'GET', '/api/networks/1/removals')).data.pending;
    expect(await removals()).toMatchObject([{ name: 'server', acknowledged_revision: null }]);
    daemon = await startDaemon(server, '--interval', '3600');
    await eventually('the server has applied it', async () => (await removals()).length === 0);
    expect(await peersOf(server)).toEqual([]);
    // With the daemon up the command itself waits for it.
    await admin('peer', 'resume', 'office', 'laptop');
    await eventually('the server has the laptop', async () => (await peersOf(server)).length === 1);
    expect((await office.controlPlane.cpn(suspend)).stderr).toContain('all hosts have applied it');
    expect(await peersOf(server)).toEqual([]);
  });

  it.each<[string, string[]]>([
    ['a suspension', ['peer', 'suspend', 'office', 'laptop']],
    ['a removal', ['peer', 'remove', 'office', 'laptop', '--yes']],
  ])('%s reaches the other host by one reply', async (_, command) => {
    await admin('peer', 'resume', 'office', 'laptop');
    await eventually('the server has the laptop', async () => (await peersOf(server)).length === 1);
    const mark = daemon.mark();
    await admin(...command);
    await eventually('the server has dropped it', async () => (await peersOf(server)).length === 0);
    expect(daemon.since(mark).filter(({ level }) => level > 30)).toEqual([]);
  });
});
