import type { PeerService } from '../../api/service.ts';
import { CpnError, expectCpnError, Unreachable } from '../../core/errors/index.ts';
import type { FormerMembership } from '../../store/former-networks.ts';
import type { Joined } from '../../store/state/state.ts';
import { isTokenVoid } from '../access.ts';
import { transferOwnership } from '../reconcile/cleanup.ts';
import { withExtensions } from '../service-features.ts';
import type { StateTools, Tools } from '../tools.ts';

/** The most former networks that are kept; the oldest are dropped. */
const mostFormer = 100;

/** Lists the left networks that may still list this host. An unreadable file is only a warning. */
export async function listFormer({ store, warn }: Pick<Tools, 'store' | 'warn'>): Promise<readonly FormerMembership[]> {
  try {
    return (await store.readFormer()).memberships;
  } catch (error) {
    warn(expectCpnError(error).message);
    return [];
  }
}

/**
 * Keeps identity and token of a left network if they can remove or replace its peer later. Returns
 * what is kept, or null. The caller holds the lock, and deletes the state afterwards.
 */
export async function recordFormer(
  tools: Pick<Tools, 'store' | 'now' | 'warn'>,
  state: Joined,
): Promise<FormerMembership | null> {
  const former = formerOf(state, tools.now().toISOString());
  if (former === null) return null;
  try {
    const { memberships, folders } = await tools.store.readFormer();
    const others = memberships.filter((each) => !isSamePeer(each, former)).slice(0, mostFormer - 1);
    const made = state.receipt.flatMap((entry) => (entry.made === 'folder' ? entry.path : []));
    await tools.store.writeFormer({ memberships: [former, ...others], folders: [...new Set([...folders, ...made])] });
    return former;
  } catch (error) {
    tools.warn(expectCpnError(error).message);
    return null;
  }
}

function formerOf({ membership, ...state }: Joined, leftAt: string): FormerMembership | null {
  const { map, peer, accessToken } = membership;
  const { service, features, identity, keySerial, keyPair } = state;
  const has = (feature: 'peer-removal' | 'enroll-identity-proof') => features === null || features.includes(feature);
  const isRemovable = accessToken !== null && has('peer-removal');
  const isReplaceable = identity !== null && has('enroll-identity-proof');
  if (map.id === null || !(isRemovable || isReplaceable)) return null;
  return {
    interface: state.interface,
    leftAt,
    ...{ service, features, identity, keySerial },
    network: { id: map.id, name: map.name },
    peer: { id: peer.id, name: peer.name },
    publicKey: keyPair.publicKey,
    accessToken: isRemovable ? accessToken : null,
  };
}

/**
 * Removes the peers of networks that this host left, as far as their control planes are reachable,
 * and drops those that are gone. The caller does not hold the lock.
 *
 * @param left the networks to finish; all by default
 */
export async function finishLeaving(tools: Tools, left?: readonly FormerMembership[]): Promise<void> {
  const log = (text: string) => tools.log.debug({ error: text }, 'the file of former networks cannot be read');
  const unreachable = new Set<string>();
  for (const former of left ?? (await listFormer({ store: tools.store, warn: log }))) {
    const { service, network, peer, accessToken } = former;
    if (accessToken === null || unreachable.has(service.url)) continue;
    try {
      const patience = { deadlineMs: removalDeadline, attempts: 1, isLocked: true };
      const isGone = await withExtensions(tools, former, patience, (api) => removeLeft(api, former, accessToken));
      if (!isGone) continue;
      await tools.store.lock(() => dropFormer(tools, [former]));
      const facts = { url: service.url, network: network.name, peer: peer.name };
      tools.log.info(facts, 'the peer of a former network is removed');
      tools.progress(`${peer.name} was removed from network ${network.name}, which this host left`);
    } catch (error) {
      if (!(error instanceof CpnError)) throw error;
      if (error instanceof Unreachable) unreachable.add(service.url);
      tools.log.debug(
        { network: network.name, error: error.message },
        'the peer of a former network is not removed yet',
      );
    }
  }
}

/** Milliseconds for one control plane; a user's command waits that long. */
const removalDeadline = 3_000;

async function removeLeft(
  service: PeerService,
  { network, peer, publicKey }: FormerMembership,
  token: NonNullable<FormerMembership['accessToken']>,
): Promise<boolean> {
  try {
    if (await service.removePeer(network.id, peer.id, token)) return true;
    const { map } = await service.readMap(network.id, token, null);
    return map !== null && !map.peers.some((each) => each.id === peer.id || each.publicKey === publicKey);
  } catch (error) {
    if (isTokenVoid(error)) return true;
    throw error;
  }
}

/** Drops a former network whose peer is this host again; returns the state. The lock is held. */
export async function deleteReplaced(tools: StateTools, joined: Joined): Promise<Joined> {
  const { service, membership } = joined;
  const { map, peer } = membership;
  const memberships = await listFormer(tools);
  const replaced = memberships.filter(
    (former) => former.service.url === service.url && former.network.id === map.id && former.peer.id === peer.id,
  );
  if (replaced.length === 0) return joined;
  await dropFormer(tools, replaced);
  // The folders may now belong to this network's receipt.
  const receipt = (await tools.store.read(joined.interface))?.receipt ?? joined.receipt;
  return { ...joined, receipt };
}

/** Returns the former networks with that interface, id or name; all without a name. */
export function selectFormer(
  memberships: readonly FormerMembership[],
  network: string | undefined,
): readonly FormerMembership[] {
  if (network === undefined) return memberships;
  return memberships.filter((former) => namesOf(former).includes(network));
}

/** Networks that were left one after the other may have had the same interface. */
export function namesOf({ interface: link, network }: FormerMembership): readonly string[] {
  return [link, String(network.id), network.name];
}

export async function dropFormer(tools: Pick<Tools, 'store'>, dropped: readonly FormerMembership[]): Promise<void> {
  const { memberships, folders } = await tools.store.readFormer();
  const isDropped = (former: FormerMembership) =>
    dropped.some((each) => isSamePeer(each, former) && each.leftAt === former.leftAt);
  const left = memberships.filter((former) => !isDropped(former));
  if (left.length === memberships.length) return;
  const successor = left.length > 0 ? undefined : (await tools.store.list()).states[0];
  const made = folders.map((path) => ({ made: 'folder', path }) as const);
  if (successor) await transferOwnership(tools, successor, made);
  await tools.store.writeFormer({ memberships: left, folders });
}

function isSamePeer(one: FormerMembership, other: FormerMembership): boolean {
  return one.service.url === other.service.url && one.network.id === other.network.id && one.peer.id === other.peer.id;
}

/** Describes which peer stays in which network, and what removes it. */
export function describeFormer({ network, peer, service, accessToken }: FormerMembership): string {
  const removal =
    accessToken === null
      ? 'a join into that network replaces it, and "cpn peer remove" takes it out'
      : `the next "cpn run", join, reconcile or leave that reaches ${service.url} removes it`;
  return `${peer.name} stays in network ${network.name}, which this host left: ${removal}; "cpn leave --forget" drops its stored identity`;
}
