/** A host whose state was copied to another one, as an image or a snapshot does. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeKey } from '../lab/control-plane.ts';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { join, type Office, patiently, startOffice, status } from './office.ts';

let office: Office;
let server: Host;
let original: Host;
let copy: Host;
let daemons: Daemon[];
let serverAddress: string;

beforeAll(async () => {
  office = await startOffice();
  const { lab } = office;
  server = await lab.addHost('server', { address: '203.0.113.11/24' });
  original = await lab.addHost('original', { address: '203.0.113.21/24' });
  copy = await lab.addHost('copy', { address: '203.0.113.22/24' });
  ({ address: serverAddress } = await join(office, server, '--endpoint', `${server.address}:51820`));
  await join(office, original);
  await copy.exec(['cp', '-a', original.stateDir, copy.stateDir]);
  await copy.exec(['cp', '-a', `${original.configDir}/cpn0.conf`, copy.configDir]);
  daemons = await Promise.all([server, original].map((host) => startDaemon(host)));
}, 60_000);

afterAll(() => office?.lab.stop());

const eventsOf = async (type: string): Promise<{ peer: { name: string }; details: object }[]> => {
  const { stdout } = await office.controlPlane.cpn(['events', 'office', '--json', '--type', type]);
  return JSON.parse(stdout).events;
};
const warningsOf = async (host: Host): Promise<string> => ((await status(host)).warnings ?? []).join('\n');

let changes = 0;
/** Each change of the network makes all hosts request the map again. */
async function change(): Promise<void> {
  changes += 1;
  await office.controlPlane.cpn(['network', 'update', 'office', '--description', `change ${changes}`]);
}

describe('a host that was copied', () => {
  it('is no clone while only one of the two runs, whatever restarts', async () => {
    const [, daemon] = daemons;
    await daemon?.stop();
    await original.reboot();
    daemons.push(await startDaemon(original));
    await eventually('it waits again', async () => (await status(original)).sync.mode === 'push', {
      timeoutMs: 30_000,
    });
    await change();
    expect(await eventsOf('peer.cloned')).toEqual([]);
    expect(await warningsOf(original)).not.toContain('identity');
  });

  it('is an event once both run, and status and doctor of both have the remedy', async () => {
    const daemon = await startDaemon(copy);
    daemons.push(daemon);
    await daemon.awaitLog('it reconciles', ({ msg }) => msg === 'reconciling the network');
    const [event] = await eventually(
      'the event',
      async () => {
        // The endpoint of the original at the server is that of the host which sent last.
        for (const host of [original, copy]) {
          await host.ping(serverAddress);
          await change();
        }
        const found = await eventsOf('peer.cloned');
        return found.length > 0 && found;
      },
      { timeoutMs: 90_000, everyMs: 2_000 },
    );
    expect(event).toMatchObject({ peer: { name: 'original' } });
    expect(event?.details).toEqual({ addresses: expect.arrayContaining([original.address, copy.address]) });
    for (const host of [original, copy]) {
      await change();
      await eventually('status has it', async () => (await warningsOf(host)).includes('cpn leave cpn0 --keep-peer'));
      const { stdout } = await host.cpn(['doctor'], { allowFailure: true });
      expect(stdout).toMatch(/another host has used the identity of cpn0 since/);
    }
    expect(await eventsOf('peer.cloned')).toHaveLength(1);
  });

  it('is noticed by a peer without the control plane, by its two endpoints', async () => {
    await eventually(
      'the server warns',
      async () => {
        for (const host of [original, copy]) {
          await host.ping(serverAddress);
          await change();
        }
        return (await warningsOf(server)).includes('alternately: two hosts may use its identity');
      },
      { timeoutMs: 60_000 },
    );
    const warning = await warningsOf(server);
    for (const { address } of [original, copy]) expect(warning).toContain(`${address}:`);
    expect((await server.cpn(['doctor'], { allowFailure: true })).stdout).toContain('alternately');
  });

  it('gets an identity of its own by the remedy, and the original keeps its own', async () => {
    const refused = await copy.cpn(['leave', 'cpn0'], { allowFailure: true });
    expect([refused.exitCode, refused.stderr]).toEqual([2, expect.stringContaining('"cpn leave cpn0 --keep-peer"')]);
    const left = await copy.cpn(['leave', 'cpn0', '--keep-peer', '--verify', '--yes']);
    expect(left.stderr).toMatch(/peer 2 stays in network office; "cpn peer remove 1 2" removes it where no other host/);
    const key = await makeKey(office.controlPlane, 'office', 'copy');
    const argv = ['join', '-', ...office.api, '--name', 'original', '--wait', '0', '--json'];
    const joined = JSON.parse((await copy.cpn(argv, { input: key })).stdout);
    expect(joined.peer.name).not.toBe('original');
    const { address } = await status(original);
    expect(joined.address).not.toBe(address);
    await change();
    for (const each of [address, joined.address]) {
      await eventually(`${each} answers`, async () => (await server.ping(each, patiently)).received === 1);
    }
    expect((await office.controlPlane.cpn(['peer', 'list', 'office'])).stdout).toContain('original');
  });
});
