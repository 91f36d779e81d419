import { CommandFailed, PortTaken } from '../../core/errors/index.ts';
import type { ConfigureDevice, RemovePeers, RenewPeers } from '../../core/reconcile/step.ts';
import { stderrOf } from '../process/command-error.ts';
import type { Run } from '../process/run.ts';
import { removalArgs, renderDevice, renewalCalls } from './wg.ts';

/** A change of a device that interrupts no other peer. */
export type DeviceStep = ConfigureDevice | RemovePeers | RenewPeers;

/** Applies a step with `wg`; `link` of the step is the kernel's name. @throws CommandFailed @throws PortTaken */
export async function changeDevice(run: Run, step: DeviceStep): Promise<void> {
  if (step.do === 'configure-device') return configureDevice(run, step);
  if (step.do === 'remove-peers') {
    for (const args of removalArgs(step)) await run('wg', args);
    return;
  }
  for (const { args, input } of renewalCalls(step)) await run('wg', args, input && { input });
}

async function configureDevice(run: Run, step: ConfigureDevice): Promise<void> {
  try {
    await run('wg', ['addconf', step.link, '/dev/stdin'], { input: renderDevice(step) });
  } catch (error) {
    if (error instanceof CommandFailed && /Address already in use/.test(stderrOf(error)))
      throw new PortTaken(step.link, step.listenPort ?? null, error);
    // Without a control socket, wg uses netlink, whose error is misleading where the kernel has no WireGuard.
    if (!(error instanceof CommandFailed) || !/Protocol not supported/.test(stderrOf(error))) throw error;
    const ended = `the program that is ${step.link} has ended; wireguard-go does so where its user has no inotify instances left (sysctl fs.inotify.max_user_instances)`;
    throw new CommandFailed('wg addconf', error.facts.exitCode as number | null, `${stderrOf(error).trim()}; ${ended}`);
  }
}
