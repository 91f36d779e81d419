import { stat } from 'node:fs/promises';
import { MissingTool } from '../../core/errors/index.ts';
import { type Run, run as runHere } from '../process/run.ts';
import type { DaemonUnit } from '../supervisor.ts';

const name = 'cpn.service';

/** Exists if and only if systemd booted this host (sd_booted(3)). */
const systemdFolder = '/run/systemd/system';

/** cpn.service. Null if systemd does not run or the unit is not installed. */
export async function findUnit(run: Run = runHere, folder = systemdFolder): Promise<DaemonUnit | null> {
  if (!(await isFolder(folder))) return null;
  const state = await readState(run);
  if (state === null) return null;
  const systemctl = async (...words: readonly string[]) =>
    void (await run('systemctl', [...quietFlags, ...words, name]));
  return {
    name,
    isEnabled: state.startsWith('enabled'),
    // No wait, which could deadlock at boot: the unit may be ordered after the unit of this join.
    enable: () => systemctl('--no-block', '--now', 'enable'),
    disable: () => systemctl('--now', 'disable'),
  };
}

const quietFlags = ['--quiet', '--no-ask-password'];

/** The state of the unit file as in systemctl(1). Null without a unit file. */
async function readState(run: Run): Promise<string | null> {
  try {
    const state = (await run('systemctl', ['is-enabled', name], { allowExitCodes: [1, 3, 4] })).trim();
    return state === '' || state === 'not-found' ? null : state;
  } catch (error) {
    if (error instanceof MissingTool) return null;
    throw error;
  }
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
}
