import { checkAnswers } from '../../core/doctor/check-answers.ts';
import { checkEndpoints, findUsedEndpoints } from '../../core/doctor/check-endpoints.ts';
import { checkNat } from '../../core/doctor/check-nat.ts';
import {
  checkBypasses,
  checkConflicts,
  checkForwarding,
  checkInboundDrop,
  checkPorts,
  checkRules,
  type MappedNetwork,
} from '../../core/doctor/check-network.ts';
import { checkOutside } from '../../core/doctor/check-outside.ts';
import { checkKeptResolvers, checkStubs, type KeptResolver } from '../../core/doctor/check-resolvers.ts';
import { describeProblems, type ExaminedNames, type HandshakeCount } from '../../core/doctor/describe-problems.ts';
import { type Finding, okFinding } from '../../core/doctor/finding.ts';
import { CpnError, expectCpnError, printable } from '../../core/errors/index.ts';
import { findOwnPeer } from '../../core/map/own-peer.ts';
import { covers, isDefaultRoute, parseAddress } from '../../core/net/cidr.ts';
import { resolver } from '../../core/routing/kept-outside.ts';
import { findBypasses, findDropProblems, findDrops } from '../lan/foreign-drops.ts';
import { describeEvaluation } from '../problems/describe-evaluation.ts';
import { readHostFacts } from '../problems/find-state-problems.ts';
import { findSelf } from '../reconcile/desire-network.ts';
import type { Evaluation } from '../reconcile/evaluate-network.ts';
import { withoutRoute } from '../reconcile/find-unreachable.ts';
import { readReturnPaths } from '../reconcile/return-paths.ts';
import { secondsNow, type Tools } from '../tools.ts';
import { domainCheck } from './check-names.ts';
import type { NetworkCheck } from './examination.ts';

/** The checks of a network that need only this host. */
export const networkChecks: readonly NetworkCheck[] = [
  {
    subject: 'ports',
    examine: async ({ inspector }, evaluation) => checkPorts(mappedNetworkOf(evaluation), await inspector.udpPorts()),
  },
  {
    subject: 'ports',
    async examine(tools, evaluation) {
      const isDialled = findOwnPeer(evaluation.state.membership.map, evaluation.state)?.endpoint != null;
      if (evaluation.actual.link === null || !isDialled) return [];
      const drops = await findDrops(tools, evaluation).catch(expectCpnError);
      if (drops instanceof CpnError) return checkInboundDrop(mappedNetworkOf(evaluation), drops);
      const [inbound = null] = findDropProblems(evaluation.desired.link, [], drops.inbound);
      return checkInboundDrop(mappedNetworkOf(evaluation), inbound, drops.unread.inbound);
    },
  },
  {
    subject: 'forwarding',
    async examine(tools, evaluation) {
      if (!evaluation.state.enabled) return [];
      const rules = evaluation.actual.link === null ? [] : await examineRules(tools, evaluation);
      if (!evaluation.desired.forwards) return rules;
      const drops = evaluation.actual.link === null ? null : await findDrops(tools, evaluation);
      const forward = findDropProblems(evaluation.desired.link, drops?.forward ?? [], null);
      const checks = checkForwarding(mappedNetworkOf(evaluation), forward, drops?.unread.forward);
      return [...rules, ...checks];
    },
  },
  { subject: 'network', examine: examineProblems },
  {
    subject: 'network',
    examine: async (tools, evaluation) => [
      ...(await examineEndpoints(tools, evaluation)),
      ...checkConflicts(mappedNetworkOf(evaluation)),
      ...checkOutside(mappedNetworkOf(evaluation)),
      ...checkAnswers(await readReturnPaths(tools.host, evaluation, anyClient), evaluation.desired, evaluation.actual),
    ],
  },
  {
    subject: 'network',
    async examine(tools, evaluation) {
      const { enabled, features, interface: link, options } = evaluation.state;
      if (!enabled || !features?.includes('peer-paths')) return [];
      const paths = options.directPaths ? (await tools.store.readNotes(link)).paths : null;
      return checkNat(mappedNetworkOf(evaluation), paths);
    },
  },
  { subject: 'dns', examine: async (_, evaluation) => checkStubs(mappedNetworkOf(evaluation)) },
  { subject: 'dns', examine: examineKeptResolvers },
  domainCheck,
  { subject: 'key', examine: async (_, { state }) => examineKey(state) },
];

