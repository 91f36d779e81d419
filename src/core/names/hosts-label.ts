import { comparePeerIds, type PeerId } from '../map/model.ts';
import { cutLabel, longestLabel, toLabel } from './label.ts';

/** Something that is to have a name in the hosts file. */
export interface NamedPeer {
  readonly id: PeerId;
  readonly name: string;
  /** The label that the service gives it; absent where that follows from the name. */
  readonly label?: string;
}

/** Of an id that is a word, no more than this is appended to a label. */
const longestId = 32;

/** A peer that is renamed again and again gets no more labels than this: it is not to take those of all others. */
const mostLabels = 8;

/**
 * A label of a domain name for each, in their order. Of two that are alike the earlier one keeps its label, and the later one has
 * its id appended: a new peer changes only its own label.
 *
 * @param kind what one without a usable name is called, such as `peer`; its id follows
 */
export function chooseLabels(named: readonly NamedPeer[], kind: string): string[] {
  const taken = new Set<string>();
  return named.map((each) => {
    const chosen = chooseLabel(each, kind, (label) => !taken.has(label));
    taken.add(chosen);
    return chosen;
  });
}

/**
 * The labels of peers, the present one first, in the order of their ids. A label that a peer has had stays its own, also when the service
 * gives the name to another peer. Labels of peers that are held and not among `peers` stay taken.
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
 * The labels once a newer map is in use: those of the map before, and new ones. A label is free again once the service lists its peer no
 * more, and not while the host only leaves the peer out.
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

/** Makes the label of a name. */
export type LabelRule = (name: string) => string;

/**
 * The name with a suffix that makes its label one that is not taken: `web-2`. A name of which the suffix would be cut off gives way to
 * its label.
 *
 * @param first the first suffix to try
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

/** The name with the suffix, where its label is this one and it is no longer than a name may be. */
function suffixed(name: string, suffix: number, label: string, rule: LabelRule): string {
  const whole = `${name}-${suffix}`;
  return rule(whole) === label && [...whole].length <= 120 ? whole : label;
}

function chooseLabel({ id, name, label: given }: NamedPeer, kind: string, isFree: (label: string) => boolean): string {
  const label = given ?? (toLabel(name) || toLabel(`${kind}-${id}`));
  const number = cutLabel(toLabel(String(id)), longestId) || 'other';
  let chosen = label;
  // Each round makes another label, so that there are no more rounds than labels taken.
  for (let round = 1; !isFree(chosen); round += 1) {
    chosen = append(label, round === 1 ? number : `${number}-${round}`);
  }
  return chosen;
}

function append(label: string, suffix: string): string {
  return `${cutLabel(label, longestLabel - suffix.length - 1)}-${suffix}`;
}

/** The labels by which the hosts file has named a peer, the present one first. */
export interface PeerLabels {
  readonly peer: PeerId;
  readonly labels: readonly string[];
}
