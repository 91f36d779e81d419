import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DiskFailed } from '../../core/errors/index.ts';
import { runOnTerminal } from '../context.ts';
import type { Environment } from '../input/input.ts';
import { note } from '../output/output.ts';

/** A private file in the user's editor. */
interface RulesEditor {
  readonly path: string;
  /** Returns the text after the editor has ended. @throws CommandFailed */
  edit(): Promise<string>;
  /** Removes the file if it is not needed any more, else names it. */
  close(isDone: boolean): Promise<void>;
}

export async function openRulesEditor(environment: Environment, text: string): Promise<RulesEditor> {
  // Only its user may enter the folder (mkdtemp(3)).
  const folder = await mkdtemp(join(tmpdir(), 'cpn-rules-'));
  const path = join(folder, 'rules.yaml');
  const [program = 'vi', ...args] = (environment.VISUAL || environment.EDITOR || 'vi').trim().split(/\s+/);
  await writeFile(path, text, { mode: 0o600 });
  return {
    path,
    async edit() {
      await runOnTerminal(program, [...args, path]);
      return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
        throw new DiskFailed('read', path, error);
      });
    },
    async close(isDone) {
      const isChanged = (await readFile(path, 'utf8').catch(() => text)) !== text;
      if (isChanged && !isDone) note(`your edit is in ${path}; to apply it, type: cpn rules apply ${path}`);
      else await rm(folder, { recursive: true, force: true });
    },
  };
}
