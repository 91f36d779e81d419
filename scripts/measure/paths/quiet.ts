import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { patiently } from '../../../test/e2e/office.ts';
import { eventually } from '../../../test/lab/eventually.ts';
import type { Host } from '../../../test/lab/host.ts';
import { nats } from '../../../test/lab/nat/nat.ts';
import { DirectNetwork } from '../../../test/nat/direct-network.ts';
import type { Comparison } from '../comparison.ts';

const pairs = 10;
/** Until all attempts and handshakes are over. */
const settleMs = 90_000;
const quietMs = 120_000;

/**
 * A host that exchanged packets with ten others, where both are behind symmetric NAT, and none
 * since, against a host of the same network that never did: what each starts and sends.
 */
export async function compareQuiet(): Promise<Comparison[]> {
  await using network = await DirectNetwork.start(2);
  const add = async (name: string) => {
    const { host } = await network.nat.addHost(name, await network.nat.addRouter(`${name}-router`, nats.symmetric));
    await network.join(host);
    return host;
  };
  const [used, unused] = [await add('used'), await add('unused')];
  for (let at = 1; at <= pairs; at += 1) {
    const address = network.address(await add(`peer-${at}`));
    await eventually(`the host reaches ${address}`, async () => (await used.ping(address, patiently)).received === 1);
    await used.ping(address, { count: 20 });
  }
  await delay(settleMs);
  const [ours, theirs] = await Promise.all([used, unused].map((host) => watch(network, host)));
  const what = `a host that used ${pairs} pairs behind symmetric NAT, idle for ${quietMs / 1000} s:`;
  const started = { what: `${what} processes`, unit: 'processes', ours: [ours?.processes ?? 0] } as const;
  const sent = { what: `${what} packets`, unit: 'packets', ours: [ours?.packets ?? 0] } as const;
  return [
    { ...started, baseline: '', theirs: [], target: { atMost: 0, text: '0' } },
    { ...sent, baseline: 'a host that used none', theirs: [theirs?.packets ?? 0], target: null },
  ];
}

/** The packets of a host outside the tunnel, and the processes that its daemon starts. */
async function watch(network: DirectNetwork, host: Host): Promise<{ packets: number; processes: number }> {
  const trace = host.spawn([
    'strace',
    '-f',
    '-e',
    'trace=execve',
    '-p',
    innerId(network.daemon(host).process.pid ?? 0),
  ]);
  await trace.waitForLine(/ attached/);
  const capture = host.spawn(['tcpdump', '-n', '-l', '-i', 'eth0', 'udp or tcp']);
  await capture.waitForLine(/^listening on eth0/);
  await delay(quietMs);
  const packets = (await capture.stop()).stdout.split('\n').filter((line) => line !== '').length;
  const processes = (await trace.stop()).stderr.match(/execve\(/g)?.length ?? 0;
  return { packets, processes };
}

/** The id of a process inside its host, which has a PID namespace of its own. */
function innerId(pid: number): string {
  return /^NSpid:.*\s(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? `${pid}`;
}
