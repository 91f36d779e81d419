import { nameOnce } from '../../../core/names/hosts-label.ts';
import { allocate, capacityOf } from '../../domain/address-allocation.ts';
import { checkAll, readFields } from '../../domain/field-rules.ts';
import { checkEndpointOutside } from '../../domain/network-rules.ts';
import { labelOf } from '../../domain/peer-label.ts';
import { InvalidRequest } from '../../errors.ts';
import * as networks from '../../store/networks.ts';
import { countSuffixed, findLabelHolder } from '../../store/peers/labels.ts';
import { insertPeer, type NewPeer, type StoredPeer } from '../../store/peers/peers.ts';
import type { Db } from '../../store/tables.ts';
import { checkKeyFree } from '../peer-fields.ts';
import type { Revise } from '../with-revision.ts';
import { lockForEnrollment, requireRoomToWait } from './approval.ts';
import { type ClaimedIdentity, chooseIdentity } from './claimed-identity.ts';

export interface Added {
  readonly peer: StoredPeer;
  readonly network: networks.StoredNetwork;
}

/**
 * Adds the peer at the network's next address. If its name is taken, the name gets a suffix. Where
 * an administrator approves new peers, it waits, and creates no revision: no map has it.
 */
export async function addPeer(
  db: Db,
  revise: Revise,
  identity: ClaimedIdentity | null,
  asked: Omit<NewPeer, 'address' | 'label' | 'previous_key' | 'identity_key'>,
): Promise<Added> {
  const id = asked.network_id;
  const found = await lockForEnrollment(db, id);
  const waits = found.approval === 'required';
  if (waits) await requireRoomToWait(db, found);
  const recordChange = waits ? null : await revise(id);
  const network = waits ? found : await networks.readNetwork(db, id);
  const { range } = network;
  const { endpoint } = asked;
  await checkAll(
    () => checkKeyFree(db, id, asked.public_key),
    () => readFields((read) => ({ endpoint: read(() => endpoint && checkEndpointOutside(endpoint, network)) })),
  );
  const name = await findFreeName(db, id, asked.name);
  const identity_key = await chooseIdentity(db, network, identity);
  const since = waits ? asked.created_at : null;
  const waiting = { suspended_at: since, awaiting_approval: since };
  const peer = { ...asked, identity_key, ...waiting, name, label: labelOf(name) || null };
  for (;;) {
    const next = allocate({ range, ...(await networks.readAddressUse(db, id)) });
    if (!next) throw networkFull(range);
    await (next.fresh ? networks.countAddress(db, id) : networks.reuseAddress(db, id, next.address));
    // Skips an address that is taken in spite of the records, as after a manual repair.
    const added = await insertPeer(db, { ...peer, address: next.address });
    if (!added) continue;
    await recordChange?.(added.id);
    return { peer: added, network };
  }
}

/** Returns the name, with the first free suffix if another peer has or had its label. */
async function findFreeName(db: Db, network: number, name: string): Promise<string> {
  const label = labelOf(name);
  if (label === '' || !(await findLabelHolder(db, network, label))) return name;
  // If thousands of peers share the name, not every suffix is tried.
  for (let suffix = 2 + (await countSuffixed(db, network, label)); ; suffix += 1) {
    const suffixed = nameOnce(name, () => false, suffix, labelOf);
    if (!(await findLabelHolder(db, network, labelOf(suffixed)))) return suffixed;
  }
}

function networkFull(range: Parameters<typeof capacityOf>[0]): InvalidRequest {
  return new InvalidRequest({ private_cidr: [`${range} is full: all its ${capacityOf(range)} addresses are in use`] });
}
