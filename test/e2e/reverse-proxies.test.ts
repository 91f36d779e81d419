import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ControlPlane, makeKey, startControlPlane } from '../lab/control-plane.ts';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { Lab } from '../lab/lab.ts';
import { deafUrl, hastyUrl, type ProxiedWay, startReverseProxies } from '../lab/reverse-proxies.ts';

/** A host with a network for each way through a proxy to the control plane. */
let lab: Lab;
let controlPlane: ControlPlane;
let host: Host;
let daemon: Daemon;
let ways: readonly ProxiedWay[];
/** The ways of which each is as good as none. */
let all: readonly ProxiedWay[];

beforeAll(async () => {
  lab = await Lab.start({ commandServers: true });
  const proxies = '203.0.113.2';
  controlPlane = await startControlPlane(lab, '203.0.113.1', [
    '--trust-proxy',
    proxies,
    '--metrics',
    '203.0.113.1:9090',
  ]);
  const proxy = await lab.addHost('proxies', { address: `${proxies}/24` });
  host = await lab.addHost('edge', { address: '203.0.113.11/24' });
  ways = await startReverseProxies(proxy, '203.0.113.1:8787');
  all = [...ways, { name: 'deaf', url: deafUrl(proxy) }, { name: 'hasty', url: hastyUrl(proxy) }];
  for (const [index, { url }] of all.entries()) {
    const [name, cidr] = [`n${index}`, `10.${80 + index}.0.0/24`];
    // A short map is compressed by no proxy.
    await controlPlane.cpn(['network', 'create', '--name', name, '--cidr', cidr, '--description', 'long '.repeat(190)]);
    const key = await makeKey(controlPlane, name, name);
    const flags = ['--interface', name, '--wait', '0', '--type', 'origin', '--name', `edge${index}`];
    await host.cpn(['join', '-', '--api', url, '--insecure-http', ...flags], { input: key });
    await forgetRevision(name);
  }
}, 120_000);

afterAll(() => lab?.stop());

const stateFile = (link: string) => join(host.stateDir, `${link}.json`);
const mapOf = async (link: string) => JSON.parse(await readFile(stateFile(link), 'utf8')).membership.map;

/** The daemon then reads the whole map, with the ETag that comes through. */
async function forgetRevision(link: string): Promise<void> {
  const state = JSON.parse(await readFile(stateFile(link), 'utf8'));
  state.membership.map.revision = null;
  await writeFile(stateFile(link), JSON.stringify(state));
}

/** Readings of maps so far, by their status. */
async function countReadings(): Promise<Readonly<Record<string, number>>> {
  const { stdout } = await host.exec(['curl', '-sf', 'http://203.0.113.1:9090/metrics']);
  const line = /^cpn_http_requests_total\{method="GET",route="\/api\/networks\/:network",status="(\d+)"\} (\d+)$/gm;
  return Object.fromEntries([...stdout.matchAll(line)].map(([, status = '', count]) => [status, Number(count)]));
}

/** Long polls that the control plane holds. */
async function countWaiting(): Promise<number> {
  const { stdout } = await host.exec(['curl', '-sf', 'http://203.0.113.1:9090/metrics']);
  return Number(/^cpn_waiting_connectors (\d+)$/m.exec(stdout)?.[1]);
}

it('a change arrives by push after a whole map was read, through each proxy', async () => {
  const before = await countReadings();
  // Polls would take ten minutes.
  daemon = await startDaemon(host, '--interval', '600');
  for (const [index, { name }] of ways.entries())
    await eventually(`the map through ${name} has a revision`, async () => (await mapOf(`n${index}`)).revision);
  await eventually('each long poll is held', async () => (await countWaiting()) >= ways.length);
  for (const index of ways.keys()) {
    expect((await mapOf(`n${index}`)).revision).toMatch(/^"\d+-[\w-]{12}"$/);
    await controlPlane.cpn(['network', 'update', `n${index}`, '--name', `renamed-${index}`]);
  }
  for (const [index, { name }] of ways.entries())
    await eventually(
      `the change arrives through ${name}`,
      async () => (await mapOf(`n${index}`)).name === `renamed-${index}`,
    );
  await eventually('each long poll is held again', async () => (await countWaiting()) >= ways.length);
  const after = await countReadings();
  // One whole map for each network, and a second one through the proxy that removes If-None-Match.
  expect((after['200'] ?? 0) - (before['200'] ?? 0)).toBeLessThanOrEqual(all.length + 1);
  expect((after['226'] ?? 0) - (before['226'] ?? 0)).toBe(ways.length);
});

it('status shows which network is pushed, and warns of a proxy that removes If-None-Match', async () => {
  const { networks } = JSON.parse((await host.cpn(['status', '--json'])).stdout);
  const [deaf] = networks.filter((each: { interface: string }) => each.interface === `n${ways.length}`);
  expect(deaf).toMatchObject({ sync: { mode: 'poll' }, warnings: [expect.stringContaining('changes arrive late')] });
  const others = networks.filter((each: { interface: string }) => each.interface < `n${ways.length}`);
  expect(others.map(({ sync }: { sync: { mode: string } }) => sync.mode)).toEqual(ways.map(() => 'push'));
  expect(others.flatMap(({ warnings = [] }: { warnings?: string[] }) => warnings)).toEqual([]);
});

it('a proxy that gives up on long polls gets shorter ones, and a change arrives all the same', async () => {
  const link = `n${all.length - 1}`;
  await daemon.awaitLog('shorter long polls', (line) => line.interface === link && /shorter/.test(line.msg));
  await controlPlane.cpn(['network', 'update', link, '--name', 'patient']);
  await eventually('the change arrives', async () => (await mapOf(link)).name === 'patient');
});

it('the control plane sees the address of the host behind each documented proxy', async () => {
  const { entries = [] } = JSON.parse((await controlPlane.cpn(['audit', '--json', '--limit', '500'])).stdout);
  const enrolled = entries.filter(({ action }: { action: string }) => action === 'peer.enroll');
  const addressOf = new Map(
    enrolled.map((entry: { target: { name: string }; address: string }) => [entry.target.name, entry.address]),
  );
  for (const [index, { name }] of ways.entries()) {
    if (name.endsWith('as documented')) expect([name, addressOf.get(`edge${index}`)]).toEqual([name, '203.0.113.11']);
  }
});
