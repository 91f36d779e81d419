import { DataCenter, lanRoute, serverAddress } from '../../../test/e2e/data-center.ts';
import { plan, status } from '../../../test/e2e/office.ts';
import { eventually } from '../../../test/lab/eventually.ts';
import type { Host } from '../../../test/lab/host.ts';
import type { SetRulesRequest } from '../../../test/lab/owner.ts';
import type { Comparison } from '../comparison.ts';
import { quantileOf } from '../spread.ts';

const rounds = 9;
const seconds = 4;
const rules = 1000;
const iperfPort = 5201;

/**
 * iperf3 from a laptop to a server behind a connector, in a closed network with 1,000 rules against
 * the same network while it is open, in turn. Noise is what the runs of the open one differ by.
 */
export async function compareThroughput(): Promise<Comparison[]> {
  const center = await DataCenter.start();
  try {
    const connector = await center.addConnector(1);
    const laptop = await center.addLaptop('laptop', '203.0.113.40');
    await center.server.exec(['ip', 'route', 'add', '10.77.0.0/24', 'via', '192.168.50.1']);
    await center.awaitAnswers(laptop, connector);
    await center.server.spawn(['iperf3', '--server', '--forceflush']).waitForLine(/Server listening/);
    const set = async (mode: SetRulesRequest['mode']) => {
      await center.owner.setRules(center.network, { mode, rules: makeRules() });
      for (const host of [connector, laptop]) await eventually(`${host.name} is ${mode}`, () => isIn(host, mode));
    };
    const figures = { open: [] as number[], closed: [] as number[] };
    for (let round = 0; round <= rounds; round += 1) {
      for (const mode of ['open', 'closed'] as const) {
        await set(mode);
        const pace = await measurePace(laptop);
        // The first round warms up.
        if (round > 0) figures[mode].push(pace);
      }
    }
    const noise = Math.max(...figures.open) / quantileOf(figures.open, 0.5);
    return [
      {
        ...{ what: `iperf3 through a connector with ${rules} rules: time for 100 MB`, baseline: 'the open network' },
        ...{ unit: 'ms', ours: figures.closed, theirs: figures.open },
        target: { ratioAtMost: noise, text: `≤ ${noise.toFixed(2)}: the slowest run of the open one` },
      },
    ];
  } finally {
    await center.stop();
  }
}

/** The connector and the laptop have elements for each of them; the last one allows iperf3. */
function makeRules(): SetRulesRequest['rules'] {
  return Array.from({ length: rules }, (_, place) => ({
    ...{ name: `rule ${place}`, from: ['peer:laptop'], protocol: 'tcp' },
    to: [place + 1 < rules ? `cidr:192.168.50.${100 + (place % 100)}/32` : `route:${lanRoute}`],
    ports: [`${place + 1 < rules ? 10_000 + place : iperfPort}`],
  }));
}

/** True if the packet filter of a host is that of its network in this mode. */
async function isIn(host: Host, mode: SetRulesRequest['mode']): Promise<boolean> {
  const isClosed = (await status(host)).rules?.count === rules;
  return isClosed === (mode === 'closed') && (await plan(host)).changes.length === 0;
}

/** Milliseconds for 100 MB. */
async function measurePace(from: Host): Promise<number> {
  const { stdout } = await from.exec(['iperf3', '--client', serverAddress, '--time', `${seconds}`, '--json'], {
    timeoutMs: 60_000,
  });
  const { bytes, seconds: took } = JSON.parse(stdout).end.sum_received;
  return (1000 * took * 100e6) / bytes;
}
