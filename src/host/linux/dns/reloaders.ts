import { setTimeout as sleep } from 'node:timers/promises';
import { CommandFailed } from '../../../core/errors/index.ts';
import type { LinuxProgram } from '../../../core/host-state/actual.ts';
import type { Reloader } from '../../drop-in-files.ts';
import type { Run } from '../../process/run.ts';
import { findResolverSockets } from './resolvers.ts';

/** Milliseconds in which a resolver must receive queries again. */
const withinMs = 5_000;
const pauseMs = 50;

/** How a program of this host reads our files. */
export function reloaderOf(run: Run, program: LinuxProgram): Reloader {
  const check = (text: string) => run('dnsmasq', ['--test', '--conf-file=-'], { input: text });
  const systemctl = (verb: string) => run('systemctl', [verb, `${program}.service`]);
  // A unit that failed needs `restart`. If the resolver runs, it may be another program.
  const revive = () => (findResolverSockets().length === 0 ? systemctl('restart') : systemctl('try-restart'));
  switch (program) {
    case 'dnsmasq':
      // SIGHUP makes it read only hosts files and the like. An inactive unit stays so.
      return { check, reload: () => awaitRestart(() => systemctl('try-restart'), program), restore: revive };
    case 'NetworkManager': {
      // Restarts its dnsmasq (NM_MANAGER_RELOAD_FLAG_DNS_FULL); connections stay.
      const reload = () => run('nmcli', ['general', 'reload', 'dns-full']);
      return { check, reload: () => awaitRestart(reload, program), restore: reload };
    }
    case 'unbound': {
      // It checks all files, because a file may be included within any clause.
      const reload = () => run('unbound-checkconf', []).then(() => systemctl('reload'));
      return { reload, restore: revive };
    }
  }
}

/** The new process of a resolver has other sockets. @throws CommandFailed if it does not start */
async function awaitRestart(command: () => Promise<unknown>, program: LinuxProgram): Promise<void> {
  const before = new Set(findResolverSockets());
  await command();
  if (before.size === 0) return;
  for (let waited = 0; waited < withinMs; waited += pauseMs) {
    const inodes = findResolverSockets();
    if (inodes.length > 0 && !inodes.some((inode) => before.has(inode))) return;
    await sleep(pauseMs);
  }
  const problem = 'the resolver of /etc/resolv.conf did not restart; the former settings are back';
  throw new CommandFailed(`the restart of ${program}`, null, problem);
}
