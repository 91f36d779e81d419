import { setTimeout as delay } from 'node:timers/promises';
import { DataCenter, serverAddress } from '../../../test/e2e/data-center.ts';
import type { Host } from '../../../test/lab/host.ts';
import type { Process } from '../../../test/lab/process.ts';
import type { Comparison } from '../comparison.ts';

/** Seconds that the link of a laptop is away, or that it sleeps. */
const absences = { 'its link was away': 20, 'it slept': 180 };

/** Seconds between two pings, and after the return until the verdict of a daemon has settled. */
const fine = 0.05;
const settled = 30;

/** Laptops of each kind; more share the processor to no end. */
const atMost = 4;

interface Laptop {
  readonly host: Host;
  readonly hasDaemon: boolean;
  readonly flow: Process;
}

/**
 * Seconds without an answer from the LAN once a laptop is back: behind the route are the connector
 * in service, and a preferred standby that never answered. The baseline are laptops whose daemon
 * was stopped before, whose routes stay.
 */
export async function compareReturns(rounds = atMost): Promise<Comparison[]> {
  const center = await DataCenter.start();
  try {
    const standby = await center.addConnector(2);
    const serving = await center.addConnector(1);
    await standby.powerOff();
    await center.prefer(standby);
    const laptops: Laptop[] = [];
    for (let index = 0; index < 2 * Math.min(rounds, atMost); index += 1) {
      const host = await center.addLaptop(`laptop-${index + 1}`, `203.0.113.${40 + index}`);
      await center.awaitAnswers(host, serving);
      const hasDaemon = index % 2 === 0;
      const flow = host.spawn(['ping', '-n', '-D', '-i', `${fine}`, serverAddress]);
      await flow.waitForLine(/icmp_seq=\d+ ttl/, 60_000);
      // Not earlier: a new host tries the preferred standby first.
      if (!hasDaemon) await center.daemon(host).stop();
      laptops.push({ host, hasDaemon, flow });
    }
    const comparisons: Comparison[] = [];
    for (const [what, seconds] of Object.entries(absences)) {
      const back = await leaveFor(center, laptops, seconds, what === 'it slept');
      await delay(settled * 1000);
      const lost = laptops.map(({ hasDaemon, flow }) => ({
        hasDaemon,
        seconds: silenceAfter(flow.output.stdout, back),
      }));
      const of = (group: boolean) => lost.filter((each) => each.hasDaemon === group).map((each) => each.seconds);
      comparisons.push({
        what: `a laptop is back: ${what} for ${seconds} s, and the preferred standby never answered`,
        ...{ baseline: 'the same without a daemon', unit: 's', theirs: of(false), ours: of(true) },
        target: { atMost: 1, text: 'each ≤ 1 s' },
      });
    }
    return comparisons;
  } finally {
    await center.stop();
  }
}

/**
 * Takes the link of all laptops away for so long, and freezes their processes for a sleep. Returns
 * when they were back, in seconds.
 */
async function leaveFor(
  center: DataCenter,
  laptops: readonly Laptop[],
  seconds: number,
  sleeps: boolean,
): Promise<number> {
  const signal = async (name: 'SIGSTOP' | 'SIGCONT') => {
    for (const { host, hasDaemon, flow } of laptops) {
      flow.signal(name);
      if (hasDaemon) center.daemon(host).process.signal(name);
      await host.exec(['sh', '-c', `kill -${name.slice(3)} $(pidof wireguard-go) 2>/dev/null || true`]);
    }
  };
  for (const { host } of laptops) await host.uplink.unplug();
  if (sleeps) await signal('SIGSTOP');
  await delay(seconds * 1000);
  if (sleeps) await signal('SIGCONT');
  await Promise.all(laptops.map(({ host }) => host.uplink.restore()));
  return Date.now() / 1000;
}

/** The longest time without an answer from then on, in seconds. */
function silenceAfter(stdout: string, from: number): number {
  const answers = [...stdout.matchAll(/^\[(\d+\.\d+)\] \d+ bytes from/gm)].map(([, time]) => Number(time));
  const later = [from, ...answers.filter((time) => time > from), Date.now() / 1000];
  return Math.max(...later.slice(1).map((time, index) => time - (later[index] ?? time)));
}
