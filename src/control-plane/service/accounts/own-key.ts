import type { CreateOwnDevice, OwnDeviceKey } from '../../../contract/own-device.ts';
import type { UserCaller } from '../../domain/caller.ts';
import { hashToken, mintToken, tokenPrefixes } from '../../domain/tokens.ts';
import { TooManyRequests } from '../../errors.ts';
import { countOwnKeys, insertKey } from '../../store/enrollment-keys.ts';
import { transact } from '../../store/transact.ts';
import { record } from '../audit.ts';
import type { Context } from '../context.ts';
import { requirePlace } from '../devices-of-user.ts';
import { lockNetwork } from '../networks.ts';
import { requireUser } from '../require-author.ts';
import { proveIfGiven, requireProof } from './prove-password.ts';

const keyMs = 10 * 60_000;
/** The maximum number of keys of a user in a network that wait for their device. */
const mostWaiting = 10;

/**
 * Creates a key with which the caller enrols one own device. Needs the password or a recent login:
 * the device outlives the session.
 * @throws Forbidden if the network does not let this user enrol another device
 */
export async function createOwnKey(
  context: Context,
  caller: UserCaller,
  networkId: number,
  { password }: CreateOwnDevice,
): Promise<OwnDeviceKey> {
  const proof = await proveIfGiven(context, caller, password);
  const token = mintToken(tokenPrefixes.enrollmentKey, context.random);
  return transact(context.db, async (transaction) => {
    const network = await lockNetwork(transaction, caller, networkId);
    const { author, role, login } = await requireUser(context, transaction, caller);
    await requireProof(context, transaction, { caller, login, proof, field: 'password' });
    const { userId, email } = caller;
    await requirePlace(transaction, network, { id: userId, email, role, networks: caller.networks });
    const at = context.now();
    if ((await countOwnKeys(transaction, networkId, userId, at.toISOString())) >= mostWaiting)
      throw new TooManyRequests(`keys for own devices that were not used, ${mostWaiting}`, keyMs / 1000);
    const key = await insertKey(transaction, {
      network_id: networkId,
      name: `own device of ${email}`,
      token_hash: hashToken(token),
      max_uses: 1,
      uses: 0,
      created_at: at.toISOString(),
      expires_at: new Date(at.getTime() + keyMs).toISOString(),
      peer_types: JSON.stringify(['admin_device']),
      user_id: userId,
    });
    const { id, name, expires_at } = key;
    const details = { network: networkId, max_uses: 1, expires_at, peer_types: ['admin_device'], own_device: true };
    await record(transaction, author, { action: 'key.create', target: { kind: 'enrollment_key', id, name }, details });
    return { id, enrollment_token: token.reveal(), expires_at, network: { id: networkId, name: network.name } };
  });
}
