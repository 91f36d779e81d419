import { CommandFailed, PortTaken } from '../core/errors.ts';
import type { ConfigureDevice, RemovePeers, RenewPeers } from '../core/step.ts';
import { type Run, saidBy } from './run.ts';
import { removalArgs, renderDevice, renewalCalls } from './wg.ts';

/** A change of WireGuard's own table, which interrupts nobody who is not named. */
export type DeviceStep = ConfigureDevice | RemovePeers | RenewPeers;

/** Does a step with `wg` alone; `link` of the step is the name that `wg` knows. @throws CommandFailed, PortTaken */
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
    if (error instanceof CommandFailed && /Address already in use/.test(saidBy(error)))
      throw new PortTaken(step.link, step.listenPort ?? null, error);
    // Without a socket to talk to, wg asks the kernel, whose answer misleads where it has no WireGuard.
    if (!(error instanceof CommandFailed) || !/Protocol not supported/.test(saidBy(error))) throw error;
    const ended = `the program that is ${step.link} has ended; wireguard-go does so where its user has no inotify instances left (sysctl fs.inotify.max_user_instances)`;
    throw new CommandFailed('wg addconf', error.facts.exitCode as number | null, `${saidBy(error).trim()}; ${ended}`);
  }
}
