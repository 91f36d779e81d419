import { Interrupted, MismatchChanged, NotJoined, quote, WrongUsage } from '../../core/errors/index.ts';
import { identifyMap } from '../../core/map/map-validation.ts';
import type { PeerId } from '../../core/map/model.ts';
import { ownKeys } from '../../core/map/own-peer.ts';
import { describeList, findNamed, type Naming } from '../../core/names/find-named.ts';
import type { Pin } from '../../core/pins/match-pins.ts';
import { describeDifference, findPinMismatches, type PinMismatch } from '../../core/pins/pin-mismatch.ts';
import { acceptMismatch, reapplyPins } from '../../core/pins/pins.ts';
import type { Joined } from '../../store/state/state.ts';
import { holderOf } from '../pins.ts';
import { defaultConfirmMs, passNetwork } from '../reconcile/pass.ts';
import { noUpdate } from '../reconcile/state-update.ts';
import { isJoined, refuseUnreadable, selectJoined } from '../select.ts';
import type { StateTools, Tools } from '../tools.ts';
import type { PassReport } from './pass-report.ts';
import { reconcileNetworks } from './reconcile.ts';

export interface PinnedPeer {
  readonly interface: string;
  readonly id: PeerId;
  readonly name: string;
  readonly addresses: readonly string[];
  readonly mismatch: PinMismatch | null;
}

/**
 * Finds a peer by id, address or name. Peers choose names: one may equal another's id or address.
 *
 * @throws WrongUsage if no peer matches, or several do
 * @throws NotJoined without a network
 */
export async function findPeer(tools: StateTools, named: string, network: string | undefined): Promise<PinnedPeer> {
  const { states, unreadable } = await selectJoined(tools, network);
  const peers = states.flatMap(listPeers);
  const peer = findNamed(peers, named, naming);
  if (peer !== null) return peer;
  refuseUnreadable(unreadable);
  if (states.length === 0) throw new NotJoined('no network is joined; join one with "cpn join"');
  const mismatched = peers.filter(({ mismatch }) => mismatch !== null);
  throw new WrongUsage(
    `there is no peer ${quote(named)}; peers with a change to accept: ${describeList(mismatched, naming)}`,
  );
}

const naming: Naming<PinnedPeer> = {
  what: 'peer',
  names: ({ id, name, addresses }) => [String(id), name, ...addresses],
  describe: ({ interface: link, id, name, addresses }) => `${quote(name)} (${id}, ${addresses[0]}) in ${link}`,
  remedy: 'give an id, address or name that no other has, and the network',
};

/**
 * Accepts the mismatched key or address as the new pin, then reconciles the network. If a signal
 * arrives before the pass is confirmed, nothing is accepted.
 *
 * @throws MismatchChanged if the mismatch is no longer the one that was found
 */
export async function acceptPeer(tools: Tools, { interface: link, name, mismatch }: PinnedPeer): Promise<PassReport[]> {
  const made = await tools.store.lock(async () => {
    const state = await tools.store.read(link);
    if (mismatch === null || state === null || !isJoined(state)) return null;
    const accepted = accept(state, mismatch, name);
    await tools.store.write(accepted);
    return { before: state, accepted };
  });
  try {
    return await reconcileNetworks(tools, link);
  } catch (error) {
    if (error instanceof Interrupted && made !== null) await tools.deferSignals(() => revertAcceptance(tools, made));
    throw error;
  }
}

/** Restores the previous pins, on the host too. */
async function revertAcceptance(
  tools: Tools,
  { before, accepted }: { readonly before: Joined; readonly accepted: Joined },
): Promise<void> {
  const { interface: link, membership, pins } = before;
  const { map } = membership;
  const isUndone = await tools.store.lock(async () => {
    const state = await tools.store.read(link);
    // With a newer map, a pass of the daemon has run since.
    if (state === null || !isJoined(state)) return false;
    if (identifyMap(state.membership.map) !== identifyMap(accepted.membership.map)) return false;
    await tools.store.write({ ...state, membership: { ...state.membership, map }, pins });
    return true;
  });
  if (isUndone) await passNetwork(tools, link, noUpdate, { withinMs: defaultConfirmMs });
}

function accept(state: Joined, mismatch: PinMismatch, name: string): Joined {
  const { membership, pins: before } = state;
  const pin = before.find((each) => each.claimed !== null && isSameMismatch(each, mismatch));
  if (pin === undefined) {
    const present = findPinMismatches(membership.map, before).filter(
      ({ claimed }) => claimed.peer === mismatch.claimed.peer,
    );
    throw new MismatchChanged(name, present.map(describeDifference).join('; ') || 'it matches its pin now');
  }
  const { map, pins } = reapplyPins(
    { map: membership.map, pins: before },
    holderOf(state),
    acceptMismatch(before, pin),
  );
  return { ...state, membership: { ...membership, map }, pins };
}

function isSameMismatch(pin: Pin, { pin: known, claimed }: PinMismatch): boolean {
  const nameOf = (each: Pick<PinMismatch, 'pin' | 'claimed'>) =>
    JSON.stringify([each.claimed.peer, describeDifference(each)]);
  return pin.claimed !== null && nameOf({ pin, claimed: pin.claimed }) === nameOf({ pin: known, claimed });
}

/** Returns the listed peers, and the mismatched peers that are held back. */
function listPeers({ interface: link, membership, pins, ...keys }: Joined): PinnedPeer[] {
  const { map } = membership;
  const mismatches = new Map(findPinMismatches(map, pins).map((mismatch) => [mismatch.claimed.peer, mismatch]));
  const own = ownKeys(keys);
  const listed = map.peers.filter(({ publicKey }) => !own.includes(publicKey));
  const isListed = new Set(listed.map(({ id }) => id));
  const hidden = [...mismatches.values()].filter(({ claimed }) => !isListed.has(claimed.peer));
  return [...listed, ...hidden.map(({ name, claimed }) => ({ id: claimed.peer, name, address: claimed.address }))].map(
    ({ id, name, address }) => {
      const mismatch = mismatches.get(id) ?? null;
      const addresses = mismatch ? [mismatch.pin.address, mismatch.claimed.address] : [address];
      return { interface: link, id, name, addresses, mismatch: mismatch };
    },
  );
}
