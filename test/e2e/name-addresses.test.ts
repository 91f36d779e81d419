import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { joinHost } from '../lab/control-plane.ts';
import { type Daemon, startDaemon } from '../lab/daemon.ts';
import { DnsServer } from '../lab/dns.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { Owner } from '../lab/owner.ts';
import { join, type Office, patiently, plan, startOffice, status } from './office.ts';

/**
 * A connector with addresses of both families under one name, and laptops that reach it by the name. No host has the addresses `deadSix`
 * and `deadFour`.
 */
const [edgeFour, edgeSix] = ['203.0.113.30', '2001:db8::30'];
const [deadFour, deadSix] = ['203.0.113.250', '2001:db8::dead'];
const name = 'edge.example.net';
const service = 'control.example.net';

let office: Office;
let dns: DnsServer;
let edge: Host;
let laptop: Host;
let daemon: Daemon;
let edgeAddress: string;
let edgeKey: string;

beforeAll(async () => {
  office = await startOffice();
  const { lab } = office;
  dns = await DnsServer.start(await lab.addHost('dns', { address: '203.0.113.53/24' }));
  await dns.serve({ [name]: [`${edgeSix} 3600`, `${edgeFour} 3600`] });
  edge = await lab.addHost('edge', { address: [`${edgeFour}/24`, `${edgeSix}/64`] });
  await lab.addLan(edge, '192.168.50.1/24');
  const joined = await join(office, edge, '--type', 'connector', '--endpoint', `${name}:51820`);
  [edgeAddress, edgeKey] = [joined.address, joined.public_key];
  await startDaemon(edge);
  laptop = await lab.addHost('laptop', { address: ['203.0.113.40/24', '2001:db8::40/64'] });
  await dns.resolveFor(laptop);
  await join(office, laptop, '--type', 'admin_device');
  daemon = await startDaemon(laptop);
}, 90_000);

afterAll(() => office?.lab.stop());

const reaches = async (host: Host) => (await host.ping(edgeAddress, patiently)).received === 1;

/** Where WireGuard sends what is for the connector. */
async function endpointOf(host: Host): Promise<string> {
  const { stdout } = await host.exec(['wg', 'show', 'cpn0', 'endpoints']);
  return new Map(stdout.split('\n').map((line) => line.split('\t') as [string, string])).get(edgeKey) ?? '';
}

const problemsOf = (host: Host) => findingsOf(host, 'problem');

/** What doctor finds of the endpoints of peers. */
async function findingsOf(host: Host, of: 'problem' | 'note') {
  const { stdout } = await host.cpn(['doctor', '--json'], { allowFailure: true });
  const { findings } = JSON.parse(stdout) as { findings: { verdict: string; looked_at: string; found: string }[] };
  return findings.filter(({ verdict, looked_at }) => verdict === of && looked_at.includes('endpoints'));
}

describe('a laptop that reaches a connector by a name with addresses of both families', () => {
  it('uses IPv6 while it has that, and status names both addresses', async () => {
    await eventually('the connector answers', () => reaches(laptop));
    expect(await endpointOf(laptop)).toBe(`[${edgeSix}]:51820`);
    expect((await status(laptop)).peers).toMatchObject([
      { endpoint: `[${edgeSix}]:51820`, endpoint_name: name, endpoint_addresses: [edgeSix, edgeFour] },
    ]);
    expect(await problemsOf(laptop)).toEqual([]);
  });

  it('moves to IPv4 with a network that has nothing else', async () => {
    await laptop.exec(['ip', '-6', 'address', 'flush', 'dev', 'eth0', 'scope', 'global']);
    await eventually('the connector answers', () => reaches(laptop));
    await eventually('IPv4 is used', async () => (await endpointOf(laptop)) === `${edgeFour}:51820`);
    expect(await problemsOf(laptop)).toEqual([]);
    await eventually('the host is as planned', async () => (await plan(laptop)).exitCode === 0);
    await eventually('the network is up', async () => (await status(laptop)).state === 'up');
  });

  it('stays there when IPv6 comes back, whatever order the resolver gives', async () => {
    await dns.serve({ [name]: [edgeFour, edgeSix] });
    const mark = daemon.mark();
    await laptop.exec(['ip', 'address', 'add', '2001:db8::40/64', 'dev', 'eth0', 'nodad']);
    await dns.awaitQuestion(name);
    for (let time = 0; time < 3; time += 1) await laptop.cpn(['reconcile']);
    expect(await endpointOf(laptop)).toBe(`${edgeFour}:51820`);
    expect(await reaches(laptop)).toBe(true);
    expect(await plan(laptop)).toEqual({ exitCode: 0, changes: [] });
    expect(
      daemon.since(mark).filter(({ msg }) => msg === 'no answer at an address of a name; using the next one'),
    ).toEqual([]);
  });

  it('sees in doctor a peer to which it has no route', async () => {
    const owner = new Owner(office.controlPlane);
    const networks = JSON.parse((await office.controlPlane.cpn(['network', 'list', '--json'])).stdout).networks;
    await owner.addStranger(networks[0].id, 'six', '[2001:db8:6::6]:51820');
    await laptop.cpn(['reconcile']);
    const found = 'there is no route to six ([2001:db8:6::6]:51820)';
    expect(await findingsOf(laptop, 'note')).toMatchObject([{ found }]);
    expect(await problemsOf(laptop)).toEqual([]);
  });
});

describe('a host of which the first address never answers', () => {
  it('joins by a control plane whose IPv6 address is dead, and its daemon reaches a connector at the next address', async () => {
    await dns.serve({ [name]: [deadSix, deadFour, edgeFour], [service]: [deadSix, office.controlPlane.host.address] });
    const late = await office.lab.addHost('late', { address: ['203.0.113.41/24', '2001:db8::41/64'] });
    await dns.resolveFor(late);
    const controlPlane = { ...office.controlPlane, url: `http://${service}:8787` };
    await joinHost(controlPlane, late, { network: 'office', flags: ['--wait', '0'] });
    expect(await endpointOf(late)).toBe(`[${deadSix}]:51820`);
    await startDaemon(late);
    await eventually('the connector answers', () => reaches(late), { timeoutMs: 90_000 });
    expect(await endpointOf(late)).toBe(`${edgeFour}:51820`);
    await eventually('the file has it', async () => (await plan(late)).exitCode === 0);
    expect((await status(late)).peers.find((peer: { name: string }) => peer.name === 'edge')).toMatchObject({
      endpoint: `${edgeFour}:51820`,
      state: 'connected',
    });
  });
});
