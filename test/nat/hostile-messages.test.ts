import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeKey } from '../lab/control-plane.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { nats } from '../lab/nat/nat.ts';
import type { Router } from '../lab/nat/router.ts';
import { order } from '../lab/orders.ts';
import { Owner } from '../lab/owner.ts';
import type { Process } from '../lab/process.ts';
import { DirectNetwork } from './direct-network.ts';

let network: DirectNetwork;
let office: Router;
let laptop: Host;
let tablet: Host;
let owner: Owner;
let hostile: Process;
/** Peers without hosts. */
let peers: readonly number[];

beforeAll(async () => {
  network = await DirectNetwork.start();
  const { nat, controlPlane } = network;
  office = await nat.addRouter('office', nats.portPreserving);
  [laptop, tablet] = [(await nat.addHost('laptop', office)).host, (await nat.addHost('tablet', office)).host];
  const program = join(import.meta.dirname, 'hostile-messages-program.ts');
  const { host } = controlPlane;
  hostile = host.spawn(['node', program, host.address, '8788', '8787'], { holdInput: true });
  await hostile.waitForLine(/^listening$/);
  await network.joinAt(`http://${host.address}:8788`, laptop);
  await network.join(tablet);
  owner = new Owner(controlPlane);
  const { id } = network.joined(laptop).network;
  const names = Array.from({ length: 8 }, (_, index) => `stranger-${index}`);
  peers = await Promise.all(names.map((name) => owner.addStranger(id, name, null)));
  await eventually('the laptop has the peers', async () => {
    const { stdout } = await laptop.cpn(['status', '--json']);
    return names.every((name) => stdout.includes(name));
  });
  const counting = `table inet counted {
    set sent { type ipv4_addr . inet_service; flags dynamic; size 1024; counter; }
    chain output {
      type filter hook output priority -300; oifname != cpn0 meta l4proto udp add @sent { ip daddr . udp dport }
    }
  }`;
  for (const each of [laptop, tablet]) await each.exec(['nft', '-f', '-'], { input: counting });
});
afterAll(() => network?.[Symbol.asyncDispose]());

/** How many packets a host sent to each endpoint other than the connector. */
async function countSent(host: Host): Promise<ReadonlyMap<string, number>> {
  const { stdout } = await host.exec(['nft', 'list', 'set', 'inet', 'counted', 'sent']);
  const elements = [...stdout.matchAll(/([\d.]+) \. (\d+) counter packets (\d+)/g)];
  const counts = elements.map(([, ip, port, count]) => [`${ip}:${port}`, Number(count)] as const);
  return new Map(counts.filter(([endpoint]) => endpoint !== '203.0.113.2:51820'));
}

interface Tried {
  readonly endpoint: string;
  readonly outcome: string;
}

/** Waits until so many attempts of a host ended from now on, and returns what they tried. */
async function awaitEnds(host: Host, count: number): Promise<Tried[]> {
  const daemon = network.daemon(host);
  const mark = daemon.mark();
  const ends = await eventually('the attempts end', () => {
    const lines = daemon.since(mark).filter(({ msg }) => msg === 'an attempt at a direct path ended');
    return lines.length >= count && lines;
  });
  return ends.flatMap((line) => line.tried as Tried[]);
}

/** Sends each message for a peer twice, and waits until all attempts have ended. Returns the endpoints that were refused. */
async function tryAll(endpointsOf: (index: number) => readonly string[]): Promise<string[]> {
  const messages = peers.map((peer, index) => {
    const common = { peer, attempt: 1, start_in_ms: 0, first: index % 2 === 0 };
    return { kind: 'try', data: { ...common, endpoints: endpointsOf(index) } };
  });
  const ended = awaitEnds(laptop, peers.length);
  await order(hostile, [...messages, ...messages]);
  return (await ended).filter(({ outcome }) => outcome === 'refused').map(({ endpoint }) => endpoint);
}

/** The LAN's router, the own address, the network's range, and addresses that no host has. */
const own = ['192.168.1.1:53', '192.168.1.10:53', '10.77.0.1:53', '127.0.0.1:53', '224.0.0.1:53', '255.255.255.255:53'];
/** Endpoints of third parties. */
const thirdParty = (index: number, port: number) => `203.0.113.${100 + index}:${4000 + port}`;
const thirdParties = (index: number) => Array.from({ length: 8 }, (_, port) => thirdParty(index, port));

test.concurrent('a hostile control plane makes a host send few packets to third parties, and none to its own networks', async () => {
  const begun = performance.now();
  const refused = await tryAll((index) => (index === 0 ? own : thirdParties(index)));
  expect(refused.toSorted()).toEqual(['10.77.0.1:53', '192.168.1.10:53', '192.168.1.1:53']);
  const sent = await countSent(laptop);
  const minutes = Math.ceil((performance.now() - begun) / 60_000);
  expect([...sent.keys()].filter((endpoint) => !endpoint.startsWith('203.0.113.'))).toEqual([]);
  expect(Math.max(...sent.values())).toBeLessThanOrEqual(8);
  const all = [...sent.values()].reduce((sum, each) => sum + each, 0);
  expect(all).toBeGreaterThan(40);
  expect(all).toBeLessThanOrEqual(minutes * 64);
});

/** A member of the network that is a program behind the router of the office. Returns its requests about paths. */
async function enrollMember(): Promise<(signals: unknown) => Promise<void>> {
  const { url } = network.controlPlane;
  const { host } = await network.nat.addHost('member', office);
  const enrollment_token = await makeKey(network.controlPlane, 'office', 'member');
  const post = async (path: string, token: string, body: unknown) => {
    const headers = ['content-type: application/json', `authorization: Bearer ${token}`].flatMap((each) => [
      '-H',
      each,
    ]);
    const argv = [
      'curl',
      '-sS',
      '--fail-with-body',
      ...headers,
      '-d',
      JSON.stringify(body),
      `${url}/api/networks${path}`,
    ];
    return (await host.exec(argv)).stdout;
  };
  const request = { enrollment_token, name: 'member', public_key: randomBytes(32).toString('base64') };
  const { access_token, network: joined } = JSON.parse(await post('/enroll', '', request)).data;
  return async (signals) => void (await post(`/${joined.id}/peers/self/paths`, access_token, signals));
}

test.concurrent('a hostile member makes a host send few packets to its LAN, and none to others', async () => {
  const send = await enrollMember();
  const { id } = network.joined(tablet).peer;
  await eventually('the tablet has the member', async () => {
    return (await tablet.cpn(['status', '--json'])).stdout.includes('"member"');
  });
  const ended = awaitEnds(tablet, 1);
  const others = ['192.168.1.1:53', `${tablet.address}:53`, '10.77.0.1:53', thirdParty(9, 9), '198.51.100.7:53'];
  for (const last of [50, 60, 70]) {
    const lan = [0, 1, 2].map((index) => `192.168.1.${last + index}:53`);
    await send({ wanted: [id], candidates: [...lan, ...others] });
  }
  await ended;
  const sent = await countSent(tablet);
  // Of those that it states, as of the attempt's beginning.
  const stated = new Set([50, 60, 70].flatMap((last) => [0, 1, 2].map((index) => `192.168.1.${last + index}:53`)));
  expect(sent.size).toBeGreaterThan(0);
  expect(sent.size).toBeLessThanOrEqual(3);
  expect([...sent.keys()].filter((endpoint) => !stated.has(endpoint))).toEqual([]);
  expect(Math.max(...sent.values())).toBeLessThanOrEqual(8);
});
