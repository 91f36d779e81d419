import { stat } from 'node:fs/promises';
import { MissingTool } from '../../core/errors.ts';
import { type Run, run as runHere } from '../run.ts';
import type { DaemonUnit } from '../supervisor.ts';

const name = 'cpn.service';

/** There, and only there, systemd is what started this host (sd_booted(3)). */
const usualMark = '/run/systemd/system';

/** cpn.service, where systemd runs and the unit is installed; null elsewhere. */
export async function findUnit(run: Run = runHere, mark = usualMark): Promise<DaemonUnit | null> {
  if (!(await isFolder(mark))) return null;
  const state = await readState(run);
  if (state === null) return null;
  const order = async (...words: readonly string[]) => void (await run('systemctl', [...quietly, ...words, name]));
  return {
    name,
    isEnabled: state.startsWith('enabled'),
    // Waiting could be for ever: at boot the unit may have to wait for the very one that joins.
    enable: () => order('--no-block', '--now', 'enable'),
    disable: () => order('--now', 'disable'),
  };
}

const quietly = ['--quiet', '--no-ask-password'];

/** How systemctl(1) calls the state of the unit's file; null where there is none. */
async function readState(run: Run): Promise<string | null> {
  try {
    const said = (await run('systemctl', ['is-enabled', name], { allowExitCodes: [1, 3, 4] })).trim();
    return said === '' || said === 'not-found' ? null : said;
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
