import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** The folder of the project. */
export const REPOSITORY = join(import.meta.dirname, '..', '..');

let built: Promise<string> | undefined;

/** The path of the built program, once it's known to be newer than its sources. */
export function builtProgram(): Promise<string> {
  built ??= (async () => {
    const program = join(REPOSITORY, 'dist', 'cpn.js');
    const main = await stat(join(REPOSITORY, 'dist', 'main.cjs')).catch(() => undefined);
    if (main === undefined) throw new Error(`no ${program}: run npm run build first`);
    const files = await readdir(join(REPOSITORY, 'src'), { recursive: true, withFileTypes: true });
    for (const file of files.filter((each) => each.isFile())) {
      const path = join(file.parentPath, file.name);
      if ((await stat(path)).mtimeMs > main.mtimeMs)
        throw new Error(`dist is older than ${path}: run npm run build first`);
    }
    return program;
  })();
  return built;
}
