import { CpnError, expectCpnError } from '../../core/errors/index.ts';
import type { InboundDrop } from '../../core/forward/foreign/find-inbound-drop.ts';
import { findExpiry } from '../../core/map/expiry.ts';
import { findMapEnd } from '../../core/map/map-age.ts';
import { type Problem, problem, stateOf, toWarnings } from '../../core/problems/problem.ts';
import { noOutside } from '../../core/routing/outside-report.ts';
import { readAuthorities } from '../../core/tls/authority-file.ts';
import { sameData } from '../../core/util/same-data.ts';
import type { Joined } from '../../store/state/state.ts';
import type { Notes } from '../../store/store.ts';
import { accessOf } from '../access.ts';
import { findDropProblems, findDrops } from '../lan/foreign-drops.ts';
import { describeEvaluation } from '../problems/describe-evaluation.ts';
import { findLanProblems, findTroubles } from '../problems/find-problems.ts';
import { readHostFacts } from '../problems/find-state-problems.ts';
import type { NetworkStatus, RulesStatus } from '../problems/network-status.ts';
import { type Evaluation, evaluateNetwork } from '../reconcile/evaluate-network.ts';
import { isJoined, selectJoined } from '../select.ts';
import { secondsNow, type Tools } from '../tools.ts';

/** Evaluates this host's networks, without a control plane. An unreadable one hides no other. */
export async function readStatus(tools: Tools, network?: string): Promise<NetworkStatus[]> {
  const { states, unreadable } = await selectJoined(tools, network);
  const read = await Promise.all(states.map((state) => readNetwork(tools, state)));
  const unread = unreadable.map(({ interface: link, error }) => ({
    ...unknown,
    interface: link,
    failure: error,
    problems: [describeFailure(link, error)],
  }));
  return [...read, ...unread].toSorted((a, b) => (a.interface < b.interface ? -1 : 1));
}

async function readNetwork(tools: Tools, state: Joined): Promise<NetworkStatus> {
  const notes = await tools.store.readNotes(state.interface);
  try {
    const evaluation = await evaluateSettled(tools, state);
    const known = describeState(evaluation.state, notes);
    const described = await describeNetwork(tools, evaluation, notes);
    // What hosts observed while the tunnel was up is outdated.
    const outdated = described.state === 'down' ? { reachability: null } : {};
    return { ...known, ...described, ...outdated };
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    const known = describeState(state, notes);
    const found = [...findLanProblems(state, notes), ...findTroubles(state, notes)];
    const problems = [describeFailure(state.interface, error), ...found];
    return { ...known, state: 'degraded', problems, warnings: toWarnings(found), failure: error };
  }
}

/** Describes an evaluated network, including drops by foreign packet rules. */
async function describeNetwork(tools: Pick<Tools, 'host' | 'store' | 'now'>, evaluation: Evaluation, notes: Notes) {
  const evaluated = describeEvaluation(evaluation, notes, secondsNow(tools), await readHostFacts(tools, evaluation));
  if (evaluated.state === 'down') return { ...evaluated, inbound: null };
  const [{ inbound, drops }, rules] = await Promise.all([
    describeDrops(tools, evaluation, notes),
    describeRules(tools, evaluation),
  ]);
  const problems = [...evaluated.problems, ...drops];
  return { ...evaluated, inbound, problems, state: stateOf(problems), warnings: toWarnings(problems), rules };
}

/** Milliseconds to wait for a running pass: a confirmation mostly takes a second. */
const patience = 3_000;
const pause = 100;

/** A running pass changes the host before it saves that: the difference is no drift. */
async function evaluateSettled(tools: Tools, state: Joined): Promise<Evaluation> {
  const evaluation = await evaluateNetwork(tools, state, { acceptsUnread: true });
  if (!state.enabled || evaluation.changes.length === 0) return evaluation;
  const isAtWork = await tools.store.isLocked();
  for (let waited = 0; waited < patience && (await tools.store.isLocked()); waited += pause) await tools.sleep(pause);
  const settled = await tools.store.read(state.interface);
  if (settled === null || !isJoined(settled)) return evaluation;
  // A pass may have ended since the state was read.
  return isAtWork || !sameData(settled, state) ? evaluateNetwork(tools, settled, { acceptsUnread: true }) : evaluation;
}

/** Without forwarding, the notes show whether to check. Unreadable rules hide nothing else. */
async function describeDrops(
  tools: Pick<Tools, 'host'>,
  evaluation: Evaluation,
  { inboundDropped }: Notes,
): Promise<{ readonly inbound: InboundDrop | null; readonly drops: readonly Problem[] }> {
  try {
    const { forward, inbound } = await findDrops(tools, evaluation, inboundDropped ? 'at all' : 'at connectors');
    return { inbound, drops: findDropProblems(evaluation.state.interface, forward, inbound) };
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    const { isConnector, forwards } = evaluation.desired;
    const packets = isConnector ? 'to be forwarded' : 'to the listen port';
    const facts = { interface: evaluation.state.interface, packets, error: error.message, forwards };
    return { inbound: null, drops: [problem('rules-unread', facts)] };
  }
}

/** Adds what a closed network refused here. A failure to read it hides nothing else. */
async function describeRules({ host }: Pick<Tools, 'host'>, { state, desired }: Evaluation): Promise<RulesStatus> {
  const rules = countRules(state);
  if (rules.mode === 'open' || desired.firewall?.access === undefined || !host.readRefused) return rules;
  const refused = await host.readRefused(state.interface).catch(expectCpnError);
  return refused instanceof CpnError ? rules : { ...rules, refused };
}

function countRules({ membership: { map } }: Joined): RulesStatus {
  return map.rules === undefined ? { mode: 'open' } : { mode: 'closed', count: map.rules.rules.length, refused: null };
}

function describeFailure(link: string, { message }: CpnError): Problem {
  return problem('state-unreadable', { interface: link, error: message });
}

function describeState(state: Joined, { sync, reachability }: Notes): NetworkStatus {
  const { membership, interface: link, keyPair, keySince } = state;
  const { map, peer } = membership;
  const expiresAt = findExpiry(state);
  const mapEnd = state.enrollment.type === 'connector' ? findMapEnd(state) : null;
  return {
    ...unknown,
    network: { id: map.id, name: map.name },
    interface: link,
    address: peer.address,
    publicKey: keyPair.publicKey,
    keySince,
    expiresAt: expiresAt === undefined ? null : new Date(expiresAt).toISOString(),
    mapEnd: mapEnd === null ? null : new Date(mapEnd).toISOString(),
    deletedAt: state.deletion?.at ?? null,
    options: state.options,
    authorities: readAuthorities(state.service.authorities ?? []),
    reachability,
    rules: countRules(state),
    sync: accessOf(state) === null ? { ...sync, mode: 'local' } : sync,
  };
}

const unknown = {
  state: 'degraded',
  ...{ network: null, address: null, publicKey: null, keySince: null, expiresAt: null, mapEnd: null, deletedAt: null },
  authorities: [],
  ...{
    listenPort: null,
    mtu: null,
    pathMtu: null,
    relay: null,
    options: null,
    inbound: null,
    reachability: null,
    failure: null,
    rules: null,
  },
  ...{
    peers: [],
    routes: [],
    domains: [],
    drift: [],
    foreignRoutes: [],
    outside: noOutside,
    warnings: [],
    problems: [],
  },
  sync: { mode: 'local', lastSuccess: null, error: null, refused: null },
} as const satisfies Omit<NetworkStatus, 'interface'>;
