import { CommandFailed } from '../../core/errors/index.ts';
import { familyOf } from '../../core/net/cidr.ts';
import { parseLinkName } from '../../core/net/link-name.ts';
import type { ConfigureLink, DnsFiles, SetFirewall, Step } from '../../core/reconcile/step.ts';
import { type Reloader, removeDropIns, writeDropIns } from '../drop-in-files.ts';
import { writeHosts } from '../hosts-file.ts';
import { stderrOf } from '../process/command-error.ts';
import type { Run } from '../process/run.ts';
import { startUserspace, waitForExit } from '../wireguard/userspace.ts';
import { changeDevice } from '../wireguard/wg.ts';
import { reloaderOf } from './dns/reloaders.ts';
import { revertDns, setDns } from './dns/resolved.ts';
import { batchArgs, describeFailedLines, renderBatch } from './ip/batch.ts';
import { setPortOpen } from './nft/firewall-programs.ts';
import { renderFirewall, renderRemoval } from './nft/own-table.ts';
import { renderChange } from './nft/table-change.ts';
import { disableForwarding, promoteSecondaries, writeSysctl } from './sysctl.ts';

/** @throws CommandFailed with the error output of the tool */
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
      return setFirewall(run, step);
    case 'remove-firewall':
      await run('nft', ['-f', '-'], { input: renderRemoval(step.link) });
      return;
    case 'set-sysctl':
      return writeSysctl(step.key, step.value);
    case 'set-hosts':
      return writeHosts(step.link, step.block);
    case 'remove-hosts':
      return writeHosts(step.link, null);
    case 'set-dns':
      if (step.files === undefined) return setDns(run, step);
      // systemd-resolved may have had the domains before, and may still resolve for some programs.
      await revertDns(run, step.link);
      return writeDropIns(step.files.texts, readerOf(run, step.files));
    case 'revert-dns':
      return step.files ? removeDropIns(step.files, readerOf(run, step.files)) : revertDns(run, step.link);
    case 'open-port':
    case 'close-port':
      return setPortOpen(run, step.link, step.at, step.do === 'open-port');
    case 'delete-link':
      return deleteLink(run, step.link);
  }
}

function readerOf(run: Run, { program }: DnsFiles): Reloader | null {
  return program === 'macOS' ? null : reloaderOf(run, program);
}

/** Loads the whole table if it cannot be changed in place. */
async function setFirewall(run: Run, { firewall, loaded, now }: SetFirewall): Promise<void> {
  parseLinkName(firewall.link);
  if (loaded !== undefined) {
    try {
      for (const input of renderChange(firewall, loaded)) await run('nft', ['-f', '-'], { input });
      return;
    } catch (error) {
      if (!(error instanceof CommandFailed)) throw error;
    }
  }
  await run('nft', ['-f', '-'], { input: renderFirewall(firewall, now ?? null) });
}

/** Falls back to userspace if the kernel has no module. */
async function createLink(run: Run, link: string): Promise<void> {
  try {
    await run('ip', ['link', 'add', 'dev', link, 'type', 'wireguard']);
  } catch (error) {
    if (!/Unknown device type|Operation not supported/.test(stderrOf(error))) throw error;
    await startUserspace(run, link);
    // With this flag, which kernel WireGuard lacks, systemd-resolved queries peers over LLMNR.
    await run('ip', ['link', 'set', 'dev', link, 'multicast', 'off']);
  }
  await disableForwarding(link);
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
    throw new CommandFailed(
      'ip -batch',
      error.facts.exitCode as number | null,
      describeFailedLines(stderrOf(error), lines),
    );
  }
}

/** Also succeeds for a userspace interface, and for an interface that does not exist. */
async function deleteLink(run: Run, link: string): Promise<void> {
  try {
    await run('ip', ['link', 'delete', 'dev', link]);
  } catch (error) {
    if (!stderrOf(error).includes('Cannot find device')) throw error;
  }
  await waitForExit(link);
}
