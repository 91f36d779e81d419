import { mkdtemp, rm } from 'node:fs/promises';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Lab } from '../../../test/lab/lab.ts';
import type { Comparison } from '../comparison.ts';
import { minutesOf } from '../host/minutes.ts';
import { spreadOf } from '../spread.ts';
import { FollowedNetwork } from './followed-network.ts';
import { startPooled, startProxied, startTlsPlane, writeCertificates } from './planes.ts';
import { measurePooler } from './poolers.ts';

/** Milliseconds between two changes. The next one is at another host. */
const restMs = 100;
const lagTarget = { share: 0.95, atMost: 1_000, text: 'p95 ≤ 1 s' };
const wholeTarget = { atMost: 0, text: '0' };

/**
 * Hosts follow networks directly, through nginx, Apache, HAProxy and Caddy of Debian, and at
 * processes on PostgreSQL and PgBouncer: the requests of each while all are idle for ten minutes,
 * by default, and the time of a change from its answer until the kernel has it. All share one run,
 * and changes take turns among them.
 */
export async function compareProxies(rounds = 50): Promise<Comparison[]> {
  const minutes = minutesOf(10);
  const folder = await mkdtemp(join(tmpdir(), 'cpn-certificate-'));
  const certificates = await writeCertificates(folder);
  const lab = await Lab.start({ commandServers: true, env: { NODE_EXTRA_CA_CERTS: certificates.both } });
  const pooled = await startPooled(lab);
  try {
    const planes = [
      await startProxied(lab, certificates.ofProxies),
      await startTlsPlane(lab, certificates.ofPlane),
      ...pooled.serving,
    ];
    const networks: FollowedNetwork[] = [];
    for (const serving of planes)
      for (const way of serving.ways) networks.push(await FollowedNetwork.start(lab, serving, way, networks.length));
    for (const network of networks) await network.untilWaiting();
    const requests = await countRequests(networks, minutes);
    const lags = await measureLags(networks, rounds);
    const behindPooler = networks.at(-1) as FollowedNetwork;
    return [...requests, ...lags, ...(await measurePooler(pooled, behindPooler))];
  } finally {
    await lab.stop();
    await pooled.remove();
    await rm(folder, { recursive: true });
  }
}

async function countRequests(networks: readonly FollowedNetwork[], minutes: number): Promise<Comparison[]> {
  // Features, first reports and figures.
  await delay(60_000);
  const marks = networks.map((network) => network.mark());
  await delay(minutes * 60_000);
  const counts = networks.map((network, index) => network.countSince(marks[index] ?? 0));
  const [directly] = counts;
  tellLoad('idle');
  return networks.flatMap(({ name }, index): Comparison[] => {
    const { all, polls, wholeMaps } = counts[index] as (typeof counts)[number];
    process.stderr.write(`${name}: ${all} requests, ${polls} of them for the map, ${wholeMaps} whole maps\n`);
    const theirs = directly === undefined ? [] : [directly.all / minutes];
    const row = { unit: 'requests', baseline: 'directly' } as const;
    return [
      { ...row, what: `an idle host, a minute, ${name}`, ours: [all / minutes], theirs, target: null },
      {
        ...{ ...row, what: `whole maps in ${minutes} idle minutes, ${name}`, baseline: '' },
        ...{ ours: [wholeMaps], theirs: [], target: wholeTarget },
      },
    ];
  });
}

/** The first change of each comes after the idle minutes. */
async function measureLags(networks: readonly FollowedNetwork[], rounds: number): Promise<Comparison[]> {
  const lags = networks.map((): number[] => []);
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, network] of networks.entries()) {
      lags[index]?.push(await network.change());
      await delay(restMs);
    }
  }
  tellLoad('changes');
  return networks.map(({ name }, index): Comparison => {
    const [ours = [], theirs = []] = [lags[index], lags[0]];
    const { p50, p95, max } = spreadOf(ours);
    process.stderr.write(`${name}: lag ${p50}, ${p95}, ${max} ms\n`);
    return { what: `lag of a change, ${name}`, baseline: 'directly', unit: 'ms', ours, theirs, target: lagTarget };
  });
}

function tellLoad(what: string): void {
  process.stderr.write(
    `${new Date().toISOString()} ${what}: load ${loadavg()
      .map((each) => each.toFixed(1))
      .join(' ')}\n`,
  );
}
