import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { DataCenter, lanRoute, serverAddress } from '../../../test/e2e/data-center.ts';
import { eventually } from '../../../test/lab/eventually.ts';
import type { Host } from '../../../test/lab/host.ts';
import type { SetRulesRequest } from '../../../test/lab/owner.ts';
import type { Process } from '../../../test/lab/process.ts';
import type { Comparison } from '../comparison.ts';

export type FlowKind = 'tcp' | 'udp' | 'ping';
/** When the latest packet of each flow arrived, by the address of the other end. */
export type LastArrivals = Readonly<Record<string, Partial<Record<FlowKind, number>>>>;

/** Milliseconds without a packet after which a flow has ended: some are late on a busy machine. */
const silence = 1_500;
const names: Readonly<Record<FlowKind, string>> = { tcp: 'a TCP connection', udp: 'a UDP flow', ping: 'a ping' };

/**
 * From the answer to the request that takes the rules of running flows away until the last packet
 * of each arrives at either end. The flows go from a laptop to a server behind a connector, and to
 * a peer, with a packet every 10 ms. Echo requests between peers are never filtered.
 */
export async function compareRevocations(rounds = 100): Promise<Comparison[]> {
  const center = await DataCenter.start();
  try {
    const connector = await center.addConnector(1);
    const origin = await center.addOrigin('origin', '203.0.113.22');
    const laptop = await center.addLaptop('laptop', '203.0.113.40');
    await center.server.exec(['ip', 'route', 'add', '10.77.0.0/24', 'via', '192.168.50.1']);
    await center.awaitAnswers(laptop, connector, origin);
    const to = center.address(origin);
    const ends = [await start(center.server, 'serve'), await start(origin, 'serve')];
    const sender = await start(laptop, 'send', serverAddress, to);
    const flows = [
      ...(['tcp', 'udp', 'ping'] as const).map((kind) => ({
        kind,
        address: serverAddress,
        place: 'behind a connector',
        end: ends[0],
      })),
      ...(['tcp', 'udp'] as const).map((kind) => ({ kind, address: to, place: 'to a peer', end: ends[1] })),
    ];
    const allow = [{ name: 'laptop', from: ['peer:laptop'], to: [`route:${lanRoute}`, 'peer:origin'] }];
    const setRules = (rules: SetRulesRequest['rules']) =>
      center.owner.setRules(center.network, { mode: 'closed', rules });
    const figures = flows.map((): number[] => []);
    for (let round = 0; round < rounds; round += 1) {
      await setRules(allow);
      sender.writeInput('open\n');
      const opened = Date.now();
      await eventually(
        'all flows pass',
        async () => {
          const seen = await readLast(sender);
          return flows.every(({ kind, address }) => (seen[address]?.[kind] ?? 0) > opened);
        },
        { timeoutMs: 60_000 },
      );
      // At each moment between two reports and probes of hosts.
      await delay(1_000 + ((round * 370) % 1_000));
      const answered = await setRules([]);
      const arrivals = await eventually('no flow passes', async () => {
        const [seen, ...atEnds] = await Promise.all([sender, ...ends].map(readLast));
        const latest = flows.map(({ kind, address, end }) =>
          Math.max(seen?.[address]?.[kind] ?? 0, atEnds[ends.indexOf(end as Process)]?.['']?.[kind] ?? 0),
        );
        return Date.now() - Math.max(...latest) > silence && latest;
      });
      for (const [place, arrived] of arrivals.entries()) figures[place]?.push(Math.max(0, arrived - answered));
      process.stderr.write(`${round + 1}: ${figures.map((each) => each.at(-1)).join(' ')} ms\n`);
    }
    return flows.map(({ kind, place }, index) => ({
      ...{ what: `${names[kind]} ${place} ends after its rule went`, baseline: '', unit: 'ms' as const, theirs: [] },
      ...{ ours: figures[index] ?? [], target: { share: 0.99, atMost: 1000, text: 'p99 ≤ 1 s' } },
    }));
  } finally {
    await center.stop();
  }
}

async function start(host: Host, role: string, ...addresses: string[]): Promise<Process> {
  const end = host.spawn(['node', join(import.meta.dirname, 'flow-ends.ts'), role, ...addresses], { holdInput: true });
  if (role === 'serve') await end.waitForLine(/^ready/);
  return end;
}

async function readLast(end: Process): Promise<LastArrivals> {
  end.writeInput('last\n');
  const [, text = ''] = await end.waitForLine(/^last (.*)/);
  return JSON.parse(text);
}
