import { setTimeout as delay } from 'node:timers/promises';
import { Daemon } from '../../../test/lab/daemon.ts';
import { eventually } from '../../../test/lab/eventually.ts';
import { Lab } from '../../../test/lab/lab.ts';
import { Owner } from '../../../test/lab/owner.ts';
import type { Comparison } from '../comparison.ts';
import { startOffice } from './idle.ts';
import { readChildrenTime, readOwnTime } from './proc.ts';
import { isDone, isEnd, isWaiting } from './reach.ts';

/** Networks that are measured at the same time, each of a lab and a daemon of its own. */
const offices = 2;
/**
 * Changes of each network: its figure of processor time is their mean, because the kernel counts in
 * ticks of 10 ms.
 */
const changes = 34;
const warmUp = 8;
/** Milliseconds from one change to the next of a network, in which its daemon settles. */
const rest = 1_500;
/** Milliseconds for which a daemon idles: what it takes then is no cost of a change. */
const idleMs = 12_000;

/**
 * What one change costs a daemon in a network of ten real hosts: processor time, and the time until
 * the kernel has it.
 */
export async function compareChange(): Promise<Comparison[]> {
  await using labs = new AsyncDisposableStack();
  const opened = Array.from({ length: offices }, async () => openOffice(labs.use(await Lab.start())));
  const measured = await Promise.all(opened);
  // Never two changes at the same time: each has the machine for itself.
  const results = await Promise.all(
    measured.map(async (office, index) => {
      await delay((index * rest) / offices);
      await office.changeMany(warmUp);
      const idle = await spentDuring(office.daemon, () => delay(idleMs));
      let took: number[] = [];
      const busy = await spentDuring(office.daemon, async () => {
        took = await office.changeMany(changes);
      });
      const share = (changes * rest) / idleMs;
      const own = (busy.own - idle.own * share) / changes;
      return { own, children: (busy.children - idle.children * share) / changes, took };
    }),
  );
  const common = { baseline: '', theirs: [] } as const;
  const cost = { ...common, what: 'CPU of one pushed change, 10 peers', unit: 'ms of CPU' } as const;
  const [own, children] = [results.map((each) => each.own), results.map((each) => each.children)];
  return [
    { ...cost, what: `${cost.what}, own`, ours: own, target: { share: 0.5, atMost: 15, text: 'median ≤ 15 ms' } },
    { ...cost, what: `${cost.what}, children`, ours: children, target: null },
    {
      ...{ ...common, what: 'a pushed change is in the kernel of one host, 10 peers', unit: 'ms' },
      ours: results.flatMap(({ took }) => took),
      target: { share: 0.99, atMost: 50, text: 'p99 < 50 ms' },
    },
  ];
}

interface MeasuredOffice {
  readonly daemon: Daemon;
  /**
   * Makes a change at each beat, and returns the milliseconds from its answer until the kernel had
   * it.
   */
  changeMany(count: number): Promise<number[]>;
}

async function openOffice(lab: Lab): Promise<MeasuredOffice> {
  const { plane, network, host, daemon: silent } = await startOffice(lab);
  await silent.stop();
  // Its log has a line for each step, as in reach.ts.
  const daemon = new Daemon(await host.spawnCpn(['run'], { env: { CPN_LOG_LEVEL: 'debug' } }));
  await eventually('it waits', () => isWaiting(host));
  const owner = new Owner(plane);
  const stranger = await owner.addStranger(network, 'stranger', '198.51.100.7:1024');
  let port = 1024;
  const change = async () => {
    const mark = daemon.mark();
    port += 1;
    const answered = await owner.setEndpoint(network, stranger, `198.51.100.7:${port}`);
    const { time } = await daemon.awaitLog('the change', isDone, mark);
    await daemon.awaitLog('the end', isEnd, mark);
    return Math.max(0, time - answered);
  };
  return {
    daemon,
    async changeMany(count) {
      const took: number[] = [];
      for (let done = 0; done < count; done += 1) {
        const [delayed] = await Promise.all([change(), delay(rest)]);
        took.push(delayed);
      }
      return took;
    },
  };
}

/** Milliseconds of processor time of a daemon and of its children meanwhile. */
async function spentDuring({ process }: Daemon, task: () => Promise<unknown>) {
  const read = () => ({ own: readOwnTime(process.pid ?? 0), children: readChildrenTime(process.pid ?? 0) });
  const before = read();
  await task();
  const after = read();
  return { own: after.own - before.own, children: after.children - before.children };
}
