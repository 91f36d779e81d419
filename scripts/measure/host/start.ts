import { Lab } from '../../../test/lab/lab.ts';
import type { Comparison } from '../comparison.ts';
import { crowdOf, settleCrowd } from './crowd.ts';
import { inTurn } from './in-turn.ts';

const rounds = 31;
/** The least that a program on Node needs to show an interface. */
const statusFloor = 'node -e 0; wg show cpn0 dump; ip -j addr';

/** The time to start, to print the version and the help, and to show a network of one peer. */
export async function compareStart(): Promise<Comparison[]> {
  await using lab = await Lab.start();
  const host = await lab.addHost('origin', { address: '203.0.113.22/24' });
  await settleCrowd({ config: host.configDir, state: host.stateDir, runtime: host.runtimeDir }, crowdOf(1));
  await host.cpn(['up']);
  const times = await inTurn(rounds, {
    version: { measured: () => host.cpn(['--version']) },
    help: { measured: () => host.cpn(['--help']) },
    // Exits with 2.
    bare: { measured: () => host.cpn([], { allowFailure: true }) },
    node: { measured: () => host.exec(['node', '-e', '0']) },
    // Its one peer never answers, so that it is degraded.
    status: { measured: () => host.cpn(['status'], { allowFailure: true }) },
    floor: { measured: () => host.exec(['sh', '-c', statusFloor]) },
  });
  const node = { baseline: 'node -e 0', unit: 'ms', theirs: times.node } as const;
  return [
    { what: 'cpn --version', ...node, ours: times.version, target: { ratioAtMost: 1.3, text: '≤ 1.3' } },
    { what: 'cpn --help', ...node, ours: times.help, target: { ratioAtMost: 1.7, text: '≤ 1.7' } },
    { what: 'cpn without arguments', ...node, ours: times.bare, target: { ratioAtMost: 1.7, text: '≤ 1.7' } },
    {
      ...{ what: 'cpn status', baseline: 'node -e 0; wg show dump; ip -j addr', unit: 'ms' },
      ...{ ours: times.status, theirs: times.floor, target: { ratioAtMost: 2, text: '≤ 2' } },
    },
  ];
}
