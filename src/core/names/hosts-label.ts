import { comparePeerIds, type PeerId } from '../map/model.ts';
import { cutLabel, longestLabel, toLabel } from './label.ts';

/** A peer or network with a name in the hosts file. */
export interface NamedPeer {
  readonly id: PeerId;
  readonly name: string;
  /** The label that the service gave. Absent if the label is made of the name. */
  readonly label?: string;
}

/** The maximum number of characters of an id that are appended to a label. */
const longestId = 32;

/** Labels per peer. The limit stops a peer from occupying others' labels by repeated renames. */
export const mostLabels = 8;

/**
 * Chooses a DNS label per item. An item whose label is taken gets its id appended, so a new peer
 * changes only its own label. `kind` is the prefix of the id for an item without a usable name, and
 * `others` are labels in use.
 */
export function chooseLabels(named: readonly NamedPeer[], kind: string, others: readonly string[] = []): string[] {
  const taken = new Set(others);
  return named.map((each) => {
    const chosen = chooseLabel(each, kind, (label) => !taken.has(label));
    taken.add(chosen);
    return chosen;
  });
}

/**
 * The labels of peers, current one first, sorted by peer id. A label stays with its peer, even if
 * the service gives the name to another peer. Held labels of peers outside `peers` stay reserved.
 */
export function assignLabels(peers: readonly NamedPeer[], held: readonly PeerLabels[]): PeerLabels[] {
  const owners = new Map(held.flatMap(({ peer, labels }) => labels.map((label) => [label, peer] as const)));
  const before = new Map(held.map((each) => [each.peer, each]));
  const sorted = peers.toSorted((a, b) => comparePeerIds(a.id, b.id));
  return sorted.map((each) => {
    const known = before.get(each.id) ?? { peer: each.id, labels: [] };
    const own = known.labels;
    const label = chooseLabel(each, 'peer', (one) => (owners.get(one) ?? each.id) === each.id);
    if (own[0] === label || (own.length >= mostLabels && !own.includes(label))) return known;
    owners.set(label, each.id);
    return { peer: each.id, labels: [label, ...own.filter((one) => one !== label)] };
  });
}

/**
 * The labels after a newer map is in use: those of the previous map, and new ones. A label becomes
 * free once the service no longer lists its peer, but not while only this host leaves the peer out.
 *
 * @param known the previous map; `listed` is the newer one as the service sent it, and `used` the
 *   part of it that this host uses
 */
export function keepLabels(
  held: readonly PeerLabels[],
  { known, listed, used }: Readonly<Record<'known' | 'listed' | 'used', { readonly peers: readonly NamedPeer[] }>>,
): PeerLabels[] {
  const before = new Map([...held, ...assignLabels(known.peers, held)].map((each) => [each.peer, each]));
  const kept = listed.peers.flatMap(({ id }) => before.get(id) ?? []);
  const after = assignLabels(used.peers, kept);
  const named = new Set(after.map(({ peer }) => peer));
  return [...after, ...kept.filter(({ peer }) => !named.has(peer))];
}

/** The DNS label of a peer on this host. */
export interface ResolvedLabel {
  readonly label: string;
  /** The label of the peer's name, and the name of the peer that has it instead; null for none. */
  readonly taken: { readonly label: string; readonly by: string } | null;
}

/** The current label of each peer. See {@link assignLabels}. */
export function resolveLabels(
  peers: readonly NamedPeer[],
  held: readonly PeerLabels[],
): ReadonlyMap<PeerId, ResolvedLabel> {
  const assigned = assignLabels(peers, held);
  const byId = new Map(peers.map((each) => [each.id, each]));
  const owners = new Map(
    assigned.flatMap(({ peer, labels }) => labels.map((label) => [label, byId.get(peer)] as const)),
  );
  const current = new Map(assigned.map(({ peer, labels: [label] }) => [peer, label]));
  return new Map(
    peers.map((each) => {
      const own = ownLabel(each, 'peer');
      const owner = owners.get(own);
      const taken = owner === undefined || owner === each ? null : { label: own, by: owner.name };
      return [each.id, { label: current.get(each.id) ?? own, taken }];
    }),
  );
}

/** Derives the label from a name. */
export type LabelRule = (name: string) => string;

/**
 * Returns the name with the first suffix, from `first` on, whose label is free, such as `web-2`. If
 * that name is too long, or its label was cut, returns the label itself.
 */
export function nameOnce(
  name: string,
  isTaken: (label: string) => boolean,
  first = 2,
  rule: LabelRule = toLabel,
): string {
  for (let suffix = first; ; suffix += 1) {
    const label = append(rule(name), String(suffix));
    if (!isTaken(label)) return suffixed(name, suffix, label, rule);
  }
}

/**
 * The name with the suffix if that has the given label and at most 120 characters. Otherwise the
 * label.
 */
function suffixed(name: string, suffix: number, label: string, rule: LabelRule): string {
  const whole = `${name}-${suffix}`;
  return rule(whole) === label && [...whole].length <= 120 ? whole : label;
}

function chooseLabel(named: NamedPeer, kind: string, isFree: (label: string) => boolean): string {
  const label = ownLabel(named, kind);
  const suffix = cutLabel(toLabel(String(named.id)), longestId) || 'other';
  let chosen = label;
  // Each round creates another label, so there are at most as many rounds as taken labels.
  for (let round = 1; !isFree(chosen); round += 1) {
    chosen = append(label, round === 1 ? suffix : `${suffix}-${round}`);
  }
  return chosen;
}

/** The label before it is compared with others. */
function ownLabel({ id, name, label }: NamedPeer, kind: string): string {
  return label ?? (toLabel(name) || toLabel(`${kind}-${id}`));
}

function append(label: string, suffix: string): string {
  return `${cutLabel(label, longestLabel - suffix.length - 1)}-${suffix}`;
}

/** The labels of a peer in the hosts file, current one first. */
export interface PeerLabels {
  readonly peer: PeerId;
  readonly labels: readonly string[];
}
