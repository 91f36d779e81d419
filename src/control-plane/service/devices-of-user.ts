import type { Role } from '../../contract/auth.ts';
import type { SelfEnroll } from '../../contract/network.ts';
import { permits } from '../domain/network-limit.ts';
import { Forbidden } from '../errors.ts';
import { lockUser } from '../store/accounts/users.ts';
import type { StoredKey } from '../store/enrollment-keys.ts';
import { lockOrganizationOf, readNetwork, readOrganizationOf, type StoredNetwork } from '../store/networks.ts';
import { dropPeer } from '../store/peers/drop-peer.ts';
import { listNetworksOfUser, listOwnDevices } from '../store/peers/own-devices.ts';
import { isWaiting, type StoredPeer, updatePeer } from '../store/peers/peers.ts';
import type { Db } from '../store/tables.ts';
import { type Author, record, system } from './audit.ts';
import type { Context } from './context.ts';
import { isUnlisted } from './suspension.ts';
import { type AppendEvent, peerEvent, type RecordPeerChange, type Revise, withRevision } from './with-revision.ts';

const hourMs = 3_600_000;
/** The smallest move of an expiry: each one is a revision, which all hosts of the network get. */
const grainMs = 60_000;
/** The same without a login, as a part of the time: a worker may extend often. */
const grain = 1 / 20;

interface WhichUser {
  readonly organizationId: number;
  readonly userId: number;
}

/**
 * Locks the networks in which a user has own devices. A change that suspends them calls this before
 * it locks the organization or a user.
 */
export async function lockNetworksOf(transaction: Db, which: WhichUser): Promise<void> {
  for (const network of await listNetworksOfUser(transaction, which)) await lockOrganizationOf(transaction, network);
}

export interface Suspending {
  readonly transaction: Db;
  readonly revise: Revise;
  readonly append: AppendEvent;
  readonly author: Author;
  readonly now: Date;
  /** Why, for the audit log. */
  readonly because: 'user removed' | 'role changed' | 'limit changed';
}

/**
 * Suspends the own devices of a user in the networks that it loses. Only an admin resumes them,
 * also if the user returns. Removes those that wait for approval: an approval would bring them in.
 * @returns how many it suspended
 */
export async function suspendDevicesOf(
  { transaction, revise, append, author, now, because }: Suspending,
  which: WhichUser & { readonly email: string },
  loses: (selfEnroll: SelfEnroll | null, network: number) => boolean,
): Promise<number> {
  let count = 0;
  for (const id of await listNetworksOfUser(transaction, which)) {
    if (!loses((await readNetwork(transaction, id)).self_enroll, id)) continue;
    await lockOrganizationOf(transaction, id);
    const devices = await listOwnDevices(transaction, id, which.userId);
    const listed = devices.filter(({ suspended_at }) => suspended_at === null);
    const recordChange = listed.length > 0 ? await revise(id) : null;
    for (const { id: peer, name, address } of devices.filter(isWaiting)) {
      await dropPeer(now, transaction, id, peer);
      const target = { kind: 'peer', id: peer, name } as const;
      const details = { network: id, address, user: which.email, because };
      await record(transaction, author, { action: 'peer.delete', target, details });
      append(id, peerEvent('peer.removed', { id: peer, name }, { reason: 'not_approved' }));
    }
    for (const device of listed) {
      const updated = await updatePeer(transaction, id, device.id, { suspended_at: now.toISOString() });
      await recordChange?.(device.id);
      const target = { kind: 'peer', id: device.id, name: device.name } as const;
      const { suspended_at } = updated;
      const details = { network: id, suspended_at, user: which.email, because };
      await record(transaction, author, { action: 'peer.suspend', target, details });
      if (!isUnlisted(device)) append(id, peerEvent('peer.removed', updated, { reason: 'suspended' }));
      count += 1;
    }
  }
  return count;
}

/**
 * True if a user whose role changes may not keep own devices. A network that no longer lets users
 * enrol names no roles: a higher role keeps them there.
 */
export function losesDevices(role: Role, isHigher: boolean): (selfEnroll: SelfEnroll | null) => boolean {
  return (selfEnroll) => (selfEnroll === null ? !isHigher : !selfEnroll.roles.includes(role));
}

/**
 * Moves the expiry of a user's own devices that logins keep. A login brings back expired ones.
 * Without a login, as while the issuer of the login is down, only devices that are still in their
 * network stay in it.
 */
