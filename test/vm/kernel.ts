import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { command } from '../../packaging/command.ts';

/** Debian's kernel without the drivers of real machines. */
const newest = 'linux-image-cloud-amd64';

/** The newest version of the kernel in apt's lists; null where it has none, or another process is updating them. */
export function newestKernel(): string | null {
  return findKernel([])?.version ?? null;
}

/** Finds the package that is the newest kernel, asking apt with these options. */
function findKernel(options: readonly string[]): { name: string; version: string } | null {
  const name = query(['apt-cache', ...options, 'depends', newest], /^ *Depends: (linux-image-\S+)$/m);
  const version = name && query(['apt-cache', ...options, 'policy', name], /^ *Candidate: (\S+)$/m);
  return name && version ? { name, version } : null;
}

/** The match of a pattern in a tool's output; null where the tool fails, as apt does without lists. */
function query([file = '', ...args]: readonly string[], pattern: RegExp): string | null {
  const { stdout } = spawnSync(file, args, { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C' } });
  return pattern.exec(stdout ?? '')?.[1] ?? null;
}

/** A kernel, unpacked and nowhere installed. */
interface Kernel {
  readonly version: string;
  readonly boot: string;
  readonly modules: string;
  /** As in `uname -r`. */
  readonly release: string;
}

/** Fetches the newest kernel into a folder; what this machine boots with stays as it is. */
export function fetchKernel(work: string): Kernel {
  const lists = join(work, 'lists');
  mkdirSync(join(lists, 'partial'), { recursive: true });
  // Lists of its own: other processes may be updating those of this machine.
  const options = ['-o', `Dir::State::Lists=${lists}`, '-o', `Dir::Cache=${work}`, '-o', 'APT::Sandbox::User=root'];
  command(['apt-get', ...options, 'update']);
  const found = findKernel(options);
  if (found === null) throw new Error(`apt knows no ${newest}; look into its sources`);
  command(['apt-get', ...options, 'download', `${found.name}=${found.version}`], { cwd: work });
  const archive = readdirSync(work).find((file) => file.endsWith('.deb'));
  if (archive === undefined) throw new Error(`apt-get download ${found.name} left no package in ${work}`);
  const tree = join(work, 'kernel');
  command(['dpkg-deb', '-x', join(work, archive), tree]);
  const [release] = readdirSync(join(tree, 'lib/modules'));
  if (release === undefined) throw new Error(`${found.name} has no modules`);
  const modules = join(tree, 'lib/modules', release);
  return { version: found.version, boot: join(tree, `boot/vmlinuz-${release}`), modules, release };
}
