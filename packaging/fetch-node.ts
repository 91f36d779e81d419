import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { command } from './command.ts';
import { checkProgram, type NodePackage } from './private-node.ts';

/** The pauses between attempts to download. */
const pausesMs = [2_000, 10_000, 30_000];

/**
 * Fetches a package into a folder, which is there once the package was verified. npm installs only
 * what is for its own machine.
 *
 * @throws Error with npm's output after the last attempt, or at once where the file or its program
 *   has another sum
 */
export async function fetchNode(wanted: NodePackage, folder: string, pauses = pausesMs): Promise<void> {
  const work = `${folder}.${process.pid}`;
  mkdirSync(work, { recursive: true });
  try {
    const tarball = await download(wanted, work, pauses);
    checkIntegrity(tarball, wanted);
    const paths = ['bin/node', 'LICENSE', 'package.json'].map((path) => `package/${path}`);
    command(['tar', '-xzf', tarball, '-C', work, '--no-same-owner', ...paths]);
    checkProgram(join(work, 'package', 'bin', 'node'), wanted.sha256);
    rmSync(folder, { recursive: true, force: true });
    renameSync(join(work, 'package'), folder);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Downloads the file of a package with npm, and returns its path. */
async function download({ name, version }: NodePackage, work: string, pauses: readonly number[]): Promise<string> {
  for (let attempt = 0; ; attempt++) {
    // npm's cache may hold a list of versions that is older than this version.
    const source = attempt === 0 ? '--prefer-offline' : '--prefer-online';
    try {
      command(['npm', 'pack', `${name}@${version}`, source, '--loglevel=warn', '--pack-destination', work]);
      return join(work, `${name}-${version}.tgz`);
    } catch (error) {
      const pause = pauses[attempt];
      if (pause === undefined) throw error;
      process.stderr.write(`${(error as Error).message}\nattempt ${attempt + 1} failed; retrying in ${pause} ms\n`);
      await sleep(pause);
    }
  }
}

function checkIntegrity(tarball: string, { name, version, integrity }: NodePackage): void {
  const [algorithm = '', digest] = integrity.split(/-(.*)/s);
  const found = createHash(algorithm).update(readFileSync(tarball)).digest('base64');
  if (found === digest) return;
  throw new Error(
    `${name}@${version} has the integrity ${algorithm}-${found}, and package-lock.json says ${integrity}`,
  );
}
