import { setTimeout as delay } from 'node:timers/promises';
import { patiently } from '../../../test/e2e/office.ts';
import { eventually } from '../../../test/lab/eventually.ts';
import type { Host } from '../../../test/lab/host.ts';
import { nats } from '../../../test/lab/nat/nat.ts';
import type { Router } from '../../../test/lab/nat/router.ts';
import { DirectNetwork } from '../../../test/nat/direct-network.ts';
import type { Comparison } from '../comparison.ts';
import { NumberedFlow } from './numbered-flow.ts';

const seconds = 4;
/** After a path that stood for 30 s, the next attempt may begin at once. */
const restMs = 31_000;

interface Figures {
  readonly toRelay: number[];
  readonly toDirect: number[];
  /** Seconds from a move to the next path. */
  readonly moves: number[];
}

/**
 * One pair behind NAT that loses its path and gets it back, so many times, as the NAT of the first
 * takes another port. Both send a numbered packet every 5 ms meanwhile.
 */
export async function compareSwitches(rounds: number): Promise<Comparison[]> {
  await using network = await DirectNetwork.start();
  const { nat } = network;
  const [hosts, routers]: [Host[], Router[]] = [[], []];
  for (const name of ['laptop', 'tablet']) {
    const router = await nat.addRouter(`${name}-router`, nats.otherPort);
    routers.push(router);
    hosts.push((await nat.addHost(name, router)).host);
  }
  const [laptop, tablet] = hosts as [Host, Host];
  await network.join(laptop, tablet);
  const address = network.address(tablet);
  await eventually('the laptop reaches the tablet', async () => (await laptop.ping(address, patiently)).received === 1);
  const figures: Figures = { toRelay: [], toDirect: [], moves: [] };
  const flow = await NumberedFlow.start([laptop, address], [tablet, network.address(laptop)]);
  await network.awaitDirect(laptop, tablet);
  for (let round = 0; round < rounds; round += 1) {
    await delay(restMs);
    await flow.mark();
    const begun = performance.now();
    await routers[0]?.rebind();
    await network.awaitRelayed(laptop, tablet);
    figures.toRelay.push(...(await flow.mark()));
    await network.awaitDirect(laptop, tablet);
    figures.moves.push((performance.now() - begun) / 1000);
    figures.toDirect.push(...(await flow.mark()));
    process.stderr.write(`${round + 1}: direct again after ${figures.moves.at(-1)?.toFixed(1)} s\n`);
  }
  await flow.stop();
  return [...describe(figures, rounds), await compareThroughput(network, laptop, tablet)];
}

function describe({ toRelay, toDirect, moves }: Figures, rounds: number): Comparison[] {
  const own = { baseline: '', theirs: [] };
  const most = { share: 0.95, atMost: 50, text: 'p95 ≤ 50 ms' };
  return [
    {
      ...{ what: `lost in one direction at a switch to the direct path, ${rounds} switches`, ...own },
      ...{ unit: 'ms', ours: toDirect, target: most },
    },
    {
      ...{ what: 'the same back to the relay, after a NAT took another port', ...own },
      ...{ unit: 'ms', ours: toRelay, target: { share: 0.95, atMost: 3_000, text: 'p95 ≤ 3 s' } },
    },
    {
      ...{ what: 'from another port of a NAT until both are direct again', ...own, unit: 's' },
      ...{ ours: moves, target: { share: 0.95, atMost: 5, text: 'p95 ≤ 5 s' } },
    },
  ];
}

/** To a host that is reached directly, and to one whose NAT allows no path, in turn. */
async function compareThroughput(network: DirectNetwork, laptop: Host, tablet: Host): Promise<Comparison> {
  const router = await network.nat.addRouter('phone-router', nats.symmetric);
  const { host: phone } = await network.nat.addHost('phone', router);
  await network.join(phone);
  const to = { direct: tablet, relayed: phone };
  const paces = { direct: [] as number[], relayed: [] as number[] };
  for (const host of Object.values(to)) {
    const address = network.address(host);
    await eventually(`${host.name} answers`, async () => (await laptop.ping(address, patiently)).received === 1);
    await host.spawn(['iperf3', '--server', '--forceflush']).waitForLine(/Server listening/);
  }
  for (let round = 0; round < 5; round += 1) {
    for (const path of ['direct', 'relayed'] as const)
      paces[path].push(await measurePace(laptop, network.address(to[path])));
  }
  return {
    ...{ what: 'iperf3 over a direct path: time for 100 MB', baseline: 'through the relay', unit: 'ms' },
    ...{ ours: paces.direct, theirs: paces.relayed, target: { ratioAtMost: 1, text: '≤ 1' } },
  };
}

/** Milliseconds for 100 MB. */
async function measurePace(from: Host, to: string): Promise<number> {
  const argv = ['iperf3', '--client', to, '--time', `${seconds}`, '--json'];
  const { end } = JSON.parse((await from.exec(argv, { timeoutMs: 60_000 })).stdout);
  const { bytes, seconds: took } = end.sum_received;
  return (1000 * took * 100e6) / bytes;
}
