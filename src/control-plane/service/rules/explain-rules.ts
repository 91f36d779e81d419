import {
  mostAccessChanges,
  mostWarnings,
  type ReachablePairs,
  type RuleDecision,
  type RulesPreview,
  type SetRules,
} from '../../../contract/rules.ts';
import { InvalidValue } from '../../../core/errors/index.ts';
import type { PortRange } from '../../../core/map/access-rules.ts';
import { covers, hostPrefix, overlaps, tryParseAddress } from '../../../core/net/cidr.ts';
import { parseMapSelector } from '../../../core/rules/map-selector.ts';
import { formatPorts, intersectPorts } from '../../../core/rules/selector.ts';
import { listNames } from '../../../core/util/list-names.ts';
import type { Caller } from '../../domain/caller.ts';
import { readFields } from '../../domain/field-rules.ts';
import { compareAccess } from '../../domain/rules/compare.ts';
import { Decider, explain, type Kind, runTests, type Verdict } from '../../domain/rules/decide.ts';
import { checkElements } from '../../domain/rules/elements.ts';
import type { Endpoint, RuledPeer } from '../../domain/rules/endpoints.ts';
import { listEnforcement } from '../../domain/rules/enforcement.ts';
import { selects } from '../../domain/rules/groups.ts';
import { resolveName, resolveNames } from '../../domain/rules/names.ts';
import { listReachable, listRefused } from '../../domain/rules/reach.ts';
import { listWarnings } from '../../domain/rules/warnings.ts';
import { listKeys } from '../../store/enrollment-keys.ts';
import type { Context } from '../context.ts';
import { requireNetwork } from '../networks.ts';
import { type Ruled, readRuled } from './ruled-network.ts';

/** The effects that rules would have. Changes nothing. */
export async function previewRules(
  context: Context,
  caller: Caller,
  id: number,
  asked: SetRules,
): Promise<RulesPreview> {
  const { db } = context;
  const { stored, named, network } = await readRuled(db, await requireNetwork(db, caller, id));
  const next = resolveNames(asked, named);
  checkElements(next.rules, network.peers);
  const { gainedCount, lostCount, ...changes } = compareAccess(network, stored, next);
  return {
    ...{ ...changes, gained_count: gainedCount, lost_count: lostCount },
    tests: runTests(network, next, asked.tests),
    enforcement: listEnforcement(network.peers).filter(({ by }) => by === 'nothing'),
    refused: listRefused(network, next, mostAccessChanges),
    warnings: [
      ...listWarnings(next, network.peers),
      ...(stored.mode === 'open' && next.mode === 'closed' ? await warnOfKeys(context, id) : []),
    ].slice(0, mostWarnings),
  };
}

const firstKeys = { after: null, skip: 0, limit: 1000 };

/** Members may have created them. In a closed network, they create no more. */
async function warnOfKeys({ db, now }: Context, id: number): Promise<string[]> {
  const keys = (await listKeys(db, id, now().toISOString(), firstKeys)).entries;
  const isForConnectors = (types: string | null) => types === null || JSON.parse(types).includes('connector');
  const names = keys.flatMap(({ name, peer_types }) => (isForConnectors(peer_types) ? name : []));
  if (names.length === 0) return [];
  const what = 'let hosts enrol as connectors, which send with any address of their routes';
  return [`enrolment keys ${what}: ${listNames(names)}; revoke those that you do not need`];
}

/** A kind of connections between two ends, as users write them. */
export interface AskedPair extends Kind {
  readonly from: string;
  readonly to: string;
}

/** Decides about connections between two ends, and names the rule. */
export async function explainRules(
  { db }: Context,
  caller: Caller,
  id: number,
  { from, to, protocol, port }: AskedPair,
): Promise<RuleDecision> {
  checkPort({ protocol, port });
  const ruled = await readRuled(db, await requireNetwork(db, caller, id));
  const [sender, receiver] = [readEnd(from, 'from', ruled), readEnd(to, 'to', ruled)];
  const pair = { from: sender.shown, to: receiver.shown, protocol, ...(port !== undefined && { port }) };
  const decided = decide(ruled, sender, receiver, { protocol, port });
  return { ...pair, ...decided, points: listPoints(ruled, sender, receiver) };
}

export async function listReach(
  { db }: Context,
  caller: Caller,
  id: number,
  { to, protocol, port }: { readonly [Name in 'to' | 'protocol' | 'port']?: AskedPair[Name] | undefined },
): Promise<ReachablePairs> {
  const kind = protocol === undefined && port === undefined ? null : { protocol: protocol ?? 'tcp', port };
  if (kind !== null) checkPort(kind);
  const ruled = await readRuled(db, await requireNetwork(db, caller, id));
  return listReachable(ruled.network, ruled.stored, kind, to === undefined ? null : readEnd(to, 'to', ruled).selector);
}

