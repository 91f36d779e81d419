import { CommandFailed, MissingTool, ResolverNotRestarted } from '../../../core/errors/index.ts';
import type { LinuxProgram } from '../../../core/host-state/actual.ts';
import { dropInFolders } from '../../../core/names/drop-in.ts';
import type { Reloader } from '../../drop-in-files.ts';
import type { Run } from '../../process/run.ts';
import { findActive, readDnsmasqArgs } from './active-program.ts';
import { findUnstartable } from './file-resolver.ts';
import { findNewer } from './fresh-settings.ts';
import { findResolverSockets } from './resolvers.ts';

/** How a program of this host reads our files. */
export function reloaderOf(run: Run, program: LinuxProgram): Reloader {
  const unit = `${program}.service`;
  const mayUseFormer = async () => {
    const active = await findActive(run, program);
    return active !== null && findNewer(dropInFolders[program], active.startedAt) !== null;
  };
  const systemctl = (verb: string) => run('systemctl', [verb, unit]);
  const restart = (verb: string) =>
    systemctl(verb).catch((error) => {
      if (!(error instanceof CommandFailed)) throw error;
      const problem = `${error.facts.stderr ?? ''}`.trim() || `"systemctl status ${program}" shows why`;
      throw new CommandFailed(`the restart of ${program} by cpn`, Number(error.facts.exitCode), problem);
    });
  // Five starts in ten seconds leave a unit failed (systemd.unit(5), StartLimitBurst=).
  const forgetStarts = () => systemctl('reset-failed').catch(ignoreFailure);
  // An inactive unit stays so.
  const tryRestart = () => forgetStarts().then(() => restart('try-restart'));
  // If a program still receives the queries of this host, this unit may be stopped for a reason.
  const revive = async () => {
    await forgetStarts();
    await systemctl(findResolverSockets().length === 0 ? 'restart' : 'try-restart');
  };
  const checked = (check: () => Promise<unknown>) => async () => {
    const reason = await findUnstartable(run, program);
    if (reason !== null) throw new ResolverNotRestarted(program, reason);
    await check();
  };
  switch (program) {
    case 'dnsmasq': {
      const check = checked(async () => run('dnsmasq', ['--test', ...((await readDnsmasqArgs(run)) ?? [])]));
      // SIGHUP makes it read only hosts files and the like.
      return { mayUseFormer, check, reload: tryRestart, restore: revive };
    }
    case 'NetworkManager': {
      const [folder] = dropInFolders.NetworkManager;
      const check = checked(() => run('dnsmasq', ['--test', '--conf-file=/dev/null', `--conf-dir=${folder}`]));
      // Restarts its dnsmasq (NM_MANAGER_RELOAD_FLAG_DNS_FULL); connections stay.
      const reload = () => run('nmcli', ['general', 'reload', 'dns-full']);
      return { mayUseFormer, check, reload, restore: reload };
    }
    case 'unbound':
      return {
        mayUseFormer,
        check: checked(() => run('unbound-checkconf', [])),
        reload: () => restart('try-reload-or-restart'),
        restore: revive,
      };
  }
}

function ignoreFailure(error: unknown): void {
  if (!(error instanceof CommandFailed || error instanceof MissingTool)) throw error;
}
