import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { joinHost } from '../lab/control-plane.ts';
import { startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { Owner } from '../lab/owner.ts';
import { join, type Office, patiently, plan, startOffice, status } from './office.ts';

/**
 * A host with four peers, of which the connector answered before and does not any more, while the control plane
 * does: that one answers outside the tunnel, and so does not confirm that the network works.
 */
let office: Office;
let connector: Host;
let host: Host;
let owner: Owner;
let number: number;
let network: string;
let device: string;

beforeAll(async () => {
  office = await startOffice();
  const { lab, controlPlane } = office;
  owner = new Owner(controlPlane);
  connector = await lab.addHost('connector', { address: '203.0.113.11/24' });
  host = await lab.addHost('host', { address: '203.0.113.12/24' });
  await join(office, connector, '--type', 'connector', '--endpoint', '203.0.113.11:51820');
  for (const name of ['one', 'two', 'three']) await owner.addStranger(1, name, null);
  const flags = ['--endpoint', '203.0.113.12:51820'];
  const joined = await joinHost(controlPlane, host, { network: 'office', flags, before: [connector] });
  number = joined.peer.id;
  [network, device] = [
    await readOutput('ip address show cpn0; ip route'),
    await readOutput('wg show cpn0 allowed-ips'),
  ];
}, 60_000);

/** The connector answers, and then does not any more. */
beforeEach(async () => {
  await connector.uplink.restore();
  expect(await host.ping('10.77.0.1', patiently)).toMatchObject({ received: 1 });
  await connector.uplink.cut();
});

afterAll(() => office?.lab.stop());

/** What a command prints, in a fixed order. */
async function readOutput(command: string): Promise<string> {
  const { stdout } = await host.exec(['sh', '-c', command]);
  return stdout.split('\n').toSorted().join('\n');
}

async function expectAsBefore(): Promise<void> {
  expect(await readOutput('ip address show cpn0; ip route show dev cpn0')).toContain('inet 10.77.0.5/24');
  expect(await readOutput('wg show cpn0 allowed-ips')).toBe(device);
  expect((await host.cpn(['reconcile'], { allowFailure: true })).stderr).not.toContain('unreachable');
}

describe('a change that takes away most of the network is rolled back, though the control plane answers', () => {
  it('it is where the newest map is the reason', async () => {
    // Without an endpoint it would reach the others through the connector.
    await owner.setEndpoint(1, number, null);
    const { exitCode, stderr } = await host.cpn(['reconcile', '--confirm-within', '3s'], { allowFailure: true });
    expect(exitCode).toBe(1);
    expect(stderr).toContain('loses 3 of 4 peers, and no retained peer that had a handshake responded');
    expect(await readOutput('ip address show cpn0; ip route')).toBe(network);
    await expectAsBefore();
    expect(await plan(host)).toEqual({ exitCode: 0, changes: [] });
    expect((await status(host)).warnings).toEqual([expect.stringContaining('rolled back')]);
  });

  it('it is where a local network is the reason, and the daemon leaves the route alone then', async () => {
    await host.plug(await office.lab.addSegment('local'), { address: '192.0.2.5/24' });
    await using daemon = await startDaemon(host, '--interval', '1', '--confirm-within', '3s');
    await daemon.awaitLog('the daemon', ({ msg }) => msg === 'reconciling the network');
    await host.exec(['ip', 'address', 'add', '10.77.0.130/25', 'dev', 'eth1']);
    const line = await daemon.awaitLog('the rollback', ({ kind }) => kind === 'NotConfirmed');
    expect(line.error).toContain("it loses the network's range 10.77.0.0/24, and no retained peer");
    const [address, peers] = [await readOutput('ip address show cpn0'), await readOutput('wg show cpn0 allowed-ips')];
    expect(address).toContain('inet 10.77.0.5/24');
    expect(peers).toBe(device);
    expect((await status(host)).drift).not.toEqual([]);
    await eventually('the status has the reason', async () => (await status(host)).warnings?.includes(line.error));
    await daemon.stop();

    await connector.uplink.restore();
    expect((await host.cpn(['reconcile'])).stdout).toContain('10.77.0.5/32');
    expect(await readOutput('ip address show cpn0')).toContain('inet 10.77.0.5/32');
    expect(await host.ping('10.77.0.1', patiently)).toMatchObject({ received: 1 });
  });
});
