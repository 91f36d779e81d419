import { checkAnswers } from '../../core/doctor/check-answers.ts';
import { checkDetours } from '../../core/doctor/check-detours.ts';
import { checkEndpoints, findUsedEndpoints } from '../../core/doctor/check-endpoints.ts';
import { checkKeptResolvers, type KeptResolver } from '../../core/doctor/check-kept-resolvers.ts';
import {
  checkConflicts,
  checkForeignRoutes,
  checkForwarding,
  checkInboundDrop,
  checkPorts,
  checkRules,
  type ExaminedNetwork,
} from '../../core/doctor/check-network.ts';
import { checkOutside } from '../../core/doctor/check-outside.ts';
import { checkStubs } from '../../core/doctor/check-stubs.ts';
import { type Finding, noteFinding, okFinding, problemFinding } from '../../core/doctor/finding.ts';
import { CpnError, expectCpnError, printable } from '../../core/errors/index.ts';
import { describeSecretMismatch } from '../../core/health/compare-secrets.ts';
import { peerStateOf } from '../../core/health/peer-health.ts';
import { findExpiryWarning } from '../../core/map/expiry.ts';
import { describeMapAge } from '../../core/map/map-age.ts';
import { describeUnlisted, findOwnPeer } from '../../core/map/own-peer.ts';
import { covers, isDefaultRoute, parseAddress } from '../../core/net/cidr.ts';
import { acceptCommand, describeDifference, findPinMismatches } from '../../core/pins/pin-mismatch.ts';
import { resolver } from '../../core/routing/kept-outside.ts';
import { describeLanRoutes } from '../drain/lan-routes.ts';
import { findSelf } from '../reconcile/desire-network.ts';
import type { Evaluation } from '../reconcile/evaluate-network.ts';
import { withoutRoute } from '../reconcile/find-unreachable.ts';
import { readReturnPaths } from '../reconcile/return-paths.ts';
import { describeRotation } from '../rotation/begin.ts';
import { findCloneWarnings } from '../status/describe-clones.ts';
import { findSecretMismatches } from '../status/find-secret-mismatches.ts';
import { findDrops } from '../status/foreign-drops.ts';
import { secondsNow, type Tools } from '../tools.ts';
import type { NetworkCheck } from './examination.ts';

/** A network on this host, without a word from anybody else. */
export const networkChecks: readonly NetworkCheck[] = [
  {
    subject: 'ports',
    examine: async ({ inspector }, seen) => checkPorts(sceneOf(seen), await inspector.udpPorts()),
  },
  {
    subject: 'ports',
    async examine(tools, seen) {
      const isDialled = findOwnPeer(seen.state.membership.map, seen.state)?.endpoint != null;
      if (seen.actual.link === null || !isDialled) return [];
      const drops = await findDrops(tools, seen).catch(expectCpnError);
      const [inbound, unread] = drops instanceof CpnError ? [drops, []] : [drops.inbound, drops.unread.inbound];
      return checkInboundDrop(sceneOf(seen), inbound, unread);
    },
  },
  {
    subject: 'forwarding',
    async examine(tools, seen) {
      if (!seen.state.enabled) return [];
      const rules = seen.actual.link === null ? [] : [checkRules(sceneOf(seen))];
      if (!seen.desired.forwards) return rules;
      const drops = seen.actual.link === null ? null : await findDrops(tools, seen);
      const checks = checkForwarding(sceneOf(seen), drops?.forward ?? [], drops?.unread.forward);
      return [...(await examineLanRoutes(tools, seen)), ...rules, ...checks];
    },
  },
  {
    subject: 'network',
    examine: async (tools, seen) => [
      examineTunnel(seen),
      ...examineEnding(tools, seen),
      ...examineMapAge(seen),
      ...(await examineClones(tools, seen)),
      ...(await examinePeers(tools, seen)),
      ...(await examineEndpoints(tools, seen)),
      ...checkConflicts(sceneOf(seen)),
      ...checkForeignRoutes(sceneOf(seen)),
      ...checkOutside(sceneOf(seen)),
      ...checkDetours(sceneOf(seen)),
      ...checkAnswers(await readReturnPaths(tools.host, seen, anyClient), seen.desired, seen.actual),
    ],
  },
  { subject: 'dns', examine: async (_, seen) => checkStubs(sceneOf(seen)) },
  { subject: 'dns', examine: examineKeptResolvers },
  { subject: 'pins', examine: async (_, seen) => examinePins(seen) },
  { subject: 'key', examine: async (_, { state }) => examineKey(state) },
];

/** Stands for all clients outside: no route but a default one leads there (the anycast range of RFC 7526, which is out of use). */
const anyClient = parseAddress('192.88.99.1');

function sceneOf({ state, desired, actual }: Evaluation): ExaminedNetwork {
  const { self } = findSelf(state);
  return { map: state.membership.map, self, enabled: state.enabled, desired, actual };
}

