import { setTimeout as delay } from 'node:timers/promises';
import {
  awaitRoute,
  cutPath,
  DataCenter,
  lanRoute,
  restorePath,
  serverAddress,
} from '../../../test/e2e/data-center.ts';
import { joinHost } from '../../../test/lab/control-plane.ts';
import { DnsServer } from '../../../test/lab/dns.ts';
import { eventually } from '../../../test/lab/eventually.ts';
import type { Host } from '../../../test/lab/host.ts';
import { startResolved } from '../../../test/lab/resolved.ts';
import type { Comparison } from '../comparison.ts';
import { compareQueries } from './queries.ts';

const uplink = '203.0.113.53';
const name = 'db.corp.example';
const [lookUps, chunk] = [400, 50];

/** Names: the daemon's server, new peers, failover of a route, and all other names. */
export async function compareNames(rounds = 5): Promise<Comparison[]> {
  return [...(await compareQueries()), ...(await compareInLab(rounds))];
}

async function compareInLab(rounds: number): Promise<Comparison[]> {
  const center = await DataCenter.start();
  try {
    const { lab, controlPlane, server } = center;
    await DnsServer.start(await lab.addHost('dns', { address: `${uplink}/24` }), { 'www.example': ['192.0.2.80'] });
    await DnsServer.start(server, { [name]: ['192.168.50.99'] });
    const { first, second, origin } = await center.addPair();
    const resolved = await startResolved(origin, { servers: [uplink] });
    const plain = await lab.addHost('plain', { address: '203.0.113.80/24' });
    await startResolved(plain, { servers: [uplink] });
    await controlPlane.cpn(['network', 'update', 'office', '--route-dns', `${lanRoute}=${serverAddress},corp.example`]);
    await eventually('the name resolves', async () => (await resolved.query(name))[0] === '192.168.50.99');
    const others = await compareOthers(origin, plain);
    const appearing = await measureNewNames(center, origin, rounds);
    const failing = await measureFailovers(center, origin, [first, second], rounds);
    return [others, appearing, failing];
  } finally {
    await center.stop();
  }
}

/** Looks up a name again and again, and prints the microseconds of each. */
const timing = `
const [count, server, name] = process.argv.slice(1);
const resolver = new (require('node:dns').promises.Resolver)();
resolver.setServers([server]);
(async () => {
  for (let at = 0; at < Number(count); at += 1) {
    const started = performance.now();
    await resolver.resolve4(name);
    console.log(performance.now() - started);
  }
})();
`;

async function compareOthers(tunnelled: Host, plain: Host): Promise<Comparison> {
  const run = async (host: Host) => {
    const { stdout } = await host.exec(['node', '-e', timing, String(chunk + 5), '127.0.0.53', 'www.example']);
    return stdout.trim().split('\n').map(Number).slice(5);
  };
  const [ours, theirs]: [number[], number[]] = [[], []];
  for (let done = 0; done < lookUps; done += chunk) {
    ours.push(...(await run(tunnelled)));
    theirs.push(...(await run(plain)));
  }
  return {
    ...{ what: 'a name that is not the network’s', baseline: 'a host without a tunnel', unit: 'ms', ours, theirs },
    target: { ratioAtMost: 1.05, text: '≤ 1.05' },
  };
}

/** Prints when a name first has an address at a server, in milliseconds since 1970. */
const appearance = `
const [server, name] = process.argv.slice(1);
const resolver = new (require('node:dns').promises.Resolver)({ timeout: 500, tries: 1 });
resolver.setServers([server]);
(async () => {
  for (const started = Date.now(); Date.now() - started < 30000; ) {
    const found = await resolver.resolve4(name).catch(() => []);
    if (found.length > 0) return console.log(Date.now());
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
})();
`;

/** From the end of a join until the daemon of another host has the name. */
async function measureNewNames(center: DataCenter, host: Host, rounds: number): Promise<Comparison> {
  const ours: number[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    const newcomer = await center.lab.addHost(`new-${round}`, { address: `203.0.113.${100 + round}/24` });
    const server = `${center.address(host)}:553`;
    const waiting = host.exec(['node', '-e', appearance, server, `new-${round}.office.cpn.internal`]);
    await delay(500);
    await joinHost(center.controlPlane, newcomer, { network: 'office', flags: ['--wait', '0'] });
    const joined = Date.now();
    ours.push(Math.max(0, Number((await waiting).stdout) - joined));
  }
  return {
    ...{ what: 'a new peer has a name, after its join ends', baseline: '', unit: 'ms', ours, theirs: [] },
    target: { atMost: 1000, text: '≤ 1 s' },
  };
}

/** Prints each successful lookup, and each connection that the server refuses or accepts. */
const watching = `
const [server, name, target] = process.argv.slice(1);
const { connect } = require('node:net');
const resolver = new (require('node:dns').promises.Resolver)({ timeout: 1000, tries: 1 });
resolver.setServers([server]);
const ask = async () => {
  await resolver.resolve4(name).then(() => console.log('name', Date.now()), () => {});
  setTimeout(ask, 20);
};
const reach = () => {
  const socket = connect({ host: target, port: 9 });
  const end = (isReached) => {
    if (isReached) console.log('route', Date.now());
    socket.destroy();
    clearTimeout(timer);
    setTimeout(reach, 20);
  };
  const timer = setTimeout(() => end(false), 300);
  socket.on('connect', () => end(true)).on('error', ({ code }) => end(code === 'ECONNREFUSED'));
};
for (let at = 0; at < 10; at += 1) { setTimeout(ask, 100 * at); setTimeout(reach, 30 * at); }
`;

/**
 * How much later than the route the names behind it work again, if its connector dies. Rounds kill
 * the two in turn: each failure doubles the time after which a connector gets its hosts back.
 */
async function measureFailovers(
  center: DataCenter,
  host: Host,
  pair: readonly [Host, Host],
  rounds: number,
): Promise<Comparison> {
  const ours: number[] = [];
  await center.prefer(pair[0]);
  for (let round = 0; round < rounds; round += 1) {
    const [first, second] = round % 2 === 0 ? pair : ([pair[1], pair[0]] as const);
    await awaitRoute(host, first, 60_000);
    await delay(5_000);
    const watch = host.spawn(['node', '-e', watching, '127.0.0.53', name, serverAddress]);
    await watch.waitForLine(/^name/);
    await delay(1_000);
    const died = Date.now();
    await cutPath(first, host.address);
    await awaitRoute(host, second, 60_000);
    await delay(8_000);
    const lines = (await watch.stop()).stdout.split('\n').map((line) => line.split(' '));
    const backAt = (what: string) => {
      const times = lines
        .filter(([kind]) => kind === what)
        .map(([, at]) => Number(at))
        .filter((at) => at > died + 100);
      const gaps = times.slice(1).map((at, index) => ({ at, gap: at - (times[index] ?? at) }));
      return gaps.toSorted((one, other) => other.gap - one.gap)[0]?.at ?? died;
    };
    ours.push(Math.max(0, backAt('name') - backAt('route')));
    await restorePath(first);
    await delay(10_000);
  }
  return {
    ...{ what: 'names work again after their route', baseline: '', unit: 'ms', ours, theirs: [] },
    target: { atMost: 2000, text: '≤ 2 s' },
  };
}