function checkPort({ protocol, port }: Kind): void {
  if (port === undefined || protocol !== 'icmp') return;
  readFields((read) => ({
    port: read(() => {
      throw new InvalidValue('port', port, 'is for tcp and udp');
    }),
  }));
}

interface End {
  /** As it is stored. */
  readonly selector: string;
  /** As a user reads it. */
  readonly shown: string;
}

/** Reads a selector, the name of a peer, or an address of a peer or in a route. */
function readEnd(text: string, field: string, { named, network }: Ruled): End {
  const address = tryParseAddress(text);
  if (address === null) {
    const written = text === 'any' || text.includes(':') ? text : `peer:${text}`;
    return { selector: resolveName(written, field, named), shown: written };
  }
  const peer = network.peers.find((each) => each.address === address);
  if (peer !== undefined) return { selector: `peer:${peer.id}`, shown: `peer:${peer.name}` };
  return readFields((read) => ({
    end: read(() => {
      if (network.routes.some((route) => covers(route, address)))
        return { selector: `cidr:${hostPrefix(address)}`, shown: address };
      throw new InvalidValue(field, text, 'is neither the address of a peer nor in a route of the network');
    }),
  })).end;
}

type Decided = Pick<RuleDecision, 'verdict' | 'rule' | 'ports' | 'why'>;

/** Several pairs are allowed if each of them is. */
function decide({ network, stored }: Ruled, sender: End, receiver: End, kind: Kind): Decided {
  const decider = new Decider(network, stored, [sender.selector, receiver.selector]);
  const deny = (why: string): Decided => ({ verdict: 'deny', rule: null, why });
  let last: Verdict | null = null;
  let part: { readonly ports: readonly PortRange[]; readonly why: string } | undefined;
  for (const [from, to, verdict] of decider.verdicts(sender.selector, receiver.selector, kind, 'from')) {
    last = verdict;
    if (verdict.allowed === 'all') continue;
    const why = `${from.selector} to ${to.selector}: ${explain(verdict)}`;
    const isEcho = kind.protocol === 'icmp' && from.peer !== null && to.peer !== null;
    if (verdict.allowed === 'none')
      return deny(`${why}${isEcho ? '; echo requests between peers are always allowed' : ''}`);
    part = { why: part?.why ?? why, ports: part ? intersectPorts(part.ports, verdict.ports) : verdict.ports };
  }
  if (last === null) return describeNoPair(decider, sender, receiver);
  if (part !== undefined) return { ...deny(part.why), ports: part.ports.map(formatPorts) };
  return { verdict: 'allow', rule: last.rule?.name ?? null, why: explain(last) };
}

/** Rules do not concern connections of a peer to itself: they stay on its host. */
function describeNoPair(decider: Decider, sender: End, receiver: End): Decided {
  const empty = [sender, receiver].find(({ selector }) => !decider.selectsAny(selector));
  if (empty !== undefined) return { verdict: 'deny', rule: null, why: describeEmpty(empty) };
  return { verdict: 'allow', rule: null, why: 'rules do not concern connections of a peer to itself' };
}

function describeEmpty({ shown }: End): string {
  const [kind = '', name = ''] = shown.split(/:(.*)/s);
  if (kind === 'tag') return `no peer has the tag ${name}`;
  if (kind === 'gone') return `${shown} was removed, and selects nothing`;
  return kind === 'peer' ? `${shown} is suspended or has expired` : `${shown} is in no route of the network now`;
}

const mostPoints = 100;

/** The hosts that decide: the destination, and the connectors of routes on both sides. */
function listPoints({ network, stored }: Ruled, sender: End, receiver: End): RuleDecision['points'] {
  if (stored.mode === 'open') return [];
  const [from, to] = [sender, receiver].map(({ selector }) => parseMapSelector(selector));
  const isOf = (selector: typeof from, end: Pick<Endpoint, 'peer'>) =>
    selector !== undefined && selects(selector, { selector: '', prefix: null, ...end });
  const hosts = network.peers.filter((peer) => peer.profile === null && isOf(to, { peer }));
  const isBehind = network.peers.some((peer) => peer.profile !== null && isOf(to, { peer }));
  const prefixes = [from, to].flatMap((each) => (each !== undefined && 'prefix' in each ? each.prefix : []));
  const connectors = network.peers.filter(
    ({ isConnector, served }) =>
      isConnector && (isBehind || served.some((route) => prefixes.some((prefix) => overlaps(route, prefix)))),
  );
  const toPoint = (by: 'destination' | 'connector') => (peer: RuledPeer) => ({
    peer: { id: peer.id, name: peer.name },
    by: peer.enforcesRules ? by : ('nothing' as const),
  });
  return [...connectors.map(toPoint('connector')), ...hosts.map(toPoint('destination'))].slice(0, mostPoints);
}