/** Stands for all clients outside: only a default route leads there (RFC 7526, out of use). */
const anyClient = parseAddress('192.88.99.1');

/** Rules that cannot be read are a finding of another check. */
async function examineRules(tools: Tools, evaluation: Evaluation): Promise<Finding[]> {
  const network = mappedNetworkOf(evaluation);
  const bypasses = await findBypasses(tools, evaluation).catch(expectCpnError);
  const found = bypasses === null || bypasses instanceof CpnError ? [] : checkBypasses(network, bypasses);
  return [...checkRules(network), ...found];
}

function mappedNetworkOf({ state, desired, actual }: Evaluation): MappedNetwork {
  const { self } = findSelf(state);
  return { map: state.membership.map, self, enabled: state.enabled, desired, actual };
}

/** Reports what `cpn status --check` fails on, so that both agree. */
async function examineProblems(
  tools: Pick<Tools, 'host' | 'store' | 'now'>,
  evaluation: Evaluation,
): Promise<Finding[]> {
  const notes = await tools.store.readNotes(evaluation.state.interface);
  const { problems } = describeEvaluation(evaluation, notes, secondsNow(tools), await readHostFacts(tools, evaluation));
  return describeProblems(problems, nameExamined(evaluation.state), countHandshakes(evaluation));
}

function nameExamined({ interface: link, membership }: Evaluation['state']): ExaminedNames {
  return { link, network: printable(membership.map.name) };
}

function countHandshakes({ actual }: Evaluation): HandshakeCount {
  const peers = actual.device?.peers ?? [];
  return { peers: peers.length, heard: peers.filter(({ latestHandshake }) => latestHandshake !== null).length };
}

async function examineKeptResolvers({ host }: Pick<Tools, 'host'>, { state, desired }: Evaluation): Promise<Finding[]> {
  if (!state.enabled) return [];
  const { link, routes, keptOutside } = desired;
  const servers = keptOutside.filter(({ what }) => what === resolver).slice(0, mostResolvers);
  const asked = servers.map(async ({ address }): Promise<KeptResolver[]> => {
    const route = routes.find((prefix) => !isDefaultRoute(prefix) && covers(prefix, address));
    return route === undefined ? [] : [{ address, route, answers: await host.answersQuery(address, resolverDeadline) }];
  });
  return checkKeptResolvers(link, (await Promise.all(asked)).flat());
}

/** A local resolver may have many servers. */
const mostResolvers = 8;

/** Milliseconds. */
const resolverDeadline = 2_000;

/** More endpoints than these take the kernel too long. */
const mostEndpoints = 1_000;

async function examineEndpoints({ host }: Pick<Tools, 'host'>, evaluation: Evaluation): Promise<Finding[]> {
  if (!evaluation.state.enabled) return [];
  const mapped = mappedNetworkOf(evaluation);
  const addresses = new Set(findUsedEndpoints(mapped).map(({ used }) => used.host));
  const unreachable = await withoutRoute(host, evaluation.state, [...addresses].slice(0, mostEndpoints));
  return checkEndpoints(mapped, new Set(unreachable));
}

function examineKey(state: Evaluation['state']): Finding[] {
  // The problems of the status include a rotation in progress.
  if (state.rotation !== null) return [];
  const found = `is in use since ${state.keySince}; no rotation is in progress`;
  return [okFinding('key', `the key of ${state.interface}`, found)];
}
