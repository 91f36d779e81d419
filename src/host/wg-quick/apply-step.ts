import { Unsupported } from '../../core/errors.ts';
import { parseLinkName } from '../../core/link-name.ts';
import type { Secret } from '../../core/secret.ts';
import type { ConfigureDevice, ConfigureLink, LinkCommand, Step } from '../../core/step.ts';
import type { DeviceStep } from '../change-device.ts';
import { writeHosts } from '../hosts-file.ts';
import { type Portable, type Seen, see } from './observe.ts';
import { bringUp, ownAddresses, takeDown, whole } from './restart.ts';
import { interrupts, type KnownDevice, mergePeers, settle } from './settle.ts';

/**
 * Tables of interfaces that are still to be made, by their names: a tunnel comes up with its first `configure-link`, whole, with what
 * the steps before it said. They are of the plan that is being applied, and forgotten once the interface is seen.
 */
export type Drafts = Map<string, Partial<KnownDevice>>;

/**
 * Does one step. What changes WireGuard's table alone is done at once, and interrupts nobody; what changes address, MTU or routes
 * takes the tunnel down and brings it up again with a new file, once a plan.
 *
 * @throws CommandFailed with the tool's own words; Unsupported for what only Linux has
 */
export async function applyStep(portable: Portable, drafts: Drafts, step: Step): Promise<void> {
  if ('link' in step) parseLinkName(step.link);
  switch (step.do) {
    case 'create-link':
      drafts.set(step.link, {});
      return;
    case 'configure-device':
      return drafts.has(step.link) ? draw(drafts, step) : configureDevice(portable, step);
    case 'remove-peers':
    case 'renew-peers':
      return change(portable, step);
    case 'configure-link':
      return configureLink(portable, drafts, step);
    case 'delete-link':
      drafts.delete(step.link);
      return deleteLink(portable, step.link);
    case 'set-hosts':
      return writeHosts(step.link, step.block);
    case 'remove-hosts':
      return writeHosts(step.link, null);
    case 'set-firewall':
    case 'remove-firewall':
    case 'set-sysctl':
      throw unsupported(portable, 'a connector');
  }
}

/** What a person is told who asks for what only Linux has. */
export function unsupported({ manager }: Pick<Portable, 'manager'>, what: string): Unsupported {
  return new Unsupported(what, manager.name, 'join with a Linux host for that');
}

function draw(drafts: Drafts, { link, do: _, changes: __, peers, ...device }: Step & ConfigureDevice): void {
  const draft = drafts.get(link);
  drafts.set(link, { ...draft, ...device, peers: mergePeers(draft?.peers ?? [], peers) });
}

/** The file keeps step with the private key, so that it is known as this interface's own. */
async function configureDevice(portable: Portable, step: Step & ConfigureDevice): Promise<void> {
  const { file } = await see(portable, step.link);
  await change(portable, step);
  if (file === null || step.privateKey === undefined) return;
  await portable.files.write(step.link, { ...file, config: { ...file.config, privateKey: step.privateKey } });
}

/** An interface that is not there is left to `wg` to speak of. */
async function change(portable: Portable, step: DeviceStep): Promise<void> {
  const { real } = await see(portable, step.link);
  await portable.manager.change({ ...step, link: real ?? step.link });
}

async function configureLink(portable: Portable, drafts: Drafts, { link, commands }: ConfigureLink): Promise<void> {
  const draft = drafts.get(link);
  drafts.delete(link);
  if (commands.some(isOfFullTunnel)) throw unsupported(portable, 'a full tunnel');
  for (const command of commands) {
    if ('add' in command && command.add === 'route' && command.replaces) await takeOver(portable, link, command);
  }
  if (draft !== undefined)
    return bringUp(portable, link, settle({ file: null, device: whole(draft), addresses: [] }, commands));
  const seen = await see(portable, link);
  const before = { ...seen, device: whole({ ...seen.device, ...keyOf(seen) }), addresses: ownAddresses(seen) };
  const next = settle(before, commands);
  if (!interrupts(commands)) return portable.files.write(link, next);
  const last = seen.file === null ? null : settle(before, []);
  await takeDown(portable, link, seen);
  try {
    await bringUp(portable, link, next);
  } catch (error) {
    // What cannot be had must not cost what was there.
    if (last !== null) await bringUp(portable, link, last).catch(() => {});
    throw error;
  }
}

/** The route is another tunnel's of ours, and no system of these takes a second one: that tunnel is restarted without it. */
async function takeOver(portable: Portable, link: string, { prefix }: { prefix: string }): Promise<void> {
  for (const other of await portable.files.list()) {
    const { file } = await see(portable, other);
    const hasIt = file?.config.peers.flatMap((peer) => peer.allowedIps).find((each) => each === prefix);
    if (other === link || hasIt === undefined) continue;
    const removal: LinkCommand = { remove: 'route', prefix: hasIt, protocol: 'boot' };
    await configureLink(portable, new Map(), { do: 'configure-link', link: other, commands: [removal] });
  }
}

/** Also where somebody took the interface away already. */
async function deleteLink(portable: Portable, link: string): Promise<void> {
  const seen = await see(portable, link);
  if (seen.real !== null) await takeDown(portable, link, seen);
  await portable.files.remove(link);
}

function keyOf({ privateKey }: Seen): { privateKey?: Secret } {
  return privateKey === null ? {} : { privateKey };
}

function isOfFullTunnel(command: LinkCommand): boolean {
  if ('add' in command && command.add === 'rule') return true;
  return 'add' in command && command.add === 'route' && (command.table ?? 'main') !== 'main';
}