export async function extendOwnDevices(
  context: Context,
  which: WhichUser,
  how: { readonly isLogin: boolean },
): Promise<void> {
  const { db } = context;
  let hasMoved = false;
  for (const network of await listNetworksOfUser(db, which)) {
    const due = (devices: readonly StoredPeer[]) => devices.flatMap((each) => extend(each, context.now(), how) ?? []);
    if (due(await listOwnDevices(db, network, which.userId)).length === 0) continue;
    hasMoved = true;
    await withRevision(context, async (transaction, revise, append) => {
      if ((await lockOrganizationOf(transaction, network)) === undefined) return;
      const moved = due(await listOwnDevices(transaction, network, which.userId));
      if (moved.length === 0) return;
      const recordChange = await revise(network);
      for (const { device, expires_at } of moved) {
        const updated = await updatePeer(transaction, network, device.id, { expires_at, expired: 0 });
        await recordChange(device.id);
        if (!isUnlisted(device) || isUnlisted(updated)) continue;
        append(network, peerEvent('peer.enrolled', updated, { reason: 'resumed' }));
        const author = {
          organizationId: which.organizationId,
          actor: system,
          address: null,
          readTime: context.readTime,
        };
        const target = { kind: 'peer', id: device.id, name: device.name } as const;
        const details = { network, expires_at, user: device.user_email, because: 'login' };
        await record(transaction, author, { action: 'peer.resume', target, details });
      }
    });
  }
  if (hasMoved) context.rescheduleExpiry();
}

function extend(device: StoredPeer, now: Date, { isLogin }: { readonly isLogin: boolean }) {
  const { reauth_hours, expires_at } = device;
  if (reauth_hours === 0 || expires_at === null) return null;
  if (!isLogin && expires_at <= now.toISOString()) return null;
  const next = now.getTime() + reauth_hours * hourMs;
  // Never earlier: the clock of another replica may be ahead.
  if (next - Date.parse(expires_at) < (isLogin ? grainMs : reauth_hours * hourMs * grain)) return null;
  return { device, expires_at: new Date(next).toISOString() };
}

/**
 * Applies new `reauth_hours` of a network to its own devices: all expire at most so many hours from
 * now. An expiry that an admin set stays, and an expired device stays expired until a login.
 */
export async function applyReauth(
  { transaction, now, recordChange }: { transaction: Db; now: Date; recordChange: RecordPeerChange },
  network: number,
  hours: number | null,
): Promise<void> {
  const end = hours === null ? null : new Date(now.getTime() + hours * hourMs).toISOString();
  for (const { id, reauth_hours, expires_at, expired } of await listOwnDevices(transaction, network)) {
    if (expires_at !== null && reauth_hours === 0) continue;
    const isOver = expired !== 0 || (expires_at !== null && expires_at <= now.toISOString());
    // Without an end, an expired device would be an ordinary expired peer, which an admin resumes.
    const next = isOver ? expires_at : end !== null && expires_at !== null && expires_at < end ? expires_at : end;
    await updatePeer(transaction, network, id, { reauth_hours: hours ?? 0, expires_at: next });
    await recordChange(id);
  }
}

/** The user of a key for an own device, and the hours for which a login keeps that device. */
export interface DeviceOwner {
  readonly id: number;
  readonly email: string;
  readonly reauthHours: number;
}

/**
 * Returns the user whose device enrols with a key; null for a key of the network. The user's role
 * and the network's settings may have changed since the key was created.
 * @throws Forbidden if the user may not enrol the device, or if another peer has its identity
 */
export async function requireDeviceOwner(
  db: Db,
  { network_id, user_id }: StoredKey,
  own: StoredPeer | undefined,
): Promise<DeviceOwner | null> {
  if (user_id === null) return null;
  const user = await lockUser(db, await readOrganizationOf(db, network_id), user_id);
  if (!user) throw new Forbidden('the enrolment key is that of a user who was removed');
  if (own && own.user_id !== user_id) {
    const peer = `peer ${own.name} (${own.id})`;
    throw new Forbidden(`this host is ${peer} of the network, which is no own device of ${user.email}; ask an admin`);
  }
  const network = await readNetwork(db, network_id);
  const { reauth_hours } = await requirePlace(db, network, user, own);
  return { id: user_id, email: user.email, reauthHours: reauth_hours ?? 0 };
}

type Enroller = Pick<NonNullable<Awaited<ReturnType<typeof lockUser>>>, 'id' | 'email' | 'role' | 'networks'>;

/**
 * The settings by which a user enrols an own device.
 * @param own the device that enrols again, and takes no further place
 * @throws Forbidden if the network does not let this user enrol another device
 */
export async function requirePlace(
  db: Db,
  network: StoredNetwork,
  { id, email, role, networks }: Enroller,
  own?: StoredPeer,
) {
  const { name, self_enroll } = network;
  if (!permits(networks, network.id)) throw new Forbidden(`${email} is limited to other networks; ask an owner`);
  if (self_enroll === null)
    throw new Forbidden(`network ${name} does not let users enrol own devices; ask an admin for an enrolment key`);
  const { roles, limit } = self_enroll;
  if (!roles.includes(role))
    throw new Forbidden(
      `network ${name} lets ${roles.join(', ')} enrol own devices, and ${email} is ${role}; ask an admin`,
    );
  if (!own && (await listOwnDevices(db, network.id, id)).length >= limit) {
    throw new Forbidden(
      `${email} has as many own devices in network ${name} as it allows, ${limit}; remove one first, on the account page of the console`,
    );
  }
  return self_enroll;
}
