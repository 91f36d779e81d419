import type { ChangeOwnDevice, OwnDevice } from '../../../contract/own-device.ts';
import type { UserCaller } from '../../domain/caller.ts';
import { permits } from '../../domain/network-limit.ts';
import { Forbidden, NotFound } from '../../errors.ts';
import * as store from '../../store/peers/own-devices.ts';
import { isWaiting, type StoredPeer } from '../../store/peers/peers.ts';
import { transact } from '../../store/transact.ts';
import type { Context } from '../context.ts';
import { changePeer, removePeer } from '../peers.ts';
import { requireAuthor } from '../require-author.ts';

/** The own devices of the caller in all networks within its limit. */
export async function listOwnDevices({ db, now }: Context, { userId, networks }: UserCaller): Promise<OwnDevice[]> {
  const at = now().toISOString();
  const devices = await store.listDevicesOf(db, userId);
  return devices
    .filter(({ network_id }) => permits(networks, network_id))
    .map((device) => {
      const { id, name, address, created_at, suspended_at, expires_at, reauth_hours } = device;
      const isExpired = expires_at !== null && expires_at <= at;
      return {
        ...{ id, name, address, created_at, expires_at },
        network: { id: device.network_id, name: device.network_name },
        state: isWaiting(device) ? 'waiting' : suspended_at !== null ? 'suspended' : isExpired ? 'expired' : 'active',
        reauth_hours: reauth_hours || null,
      };
    });
}

export async function renameOwnDevice(
  context: Context,
  caller: UserCaller,
  id: number,
  { name }: ChangeOwnDevice,
): Promise<OwnDevice> {
  const network = await findNetwork(context, caller, id);
  if (name !== undefined) await changePeer(context, caller, network, id, { name }, requireOwn(caller));
  const device = (await listOwnDevices(context, caller)).find((each) => each.id === id);
  if (!device) throw new NotFound('own device');
  return device;
}

/**
 * Removes an own device. A suspended one, and one with an expiry that an admin set, keep their
 * places: their user must not enrol them again.
 */
export async function removeOwnDevice(context: Context, caller: UserCaller, id: number): Promise<void> {
  const network = await findNetwork(context, caller, id);
  await removePeer(context, caller, network, id, (peer) => {
    const device = requireOwn(caller)(peer);
    if (device.expires_at !== null && device.reauth_hours === 0)
      throw new Forbidden('an admin set the expiry of this device; an admin removes it');
    if (device.suspended_at === null || isWaiting(device)) return;
    throw new Forbidden('this device is suspended; an admin resumes or removes it');
  });
}

async function findNetwork(context: Context, caller: UserCaller, id: number): Promise<number> {
  const network = await store.findNetworkOfDevice(context.db, caller.userId, id);
  if (network !== undefined) return network;
  // A user that was removed meanwhile has no devices, and gets a 401.
  await transact(context.db, async (transaction) => requireAuthor(context, transaction, caller));
  throw new NotFound('own device');
}

/** Checks again within the transaction: the device may have become a peer of the network. */
function requireOwn({ userId }: UserCaller): (peer: StoredPeer | undefined) => StoredPeer {
  return (peer) => {
    if (peer?.user_id !== userId) throw new NotFound('own device');
    return peer;
  };
}
