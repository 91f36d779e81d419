import { Unsupported } from '../../core/errors/index.ts';
import { parseLinkName } from '../../core/net/link-name.ts';
import type { ConfigureDevice, ConfigureLink, LinkCommand, Step } from '../../core/reconcile/step.ts';
import { removeDropIns, writeDropIns } from '../drop-in-files.ts';
import { writeHosts } from '../hosts-file.ts';
import type { DeviceStep } from '../wireguard/wg.ts';
import { applyCommands, type DeviceConfig, mergePeers, needsRestart } from './apply-commands.ts';
import { observeTunnel, type PortableContext } from './observe.ts';
import { bringUp, completeDevice, ownAddresses, takeDown } from './restart.ts';

/**
 * Configurations of interfaces that do not exist yet, by name. The first `configure-link` creates
 * the tunnel with what earlier steps configured. An entry lasts for one plan, and is dropped once
 * the interface is observed.
 */
export type PendingDevices = Map<string, Partial<DeviceConfig>>;

/**
 * Applies one step. A change of peers or keys runs `wg` and interrupts no peer. A change of
 * address, MTU or routes takes the tunnel down and up again with a new file, once per plan.
 *
 * @throws CommandFailed with the error output of the tool
 * @throws Unsupported for a step that only Linux supports
 */
export async function applyStep(context: PortableContext, pending: PendingDevices, step: Step): Promise<void> {
  if ('link' in step) parseLinkName(step.link);
  switch (step.do) {
    case 'create-link':
      pending.set(step.link, {});
      return;
    case 'configure-device':
      return pending.has(step.link) ? mergePending(pending, step) : configureDevice(context, step);
    case 'remove-peers':
    case 'renew-peers':
      return change(context, step);
    case 'configure-link':
      return configureLink(context, pending, step);
    case 'delete-link':
      pending.delete(step.link);
      return deleteLink(context, step.link);
    case 'set-hosts':
      return writeHosts(step.link, step.block);
    case 'remove-hosts':
      return writeHosts(step.link, null);
    case 'set-dns':
      return step.files && writeDropIns(step.files.texts, null);
    case 'revert-dns':
      return step.files && removeDropIns(step.files, null);
    case 'set-firewall':
    case 'remove-firewall':
    case 'set-sysctl':
      throw unsupported(context, 'a connector');
    case 'open-port':
    case 'close-port':
      throw unsupported(context, 'ufw and firewalld');
  }
}

export function unsupported({ manager }: Pick<PortableContext, 'manager'>, what: string): Unsupported {
  return new Unsupported(what, manager.name, 'join with a Linux host for that');
}

function mergePending(
  pending: PendingDevices,
  { link, do: _, changes: __, peers, ...device }: Step & ConfigureDevice,
): void {
  const known = pending.get(link);
  pending.set(link, { ...known, ...device, peers: mergePeers(known?.peers ?? [], peers) });
}

/** Writes a new private key into the file too, because the key identifies its interface. */
async function configureDevice(context: PortableContext, step: Step & ConfigureDevice): Promise<void> {
  const { file } = await observeTunnel(context, step.link);
  await change(context, step);
  if (file === null || step.privateKey === undefined) return;
  await context.files.write(step.link, { ...file, config: { ...file.config, privateKey: step.privateKey } });
}

/** If no interface exists, `wg` fails with its own error. */
async function change(context: PortableContext, step: DeviceStep): Promise<void> {
  const { kernelName } = await observeTunnel(context, step.link);
  await context.manager.change({ ...step, link: kernelName ?? step.link });
}

async function configureLink(
  context: PortableContext,
  pending: PendingDevices,
  { link, commands }: ConfigureLink,
): Promise<void> {
  const known = pending.get(link);
  pending.delete(link);
  if (commands.some(isOfFullTunnel)) throw unsupported(context, 'a full tunnel');
  for (const command of commands) {
    if ('add' in command && command.add === 'route' && command.replaces !== undefined)
      await takeOverRoute(context, link, command);
  }
  if (known !== undefined)
    return bringUp(
      context,
      link,
      applyCommands({ file: null, device: completeDevice(known), addresses: [] }, commands),
    );
  const observed = await observeTunnel(context, link);
  const before = {
    ...observed,
    device: completeDevice({ ...observed.device, ...(observed.privateKey && { privateKey: observed.privateKey }) }),
    addresses: ownAddresses(observed),
  };
  const next = applyCommands(before, commands);
  if (!needsRestart(commands)) return context.files.write(link, next);
  const last = observed.file === null ? null : applyCommands(before, []);
  await takeDown(context, link, observed);
  try {
    await bringUp(context, link, next);
  } catch (error) {
    // Restores the previous tunnel.
    if (last !== null) await bringUp(context, link, last).catch(() => {});
    throw error;
  }
}

/** Restarts another tunnel without this route: these platforms allow one route per prefix. */
async function takeOverRoute(context: PortableContext, link: string, { prefix }: { prefix: string }): Promise<void> {
  for (const other of await context.files.list()) {
    const { file } = await observeTunnel(context, other);
    const hasIt = file?.config.peers.flatMap((peer) => peer.allowedIps).find((each) => each === prefix);
    if (other === link || hasIt === undefined) continue;
    const removal: LinkCommand = { remove: 'route', prefix: hasIt, protocol: 'boot' };
    await configureLink(context, new Map(), { do: 'configure-link', link: other, commands: [removal] });
  }
}

/** Succeeds even if the interface does not exist. */
async function deleteLink(context: PortableContext, link: string): Promise<void> {
  const observed = await observeTunnel(context, link);
  if (observed.kernelName !== null) await takeDown(context, link, observed);
  await context.files.remove(link);
}

function isOfFullTunnel(command: LinkCommand): boolean {
  if ('add' in command && command.add === 'rule') return true;
  return 'add' in command && command.add === 'route' && (command.table ?? 'main') !== 'main';
}
