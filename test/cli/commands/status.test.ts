import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readNetworks, status } from '../../../src/cli/commands/status.ts';
import { Input } from '../../../src/cli/input/input.ts';
import { startExaminedHost } from '../../app/doctor/examined-host.ts';
import { mapAt } from '../../app/joined-state.ts';
import { peer } from '../../core/samples.ts';

/** The status of a host whose daemon left this pid file, or none. */
async function readWith(pidFile: string | null) {
  const runtime = await mkdtemp(join(tmpdir(), 'cpn-status-'));
  onTestFinished(() => rm(runtime, { recursive: true }));
  if (pidFile !== null) await writeFile(join(runtime, 'daemon.pid'), pidFile);
  const { tools } = (await startExaminedHost(mapAt('"1"', [peer(2)]))).simulated;
  await tools.store.amendNotes('cpn0', { reachability: { reachableBy: 1, witnesses: 2 } });
  const [network] = await readNetworks(tools, new Input({}, status.flags, { CPN_RUNTIME_DIR: runtime }));
  return { reachability: network?.reachability, killed: network?.warnings.filter((text) => text.includes('killed')) };
}

/** The id of a process that has ended. */
async function findEndedPid(): Promise<number> {
  const child = spawn('true');
  await once(child, 'exit');
  return child.pid ?? 0;
}

describe('the status of a host', () => {
  it('whose daemon runs has what the control plane answered to its reports, and no warning', async () => {
    expect(await readWith(`${process.pid}\n`)).toEqual({
      reachability: { reachableBy: 1, witnesses: 2 },
      killed: [],
    });
  });

  it('whose daemon was killed has a warning with its pid, and no answers, which are not current', async () => {
    const pid = await findEndedPid();
    expect(await readWith(`${pid}\n`)).toEqual({
      reachability: null,
      killed: [expect.stringMatching(new RegExp(`the daemon \\(pid ${pid}\\) was killed; .*"cpn run"`))],
    });
  });

  it.each([
    ['none', null],
    ['an empty one', ''],
    ['one without a pid', 'soon'],
  ])('whose daemon left no pid, as for one that was stopped, has neither: %s', async (_, pidFile) => {
    expect(await readWith(pidFile)).toEqual({ reachability: null, killed: [] });
  });
});
