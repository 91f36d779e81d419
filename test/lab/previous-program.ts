import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { REPOSITORY } from './built-program.ts';

const execute = promisify(execFile);

/** The last version whose databases and state files have none of the steps that the previous version survives. */
const commit = '81605501cef0fcbe143de9dcc67dcf9a9d746bd8';
const sources = ['src', 'packaging', 'scripts', 'package.json', 'CHANGELOG.md'];

let built: Promise<string> | undefined;

/** The folder of the previous version's program, a `dist`; built from its commit once, with the packages of today. */
export function previousProgram(): Promise<string> {
  built ??= build();
  return built;
}

async function build(): Promise<string> {
  const cache = join(REPOSITORY, '.cache');
  const folder = join(cache, `cpn-${commit}`);
  const isThere = () => statSync(folder, { throwIfNoEntry: false }) !== undefined;
  if (isThere()) return folder;
  const git = (...args: string[]) => execute('git', ['-C', REPOSITORY, ...args]);
  const find = () => git('cat-file', '-e', `${commit}^{commit}`);
  const fetchAll = async () => {
    await git('fetch', '--quiet', '--unshallow');
    await find();
  };
  await find()
    .catch(fetchAll)
    .catch((error) => {
      throw new Error(
        `this clone lacks the commit ${commit}, which the tests of upgrades build: git fetch --unshallow`,
        {
          cause: error,
        },
      );
    });
  mkdirSync(cache, { recursive: true });
  const work = mkdtempSync(join(cache, 'building-'));
  try {
    await git('archive', '--output', join(work, 'sources.tar'), commit, ...sources);
    await execute('tar', ['-xf', join(work, 'sources.tar'), '-C', work]);
    symlinkSync(join(REPOSITORY, 'node_modules'), join(work, 'node_modules'));
    const env = { ...process.env, CPN_BUILD_FOLDER: join(work, 'dist') };
    await execute(process.execPath, [join(work, 'scripts', 'build.ts')], { env });
    // Another process of the tests may have built it meanwhile.
    await rename(join(work, 'dist'), folder).catch((error) => {
      if (!isThere()) throw error;
    });
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return folder;
}
