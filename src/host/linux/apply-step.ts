import { familyOf } from '../../core/cidr.ts';
import { CommandFailed } from '../../core/errors.ts';
import { parseLinkName } from '../../core/link-name.ts';
import type { ConfigureLink, Step } from '../../core/step.ts';
import { changeDevice } from '../change-device.ts';
import { awaitEnd } from '../control-socket.ts';
import { writeHosts } from '../hosts-file.ts';
import { type Run, saidBy } from '../run.ts';
import { batchArgs, nameFailedLines, renderBatch } from './ip-batch.ts';
import { renderFirewall, renderRemoval } from './nft.ts';
import { closeForwarding, promoteSecondaries, writeSysctl } from './sysctl.ts';
import { startUserspace } from './userspace.ts';

/** Does one step with the tools of a Linux host, or throws CommandFailed with the tool's own words. */
export async function applyStep(run: Run, step: Step): Promise<void> {
  if ('link' in step) parseLinkName(step.link);
  switch (step.do) {
    case 'create-link':
      return createLink(run, step.link);
    case 'configure-device':
    case 'remove-peers':
    case 'renew-peers':
      return changeDevice(run, step);
    case 'configure-link':
      return configureLink(run, step);
    case 'set-firewall':
      parseLinkName(step.firewall.link);
      await run('nft', ['-f', '-'], { input: renderFirewall(step.firewall) });
      return;
    case 'remove-firewall':
      await run('nft', ['-f', '-'], { input: renderRemoval(step.link) });
      return;
    case 'set-sysctl':
      return writeSysctl(step.key, step.value);
    case 'set-hosts':
      return writeHosts(step.link, step.block);
    case 'remove-hosts':
      return writeHosts(step.link, null);
    case 'delete-link':
      return deleteLink(run, step.link);
  }
}

/** In the kernel where it can, else in user space. */
async function createLink(run: Run, link: string): Promise<void> {
  try {
    await run('ip', ['link', 'add', 'dev', link, 'type', 'wireguard']);
  } catch (error) {
    if (!/Unknown device type|Operation not supported/.test(saidBy(error))) throw error;
    await startUserspace(run, link);
  }
  await closeForwarding(link);
}

async function configureLink(run: Run, step: ConfigureLink): Promise<void> {
  const losesAddress = step.commands.some(
    (command) => 'remove' in command && command.remove === 'address' && familyOf(command.address.address) === 4,
  );
  if (losesAddress) await promoteSecondaries(step.link);
  const lines = renderBatch(step);
  try {
    await run('ip', batchArgs, { input: `${lines.join('\n')}\n` });
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    throw new CommandFailed('ip -batch', error.facts.exitCode as number | null, nameFailedLines(saidBy(error), lines));
  }
}

/** Leaves the host as it was before the interface, also where that was a program's. */
async function deleteLink(run: Run, link: string): Promise<void> {
  try {
    await run('ip', ['link', 'delete', 'dev', link]);
  } catch (error) {
    if (!saidBy(error).includes('Cannot find device')) throw error;
  }
  await awaitEnd(link);
}
