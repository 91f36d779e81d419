import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Host } from '../../../test/lab/host.ts';
import { Lab } from '../../../test/lab/lab.ts';
import type { Comparison } from '../comparison.ts';
import { crowdOf, settleCrowd } from './crowd.ts';
import { inTurn } from './in-turn.ts';

/** Peers, and how often each variant is measured: wg-quick takes a minute for the largest. */
const sizes = [
  { peers: 1, rounds: 11 },
  { peers: 100, rounds: 7 },
  { peers: 1000, rounds: 5 },
  { peers: 5000, rounds: 3 },
];
const patient = { timeoutMs: 600_000 };

/**
 * An interface brought up: by `cpn up`, by `wg-quick up` of the file that it wrote, and by `wg` and
 * `ip -batch` of ready input, which start a Node too where that is most of the time. Above
 * `wgQuickAtMost` peers wg-quick is left out.
 */
export async function compareBringUp(wgQuickAtMost = Number.POSITIVE_INFINITY): Promise<Comparison[]> {
  const comparisons: Comparison[] = [];
  for (const { peers, rounds } of sizes) {
    await using lab = await Lab.start();
    const host = await lab.addHost('origin', { address: '203.0.113.22/24' });
    await settleCrowd({ config: host.configDir, state: host.stateDir, runtime: host.runtimeDir }, crowdOf(peers));
    // The first one writes the wg-quick file, which the others read.
    await host.cpn(['up'], patient);
    const floor = await prepareFloor(host, peers === 1);
    await host.cpn(['down'], patient);
    const times = await inTurn(rounds, {
      cpn: { measured: () => host.cpn(['up'], patient), after: () => host.cpn(['down'], patient) },
      'wg-quick': {
        measured: () => host.exec(['wg-quick', 'up', 'cpn0'], patient),
        after: () => takeDown(host, 'wg-quick down cpn0'),
        rounds: peers > wgQuickAtMost ? 0 : peers >= 1000 ? 1 : rounds,
      },
      floor: {
        measured: () => host.exec(floor, patient),
        after: () => takeDown(host, 'ip link delete cpn0'),
      },
    });
    const what = `bring-up, ${peers} ${peers === 1 ? 'peer' : 'peers'} with a route each`;
    const common = { what, unit: 'ms', ours: times.cpn } as const;
    if (times['wg-quick'].length > 0) {
      comparisons.push({ ...common, baseline: 'wg-quick up', theirs: times['wg-quick'], target: null });
    }
    const baseline = `${peers === 1 ? 'node -e 0, ' : ''}wg setconf, ip -batch`;
    comparisons.push({ ...common, baseline, theirs: times.floor, target: targetAgainstFloor(peers) });
  }
  return comparisons;
}

/** A tunnel in user space ends a moment after its interface. */
export function takeDown(host: Host, command: string): Promise<unknown> {
  const wait = 'for i in $(seq 200); do [ -e /run/wireguard/cpn0.sock ] || exit 0; sleep 0.05; done; exit 1';
  return host.exec(['sh', '-c', `${command}; ${wait}`], patient);
}

function targetAgainstFloor(peers: number): Comparison['target'] {
  if (peers === 1) return { ratioAtMost: 3, text: '≤ 3' };
  return peers === 5000 ? { ratioAtMost: 1.7, text: '≤ 1.7' } : null;
}

/** What the tools need for the same interface, made before; run by a shell, as they would be. */
async function prepareFloor(host: Host, withNode: boolean): Promise<string[]> {
  const { stdout: stripped } = await host.exec(['wg-quick', 'strip', 'cpn0'], patient);
  const { stdout: routes } = await host.exec(['ip', 'route', 'show', 'table', '8350', 'dev', 'cpn0'], patient);
  const [, address] = /^Address = (.+)$/m.exec(await readFile(join(host.configDir, 'cpn0.conf'), 'utf8')) ?? [];
  const batch = [
    ...[`address add ${address} dev cpn0`, 'link set cpn0 mtu 1420 up'],
    ...routes
      .trim()
      .split('\n')
      .map((route) => `route add ${route.trim().split(' ')[0]} dev cpn0 table 8350 proto 157`),
  ];
  await writeFile(join(host.folder, 'floor.conf'), stripped, { mode: 0o600 });
  await writeFile(join(host.folder, 'floor.batch'), `${batch.join('\n')}\n`);
  const make = 'ip link add cpn0 type wireguard 2>/dev/null || wireguard-go cpn0 >/dev/null 2>&1';
  const node = withNode ? 'node -e 0; ' : '';
  return ['sh', '-ec', `cd ${host.folder}; ${node}${make}; wg setconf cpn0 floor.conf; ip -batch floor.batch`];
}
