import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { makeKeyPair } from '../../../src/core/crypto/keys.ts';
import type { Peer } from '../../../src/core/map/model.ts';
import { parseAddress } from '../../../src/core/net/cidr.ts';
import { parseEndpoint } from '../../../src/core/net/endpoint.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import type { Host } from '../../../test/lab/host.ts';
import { Lab } from '../../../test/lab/lab.ts';
import type { Process } from '../../../test/lab/process.ts';
import type { Comparison } from '../comparison.ts';
import { quantileOf } from '../spread.ts';
import { crowdOf, settleCrowd } from './crowd.ts';

const peers = 1_000;
const rounds = 9;
/** Seconds of a window; the change comes one second after its beginning. */
const seconds = 6;
/** Well below what a tunnel in user space carries here, so that one left alone loses nothing. */
const moderate = '50M';
const far = '10.64.250.1';
const patient = { timeoutMs: 600_000 };

/** What went through the tunnel in a window. */
interface Window {
  readonly lost: number;
  /** Milliseconds for 100 MB. */
  readonly pace: number;
}

/**
 * A tunnel under iperf3 and a ping every 2 ms, while all of the 1,000 other peers of its host
 * change, against the same tunnel left alone, in turn. Packets are counted where iperf3 leaves room
 * for them; at full speed a tunnel in user space drops some at any time. Noise is what the windows
 * of a tunnel left alone differ by: the others are within it where their median is no slower than
 * the slowest of those.
 */
export async function compareLive(): Promise<Comparison[]> {
  await using lab = await Lab.start();
  const here = await lab.addHost('here', { address: '203.0.113.22/24' });
  const there = await lab.addHost('there', { address: '203.0.113.23/24' });
  await settleCrowd({ config: here.configDir, state: here.stateDir, runtime: here.runtimeDir }, await connect(there));
  await here.cpn(['up'], patient);
  const server = there.spawn(['iperf3', '--server', '--forceflush']);
  await server.waitForLine(/Server listening/);
  await here.exec(['ping', '-n', '-c', '1', '-W', '10', far]);
  const worker = here.spawn(['node', join(import.meta.dirname, 'live-worker.ts')], { holdInput: true });
  let change = 0;
  const changeOthers = () => changeAll(worker, ++change);
  const [full, easy] = [windows(), windows()];
  for (let round = 0; round <= rounds; round += 1) {
    for (const [{ alone, live }, rate] of [
      [easy, ['--bitrate', moderate]],
      [full, []],
    ] as const) {
      const pair = [await measure(here, rate), await measure(here, rate, changeOthers)] as const;
      // The first warms up.
      if (round === 0) continue;
      alone.push(pair[0]);
      live.push(pair[1]);
    }
  }
  const what = `a live change of ${peers} peers under 500 pings a second and iperf3`;
  const lost = { baseline: 'the tunnel left alone', unit: 'packets' } as const;
  const [ours, theirs] = [full.live.map(({ pace }) => pace), full.alone.map(({ pace }) => pace)];
  const noise = Math.max(...theirs) / quantileOf(theirs, 0.5);
  return [
    {
      ...{ what: `${what} at ${moderate}bit/s: pings lost`, ...lost, target: { atMost: 0, text: '0' } },
      ...{ ours: easy.live.map((each) => each.lost), theirs: easy.alone.map((each) => each.lost) },
    },
    {
      ...{ what: `${what} at full speed: pings lost`, ...lost, target: null },
      ...{ ours: full.live.map((each) => each.lost), theirs: full.alone.map((each) => each.lost) },
    },
    {
      ...{
        what: `${what} at full speed: time for 100 MB`,
        baseline: 'the tunnel left alone',
        unit: 'ms',
        ours,
        theirs,
      },
      target: { ratioAtMost: noise, text: `≤ ${noise.toFixed(2)}: the slowest one left alone` },
    },
  ];
}

/** Windows of a tunnel left alone, and of one whose host changes. */
function windows(): { readonly alone: Window[]; readonly live: Window[] } {
  return { alone: [], live: [] };
}

/**
 * Makes the far end, and returns the near end's map: a network of so many, whose last peer it is.
 */
async function connect(there: Host): Promise<Joined> {
  const state = crowdOf(peers);
  const { privateKey, publicKey } = makeKeyPair(randomBytes(32));
  const { map, peer } = state.membership;
  const script = [
    'ip link add cpn0 type wireguard 2>/dev/null || wireguard-go cpn0 >/dev/null 2>&1',
    `wg set cpn0 listen-port 51820 private-key /dev/stdin peer ${state.keyPair.publicKey} allowed-ips ${peer.address}/32`,
    `ip address add ${far}/16 dev cpn0; ip link set cpn0 mtu 1420 up`,
  ];
  await there.exec(['sh', '-ec', script.join('\n')], { input: privateKey.reveal() });
  const last: Peer = {
    ...{ id: 60_000, name: 'there', type: 'origin', publicKey, address: parseAddress(far) },
    ...{ endpoint: parseEndpoint(`${there.address}:51820`), routes: [], withdrawn: [] },
  };
  return { ...state, membership: { ...state.membership, map: { ...map, peers: [...map.peers, last] } } };
}

async function measure(
  here: Host,
  rate: readonly string[],
  meanwhile: () => Promise<unknown> = async () => {},
): Promise<Window> {
  const flood = here.spawn(['ping', '-q', '-n', '-i', '0.002', '-c', `${seconds * 500}`, '-W', '5', far]);
  const flow = here.spawn(['iperf3', '--client', far, '--time', `${seconds}`, '--json', ...rate]);
  await delay(1000);
  await meanwhile();
  const [pinged, flowed] = await Promise.all([flood.endWithin(120_000), flow.endWithin(120_000)]);
  const [, sent, received] = /(\d+) packets transmitted, (\d+) received/.exec(pinged.stdout) ?? [];
  const { bytes, seconds: took } = JSON.parse(flowed.stdout).end.sum_received;
  return { lost: Number(sent) - Number(received), pace: (1000 * took * 100e6) / bytes };
}

async function changeAll(worker: Process, round: number): Promise<void> {
  worker.writeInput(`${round}\n`);
  const [line, objects] = await worker.waitForLine(/^changed (\d+) objects.*/, 60_000);
  if (Number(objects) < 2 * peers) throw new Error(`not all of the peers changed: ${line}`);
}
