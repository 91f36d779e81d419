import { CommandFailed, MissingTool } from '../../../core/errors/index.ts';
import type { LinuxProgram } from '../../../core/host-state/actual.ts';
import { dropInFolders } from '../../../core/names/drop-in.ts';
import type { Reloader } from '../../drop-in-files.ts';
import type { Run } from '../../process/run.ts';
import { dnsmasqArgs, isActive } from './active-program.ts';
import { findResolverSockets, rootsFiles } from './resolvers.ts';

/** How a program of this host reads our files. */
export function reloaderOf(run: Run, program: LinuxProgram): Reloader {
  const unit = `${program}.service`;
  const isRunning = () => isActive(run, program);
  const systemctl = (verb: string) => run('systemctl', [verb, unit]);
  // Five starts in ten seconds leave a unit failed (systemd.unit(5), StartLimitBurst=).
  const forgetStarts = () => systemctl('reset-failed').catch(ignoreFailure);
  // If a program still receives the queries of this host, this unit may be stopped for a reason.
  const revive = async () => {
    await forgetStarts();
    await systemctl(findResolverSockets().length === 0 ? 'restart' : 'try-restart');
  };
  switch (program) {
    case 'dnsmasq': {
      const check = () => run('dnsmasq', ['--test', ...dnsmasqArgs(rootsFiles.read)]);
      // SIGHUP makes it read only hosts files and the like. An inactive unit stays so.
      return { isRunning, check, reload: () => forgetStarts().then(() => systemctl('try-restart')), restore: revive };
    }
    case 'NetworkManager': {
      const [folder] = dropInFolders.NetworkManager;
      const check = () => run('dnsmasq', ['--test', '--conf-file=/dev/null', `--conf-dir=${folder}`]);
      // Restarts its dnsmasq (NM_MANAGER_RELOAD_FLAG_DNS_FULL); connections stay.
      const reload = () => run('nmcli', ['general', 'reload', 'dns-full']);
      return { isRunning, check, reload, restore: reload };
    }
    case 'unbound':
      return {
        isRunning,
        check: () => run('unbound-checkconf', []),
        reload: () => systemctl('try-reload-or-restart'),
        restore: revive,
      };
  }
}

function ignoreFailure(error: unknown): void {
  if (!(error instanceof CommandFailed || error instanceof MissingTool)) throw error;
}
