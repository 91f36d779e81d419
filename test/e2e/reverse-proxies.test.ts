import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { keyPair } from '../core/samples.ts';
import { type ControlPlane, makeKey, startControlPlane } from '../lab/control-plane.ts';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { Lab } from '../lab/lab.ts';
import { faultyWays, type ProxiedWay, startReverseProxies } from '../lab/reverse-proxies.ts';

/** A host with a network for each way through a proxy to the control plane. */
let lab: Lab;
let controlPlane: ControlPlane;
let host: Host;
let daemon: Daemon;
let ways: readonly ProxiedWay[];
let faulty: readonly ProxiedWay[];

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
  faulty = faultyWays(proxy);
  for (const [index, { url, name: way }] of [...ways, ...faulty].entries()) {
    const [name, cidr] = [faulty.some((each) => each.url === url) ? way : `n${index}`, `10.${80 + index}.0.0/24`];
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
  expect((after['200'] ?? 0) - (before['200'] ?? 0)).toBeLessThanOrEqual(ways.length + faulty.length + 1);
  expect((after['226'] ?? 0) - (before['226'] ?? 0)).toBe(ways.length);
});

it('status shows which network is pushed, and warns of a proxy that removes If-None-Match or Prefer', async () => {
  const readStatus = async () => {
    const { networks } = JSON.parse((await host.cpn(['status', '--json'])).stdout);
    return new Map<string, { sync: { mode: string }; warnings?: string[] }>(
      networks.map((each: { interface: string }) => [each.interface, each]),
    );
  };
  const networks = await eventually('the first long poll of each faulty way ended', async () => {
    const found = await readStatus();
    return ['deaf', 'plain'].every((each) => (found.get(each)?.warnings ?? []).length > 0) && found;
  });
  for (const link of ['deaf', 'plain'])
    expect(networks.get(link)).toMatchObject({
      sync: { mode: 'poll' },
      warnings: [expect.stringContaining('changes arrive late')],
    });
  const others = ways.map((_, index) => networks.get(`n${index}`));
  expect(others.map((each) => each?.sync.mode)).toEqual(ways.map(() => 'push'));
  expect(others.flatMap((each) => each?.warnings ?? [])).toEqual([]);
});

it('a proxy that hides that a reply has changes alone, or refuses it, keeps no change away and no peer', async () => {
  for (const link of ['hiding', 'refusing']) {
    const key = await makeKey(controlPlane, link, 'other');
    const body = { enrollment_token: key, name: 'other', peer_type: 'origin', public_key: keyPair(9).publicKey };
    const url = `${controlPlane.url}/api/networks/enroll`;
    await host.exec(['curl', '-sf', '--json', JSON.stringify(body), url]);
    const namesOf = async () => (await mapOf(link)).peers.map(({ name }: { name: string }) => name);
    await eventually(`the new peer arrives, ${link}`, async () => (await namesOf()).length === 2);
    await controlPlane.cpn(['network', 'update', link, '--name', `renamed-${link}`]);
    await eventually(`the change arrives, ${link}`, async () => (await mapOf(link)).name === `renamed-${link}`);
    expect((await namesOf()).sort()).toEqual([expect.stringContaining('edge'), 'other'].sort());
  }
  await daemon.awaitLog('whole maps', (line) => line.interface === 'refusing' && /whole maps/.test(line.msg));
});

it('a proxy that gives up on long polls gets shorter ones, and a change arrives all the same', async () => {
  for (const link of ['hasty', 'abrupt']) {
    await daemon.awaitLog('shorter long polls', (line) => line.interface === link && /shorter/.test(line.msg));
    await controlPlane.cpn(['network', 'update', link, '--name', `patient-${link}`]);
    await eventually('the change arrives', async () => (await mapOf(link)).name === `patient-${link}`);
  }
  const failures = daemon.log.filter(({ msg }) => /cannot be read/.test(msg));
  expect(failures).toEqual([]);
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
