import type { ReachablePairs, RulesPreview } from '../../../contract/rules.ts';
import { covers } from '../../../core/net/cidr.ts';
import { probedPort } from '../../../core/rules/evaluate.ts';
import { parseMapSelector } from '../../../core/rules/map-selector.ts';
import { judge, type Kind, parseRules, type Verdict } from './decide.ts';
import { type Endpoint, listEndpoints, type RuledNetwork } from './endpoints.ts';
import { type Group, groupEndpoints, pushTo, selects } from './groups.ts';
import type { RuleSet } from './rule-set.ts';

const mostPairs = 10_000;

/**
 * Lists the pairs with connections of a kind, or with any for null.
 * @param to the stored selector of the only destinations; null for all
 */
export function listReachable(
  network: RuledNetwork,
  set: RuleSet,
  kind: Kind | null,
  to: string | null,
): ReachablePairs {
  const only = to === null ? null : parseMapSelector(to);
  const pairs: ReachablePairs['pairs'] = [];
  const isReceiver = (end: Endpoint) => only === null || selects(only, end);
  const room = { left: mostJudged };
  const walk = walkAllowed(network, set, kind, { room, isReceiver, parts: only ? [only] : [] });
  for (const [sender, receiver, { rule }] of walk) {
    if (pairs.length === mostPairs) return { pairs, complete: false };
    pairs.push({ from: sender.selector, to: receiver.selector, rule: rule?.name ?? null });
  }
  return { pairs, complete: room.left >= 0 };
}

/** Connections that rules allow, and that hosts refuse since they cannot keep their source. */
export function listRefused(network: RuledNetwork, set: RuleSet, most: number): RulesPreview['refused'] {
  const refused: RulesPreview['refused'] = [];
  const room = { left: mostJudged };
  // An open network masquerades them.
  if (set.mode === 'open') return refused;
  for (const { why, isSender, isReceiver, takesSource } of refusals) {
    for (const [sender, receiver] of walkAllowed(network, set, null, { room, isSender, isReceiver })) {
      if (takesSource?.(sender, receiver)) continue;
      if (refused.length === most) return refused;
      refused.push({ from: sender.selector, to: receiver.selector, why });
    }
  }
  return refused;
}

interface Refusal {
  readonly why: string;
  readonly isSender: (end: Endpoint) => boolean;
  readonly isReceiver: (end: Endpoint) => boolean;
  readonly takesSource?: (sender: Endpoint, receiver: Endpoint) => boolean;
}

const doesNotFollow = ({ peer }: Endpoint) => peer !== null && peer.profile === null && !peer.followsRelay;
const unkept = 'its host does not take packets from the relay with their source; update cpn there';

const refusals: readonly Refusal[] = [
  {
    why: 'its host does not take packets with sources in routes; update cpn there',
    isSender: ({ prefix }) => prefix !== null,
    isReceiver: ({ peer }) => peer !== null && !(peer.enforcesRules && peer.followsRelay),
    takesSource: ({ prefix }, { peer }) =>
      prefix !== null && (peer?.profile?.some((route) => covers(route, prefix)) ?? false),
  },
  { why: unkept, isSender: ({ peer }) => (peer?.profile ?? null) !== null, isReceiver: doesNotFollow },
  {
    why: unkept,
    isSender: ({ peer }) => peer !== null && peer.profile === null && !peer.hasEndpoint,
    isReceiver: (end) => doesNotFollow(end) && end.peer?.hasEndpoint === false,
  },
];

/** The pairs of groups on which rules are judged one by one: half a second. */
const mostJudged = 300_000;

interface Walk {
  /** The walk ends when no pair of groups is left. */
  readonly room: { left: number };
  readonly isSender?: (end: Endpoint) => boolean;
  readonly isReceiver?: (end: Endpoint) => boolean;
  /** Selectors of parts of routes that are ends of their own. */
  readonly parts?: readonly ReturnType<typeof parseMapSelector>[];
}

/** The pairs of ends with connections of a kind that are allowed, at least in part. */
function* walkAllowed(
  network: RuledNetwork,
  set: RuleSet,
  kind: Kind | null,
  { room, isSender = () => true, isReceiver = () => true, parts = [] }: Walk,
): Generator<readonly [Endpoint, Endpoint, Verdict]> {
  const ruling = parseRules(set);
  const endpoints = listEndpoints(network, [...ruling.rules.flatMap(({ from, to }) => [...from, ...to]), ...parts]);
  const { groups, from, to } = groupEndpoints(endpoints, ruling.rules);
  const receivers = new Map(groups.map((group) => [group, group.members.filter(isReceiver)] as const));
  for (const [group, members] of receivers) if (members.length === 0) receivers.delete(group);
  if (receivers.size === 0) return;
  const isForAll = new Set(to.all);
  const columnsOf = to.groups.map((columns) => columns.filter((column) => receivers.has(column)));
  const isProbe = kind?.protocol === 'tcp' && kind.port === probedPort;
  const reachedFrom = (sender: Group): (readonly [Group, Verdict])[] => {
    const rulesOf = new Map<Group, number[]>();
    for (const place of [...sender.from, ...from.all].sort((one, other) => one - other)) {
      const columns = isForAll.has(place) ? receivers.keys() : (columnsOf[place] ?? []);
      for (const column of columns) pushTo(rulesOf, column, place);
    }
    // Other rules than those of the list allow nothing, except in these cases.
    const columns = set.mode === 'open' || isProbe ? receivers.keys() : rulesOf.keys();
    const listed = [...columns];
    room.left -= listed.length;
    return listed.flatMap((column) => {
      const verdict = judge(ruling, rulesOf.get(column) ?? [], [sender, column], kind);
      return verdict.allowed === 'none' ? [] : [[column, verdict] as const];
    });
  };
  for (const sender of groups) {
    const senders = sender.members.filter(isSender);
    if (senders.length === 0) continue;
    const reached = reachedFrom(sender);
    if (room.left < 0) return;
    for (const end of senders) {
      for (const [column, verdict] of reached) {
        for (const receiver of receivers.get(column) ?? []) if (receiver !== end) yield [end, receiver, verdict];
      }
    }
  }
}
