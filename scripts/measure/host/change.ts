import { setTimeout as delay } from 'node:timers/promises';
import { Daemon } from '../../../test/lab/daemon.ts';
import { eventually } from '../../../test/lab/eventually.ts';
import { Lab } from '../../../test/lab/lab.ts';
import { Owner } from '../../../test/lab/owner.ts';
import type { Comparison } from '../comparison.ts';
import { startOffice } from './idle.ts';
import { readChildrenTime, readOwnTime } from './proc.ts';
import { isDone, isEnd, isWaiting } from './reach.ts';

/** Changes of which a figure of processor time is the mean: the kernel counts in ticks of 10 ms. */
const changesPerFigure = 10;
const figures = 3;
/** Changes whose delays are measured. */
const delays = 100;
const warmUp = 10;
/** Milliseconds from one change to the next, in which the daemon settles. */
const rest = 1_500;

/** What one change costs a daemon in a network of ten real hosts: processor time, and the time until the kernel has it. */
export async function compareChange(): Promise<Comparison[]> {
  await using lab = await Lab.start();
  const { plane, network, host, daemon } = await startOffice(lab);
  const owner = new Owner(plane);
  const stranger = await owner.addStranger(network, 'stranger', '198.51.100.7:1024');
  let port = 1024;
  const change = () => {
    port += 1;
    return owner.setEndpoint(network, stranger, `198.51.100.7:${port}`);
  };
  const changeMany = async (count: number) => {
    for (let done = 0; done < count; done += 1) {
      await change();
      await delay(rest);
    }
  };
  await changeMany(warmUp);
  const [own, children]: [number[], number[]] = [[], []];
  for (let figure = 0; figure < figures; figure += 1) {
    const idle = await spentDuring(daemon, () => delay(rest * changesPerFigure));
    const busy = await spentDuring(daemon, () => changeMany(changesPerFigure));
    own.push((busy.own - idle.own) / changesPerFigure);
    children.push((busy.children - idle.children) / changesPerFigure);
  }
  await daemon.stop();
  // Its log has a line for each step, as in reach.ts.
  const talkative = new Daemon(await host.spawnCpn(['run'], { env: { CPN_LOG_LEVEL: 'debug' } }));
  await eventually('it waits', () => isWaiting(host));
  await changeMany(warmUp);
  const took: number[] = [];
  for (let count = 0; count < delays; count += 1) {
    const mark = talkative.mark();
    const answered = await change();
    const { time } = await talkative.awaitLog('the change', isDone, mark);
    took.push(Math.max(0, time - answered));
    await talkative.awaitLog('the end', isEnd, mark);
    await delay(rest / 3);
  }
  const common = { baseline: '', theirs: [] } as const;
  const cost = { ...common, what: 'CPU of one pushed change, 10 peers', unit: 'ms of CPU' } as const;
  return [
    { ...cost, what: `${cost.what}, own`, ours: own, target: { share: 0.5, atMost: 15, text: 'median ≤ 15 ms' } },
    { ...cost, what: `${cost.what}, children`, ours: children, target: null },
    {
      ...{ ...common, what: 'a pushed change is in the kernel of one host, 10 peers', unit: 'ms', ours: took },
      target: { share: 0.99, atMost: 50, text: 'p99 < 50 ms' },
    },
  ];
}

/** Milliseconds of processor time of a daemon and of its children meanwhile. */
async function spentDuring({ process }: Daemon, task: () => Promise<unknown>) {
  const read = () => ({ own: readOwnTime(process.pid ?? 0), children: readChildrenTime(process.pid ?? 0) });
  const before = read();
  await task();
  const after = read();
  return { own: after.own - before.own, children: after.children - before.children };
}
