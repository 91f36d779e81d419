import { afterAll, beforeAll, expect, it } from 'vitest';
import { startControlPlane } from '../lab/control-plane.ts';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { Lab } from '../lab/lab.ts';
import { Owner } from '../lab/owner.ts';
import { join, type Office, patiently, plan, status } from './office.ts';

/**
 * An exit node without a default route in the main table: a rule sends packets of the network to table 100. A server lies beyond its
 * router, and an origin that takes the default route goes there through the tunnel.
 */
let office: Office;
let owner: Owner;
let exit: Host;
let origin: Host;
let daemon: Daemon;

const router = '203.0.113.254';
const server = '198.51.100.9';
const everything = '0.0.0.0/0';
const ip = (text: string) => exit.exec(['ip', ...text.split(' ')]);
const withdrawn = async () => {
  const peers = await owner.listPeers(1);
  return (peers.find(({ name }) => name === 'exit') as { withdrawn?: string[] } | undefined)?.withdrawn ?? [];
};

beforeAll(async () => {
  const lab = await Lab.start({ commandServers: true });
  const controlPlane = await startControlPlane(lab, '203.0.113.1', ['--allow-public-routes']);
  await controlPlane.cpn(['network', 'create', '--name', 'office', '--cidr', '10.77.0.0/24', '--route', everything]);
  office = { lab, controlPlane, api: ['--api', controlPlane.url, '--insecure-http'] };
  owner = new Owner(controlPlane);
  const gateway = await lab.addHost('router', { address: `${router}/24` });
  await gateway.exec(['sh', '-c', 'echo 1 >/proc/sys/net/ipv4/ip_forward']);
  await (await lab.addLan(gateway, '198.51.100.1/24')).addHost('server', `${server}/24`, { routed: true });
  exit = await lab.addHost('exit', { address: '203.0.113.11/24' });
  await ip(`route add default via ${router} table 100`);
  await ip('rule add from 10.77.0.0/24 lookup 100 priority 1000');
  origin = await lab.addHost('origin', { address: '203.0.113.12/24' });
  await join(office, exit, '--type', 'connector', '--endpoint', '203.0.113.11:51820');
  await join(office, origin, '--endpoint', '203.0.113.12:51820', '--allow-route', everything);
  daemon = await startDaemon(exit, '--interval', '5');
  await eventually('the daemon follows the network', async () => (await status(exit)).sync.mode === 'push');
}, 90_000);

afterAll(async () => {
  await daemon?.stop();
  await office?.lab.stop();
});

it('serves the default route by the table to which the rule leads', async () => {
  await eventually('a packet comes back', async () => (await origin.ping(server, patiently)).received === 1, {
    timeoutMs: 40_000,
  });
  // A pass may be at work on what the join began.
  const shown = await eventually('it is up', async () => {
    const seen = await status(exit);
    return seen.state === 'up' ? seen : null;
  });
  expect(shown).toMatchObject({
    state: 'up',
    routes: [{ prefix: everything, reason: 'served by this host' }],
  });
  expect(await plan(exit)).toEqual({ exitCode: 0, changes: [] });
  expect(await withdrawn()).toEqual([]);
});

it.each([
  [
    'makes it unreachable',
    'route replace unreachable default table 100',
    `route replace default via ${router} dev eth0 table 100`,
    'makes it unreachable',
  ],
  [
    'sends packets back into the tunnel',
    'route replace default dev cpn0 table 100',
    `route replace default via ${router} dev eth0 table 100`,
    'routes packets for it back into cpn0',
  ],
])(
  'withdraws the route and reports it where the table to which the rule leads %s',
  async (_what, breakIt, mend, why) => {
    await ip(breakIt);
    await eventually('it is out of service', async () => (await withdrawn()).length > 0, { timeoutMs: 40_000 });
    expect(await withdrawn()).toEqual([everything]);
    const seen = await eventually('status has the withdrawn route', async () => {
      const each = await status(exit);
      return each.routes[0]?.state === 'standby' ? each : null;
    });
    expect(seen.state).toBe('degraded');
    expect(seen.warnings).toContainEqual(expect.stringMatching(new RegExp(`behind 0\\.0\\.0\\.0/0 \\(.*${why}`)));
    const doctor = JSON.parse((await exit.cpn(['doctor', '--json'], { allowFailure: true })).stdout);
    expect(doctor.findings).toContainEqual(
      expect.objectContaining({ verdict: 'problem', found: expect.stringContaining(why) }),
    );
    const explained = await exit.cpn(['explain', server, '--json'], { allowFailure: true });
    expect(explained.stdout).toContain(why);
    await ip(mend);
    await eventually('it is in service', async () => (await withdrawn()).length === 0, { timeoutMs: 40_000 });
    await eventually('a packet comes back', async () => (await origin.ping(server, patiently)).received === 1, {
      timeoutMs: 40_000,
    });
  },
  120_000,
);
