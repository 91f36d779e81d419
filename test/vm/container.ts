import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { command } from '../../packaging/command.ts';
import { eventually } from '../lab/eventually.ts';
import type { Image } from './image.ts';
import type { Place } from './machine.ts';
import { mostBoots, runToEnd } from './run-to-end.ts';

/** How systemd-nspawn ends when the container restarts. */
const restarted = 133;

/** Boots the image's files in a container on this machine's kernel, again for each restart, and returns when it is off. */
export async function runContainer({ files }: Image, { job, out, console, work, signal }: Place): Promise<void> {
  const root = join(work, 'root');
  mkdirSync(root);
  mkdirSync(out, { recursive: true });
  command(['tar', '-xf', files, '-C', root]);
  const name = `cpn-vm-${process.pid}`;
  const argv = [
    'systemd-nspawn',
    ...['-q', '-D', root, '-b', '--register=no', '--keep-unit', `--machine=${name}`, '--private-network'],
    ...['--capability=CAP_NET_ADMIN,CAP_BPF,CAP_PERFMON', '--system-call-filter=bpf', '--bind=/dev/net/tun'],
    ...[`--bind-ro=${job}:/job`, `--bind=${out}:/out`, '--console=pipe'],
  ];
  const log = openSync(console, 'a');
  try {
    for (let boot = 0; boot < mostBoots; boot++) {
      const code = await runToEnd(argv, console, {
        stdio: ['ignore', log, log],
        env: { ...process.env, SYSTEMD_NSPAWN_UNIFIED_HIERARCHY: '1' },
        signal,
      }).finally(removeGroups);
      if (code !== restarted) return;
    }
  } finally {
    closeSync(log);
  }
}

/**
 * Removes the control groups that a container leaves where no manager runs; the next one may not start in them. The processes of a
 * killed container end a moment later.
 */
async function removeGroups(): Promise<void> {
  for (const group of listGroups()) {
    const removed = () => {
      removeTree(group);
      return true;
    };
    await eventually(`${group} is removed`, removed, { timeoutMs: 10_000 });
  }
}

function listGroups(): string[] {
  const found: string[] = [];
  for (const [, hierarchy = '', own = ''] of readFileSync('/proc/self/cgroup', 'utf8').matchAll(
    /^\d+:([^:]*):(.*)$/gm,
  )) {
    // Of the two that systemd keeps, the older one is its own, and the newer one is in addition to it where both are there.
    if (hierarchy !== '' && hierarchy !== 'name=systemd') continue;
    const mounts = hierarchy === '' ? ['/sys/fs/cgroup', '/sys/fs/cgroup/unified'] : ['/sys/fs/cgroup/systemd'];
    for (const group of ['payload', 'supervisor']) {
      found.push(...mounts.map((mount) => join(mount, own, group)).filter((folder) => existsSync(folder)));
    }
  }
  return found;
}

function removeTree(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) removeTree(join(folder, entry.name));
  }
  rmdirSync(folder);
}
