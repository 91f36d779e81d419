import { Lab } from '../../../test/lab/lab.ts';
import type { Comparison } from '../comparison.ts';
import { crowdOf, settleCrowd } from './crowd.ts';
import { inTurn } from './in-turn.ts';

const rounds = 31;

/** The time to start, to print the version, and to show a network of one peer. */
export async function compareStart(): Promise<Comparison[]> {
  await using lab = await Lab.start();
  const host = await lab.addHost('origin', { address: '203.0.113.22/24' });
  await settleCrowd({ config: host.configDir, state: host.stateDir, runtime: host.runtimeDir }, crowdOf(1));
  await host.cpn(['up']);
  const times = await inTurn(rounds, {
    version: { measured: () => host.cpn(['--version']) },
    node: { measured: () => host.exec(['node', '-e', '0']) },
    // Its one peer never answers, so that it is degraded.
    status: { measured: () => host.cpn(['status'], { allowFailure: true }) },
    wg: { measured: () => host.exec(['wg', 'show']) },
    both: { measured: () => host.exec(['sh', '-c', 'node -e 0; wg show']) },
  });
  const status = { what: 'cpn status', unit: 'ms', ours: times.status } as const;
  return [
    {
      ...{ what: 'cpn --version', baseline: 'node -e 0', unit: 'ms', ours: times.version, theirs: times.node },
      target: { ratioAtMost: 1.3, text: '≤ 1.3' },
    },
    { ...status, baseline: 'wg show', theirs: times.wg, target: { ratioAtMost: 2, text: '≤ 2' } },
    { ...status, baseline: 'node -e 0; wg show', theirs: times.both, target: null },
  ];
}