function examineTunnel({ state, listed, changes, actual }: Evaluation): Finding {
  const { interface: link, membership, service } = state;
  const looked = `${link}, the tunnel of network ${printable(membership.map.name)}`;
  if (!listed) {
    const { found, remedy } = describeUnlisted(membership.map, { membership });
    return problemFinding('network', looked, `${service.url} ${found}`, remedy);
  }
  if (!state.enabled) return noteFinding('network', looked, 'was taken down', `cpn up ${link}`);
  if (actual.link === null) return problemFinding('network', looked, 'is not there', `cpn reconcile ${link}`);
  if (changes.length === 0) return okFinding('network', looked, 'is as it should be');
  return problemFinding(
    'network',
    looked,
    `has ${changes.length} ${changes.length === 1 ? 'difference' : 'differences'} from its intended state`,
    `cpn plan ${link}, and cpn reconcile ${link}`,
  );
}

function examineEnding(tools: Tools, { state }: Evaluation): Finding[] {
  const ending = findExpiryWarning(state, tools.now());
  if (ending === null) return [];
  const looked = `how long this host may stay in ${printable(state.membership.map.name)}`;
  return [problemFinding('network', looked, ending.found, ending.remedy)];
}

function examineMapAge({ state, desired, serviceTime }: Evaluation): Finding[] {
  const age = desired.isConnector ? describeMapAge(state, serviceTime) : null;
  if (age === null) return [];
  const looked = `when the control plane last confirmed the map of ${state.interface}`;
  return [problemFinding('network', looked, age.found, 'mend what is found about api, and check that "cpn run" runs')];
}

async function examineClones(tools: Tools, { state }: Evaluation): Promise<Finding[]> {
  const looked = `whether a host of ${state.interface} is on two machines`;
  const warnings = findCloneWarnings(state, await tools.store.readNotes(state.interface));
  return warnings.map(({ found, remedy }) => problemFinding('network', looked, found, remedy));
}

/** Peers that should answer and do not; who never had a handshake may be off. */
async function examinePeers(tools: Tools, { state, actual }: Evaluation): Promise<Finding[]> {
  const { interface: link, membership } = state;
  const { silent } = await tools.store.readNotes(link);
  const now = secondsNow(tools);
  const peers = actual.device?.peers ?? [];
  const looked = `handshakes of ${link}`;
  if (peers.length === 0) return [];
  const stale = peers.filter((peer) => peerStateOf(peer, now, silent[peer.publicKey]) === 'stale');
  const names = new Map(membership.map.peers.map(({ publicKey, name, address }) => [publicKey, { name, address }]));
  const found = stale.map(({ publicKey }) => {
    const { name, address } = names.get(publicKey) ?? { name: publicKey, address: publicKey };
    return problemFinding('network', looked, `${printable(name)} does not answer`, `cpn explain ${address}`);
  });
  const heard = peers.filter(({ latestHandshake }) => latestHandshake !== null).length;
  if (found.length > 0) return found;
  const sum = `${heard} of ${peers.length} peers were heard`;
  return heard > 0 ? [okFinding('network', looked, sum)] : [noteFinding('network', looked, sum, 'cpn explain ADDRESS')];
}

async function examineKeptResolvers({ host }: Tools, { state, desired }: Evaluation): Promise<Finding[]> {
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

async function examineEndpoints({ host }: Tools, seen: Evaluation): Promise<Finding[]> {
  if (!seen.state.enabled) return [];
  const scene = sceneOf(seen);
  const addresses = new Set(findUsedEndpoints(scene).map(({ used }) => used.host));
  const unreachable = await withoutRoute(host, seen.state, [...addresses].slice(0, mostEndpoints));
  return checkEndpoints(scene, new Set(unreachable));
}

async function examineLanRoutes(tools: Tools, { state }: Evaluation): Promise<Finding[]> {
  const { ways } = await tools.store.readNotes(state.interface);
  const looked = `the ways to the LANs behind ${state.interface}`;
  const remedy = 'bring its interface up, or give this host a route there; then it is served again by itself';
  return describeLanRoutes(state, ways).map((found) => problemFinding('forwarding', looked, printable(found), remedy));
}

function examinePins({ state, actual }: Evaluation): Finding[] {
  const { map } = state.membership;
  const { interface: link } = state;
  const looked = `the pinned peers of ${link}`;
  const claims = findPinMismatches(map, state.pins).map((claim) =>
    problemFinding(
      'pins',
      looked,
      `${printable(claim.name)} changed without a signed proof: ${describeDifference(claim)}`,
      `verify the change, then type ${acceptCommand(claim, link)}`,
    ),
  );
  const secrets = findSecretMismatches(state, actual).map((trouble) =>
    problemFinding(
      'pins',
      `the network secret of ${link}`,
      printable(describeSecretMismatch(trouble)),
      `cpn set ${link} --network-secret-file PATH, here or there`,
    ),
  );
  const found = [...claims, ...secrets];
  return found.length > 0 ? found : [okFinding('pins', looked, 'are as pinned')];
}

function examineKey(state: Evaluation['state']): Finding[] {
  const looked = `the key of ${state.interface}`;
  const pending = describeRotation(state);
  if (pending !== null) return [noteFinding('key', looked, pending, `cpn reconcile ${state.interface}`)];
  return [okFinding('key', looked, `is in use since ${state.keySince}; no change of it is under way`)];
}
