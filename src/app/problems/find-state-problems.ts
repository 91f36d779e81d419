import { isLoaded } from '../../core/forward/own-table.ts';
import { findMapAge } from '../../core/map/map-age.ts';
import { findOwnPeer } from '../../core/map/own-peer.ts';
import { findPortMismatch, formatEndpoint } from '../../core/net/endpoint.ts';
import { withoutNft } from '../../core/problems/access-entries.ts';
import { type Problem, problem } from '../../core/problems/problem.ts';
import { assignedRoutes } from '../../core/routing/topology/route-owner.ts';
import { listDialling } from '../../core/routing/topology/via-connectors.ts';
import { areExcessive } from '../../core/rules/resolve.ts';
import type { Joined } from '../../store/state/state.ts';
import type { Notes } from '../../store/store.ts';
import { describeUnlisted, findNoAccess } from '../access.ts';
import { findDeletion } from '../reconcile/deleted-network.ts';
import type { Evaluation } from '../reconcile/evaluate-network.ts';
import { findPortConflict, type PortConflict } from '../reconcile/port-conflict.ts';
import type { HostTools } from '../tools.ts';
import { findApprovalProblem, findClones, findExpiryProblem } from './find-problems.ts';

/** Facts of the host that an evaluation lacks. */
export interface HostFacts {
  readonly portConflict?: PortConflict | null;
  readonly configPath?: string;
}

export async function readHostFacts(tools: HostTools, evaluation: Evaluation): Promise<HostFacts> {
  const configPath = tools.store.configPath(evaluation.state.interface);
  return { portConflict: await findPortConflict(tools, evaluation), configPath };
}

/** @param now seconds since the epoch */
export function findStateProblems(
  evaluation: Evaluation,
  notes: Pick<Notes, 'sync' | 'alternating' | 'unloaded'>,
  now: number,
  { portConflict = null, configPath }: HostFacts,
): Problem[] {
  const { state, listed, desired, actual, changes, serviceTime } = evaluation;
  const { interface: link, membership, enabled } = state;
  const { map, peer } = membership;
  const facts = { interface: link };
  const deleted = findDeletion(state);
  const hasInterface = actual.link !== null;
  const { unread } = actual;
  const drift = enabled ? changes.length : 0;
  const age = desired.isConnector ? findMapAge(state, serviceTime) : null;
  const ageFacts = age && { ...facts, confirmed_at: age.confirmedAt };
  const rotation = findRotation(state);
  const isOpen = hasInterface && enabled && desired.firewall === null;
  const { unloaded } = notes;
  const keptFor = state.options.rotateEvery === null ? [] : listDialling(map, peer).map(({ name }) => name);
  const { holder = null, port = null } = portConflict ?? {};
  const missing = { port, holder: holder?.link ?? null, holder_network: holder?.network ?? null };
  return [
    ...(unread === undefined ? [] : [problem('host-unread', { ...facts, unread })]),
    ...(deleted === null ? [] : [deleted]),
    ...(deleted === null || hasInterface || evaluation.savedText === null
      ? []
      : [problem('config-left', { ...facts, path: configPath ?? `${link}.conf` })]),
    ...(!enabled && deleted === null && unread === undefined ? [problem('taken-down', facts)] : []),
    ...(listed ? [] : [describeUnlisted(state)]),
    ...(hasInterface ? [] : [problem('interface-missing', { ...facts, ...missing })]),
    ...findApprovalProblem(state),
    ...findExpiryProblem(state, new Date(now * 1000)),
    ...findClones(state, notes),
    ...(drift === 0 ? [] : [problem('drift', { ...facts, differences: drift })]),
    ...findOtherPort(evaluation),
    ...(age && ageFacts
      ? [age.isOver ? problem('map-expired', ageFacts) : problem('map-aging', { ...ageFacts, ends_at: age.endsAt })]
      : []),
    ...(enabled ? findUnloadedRules(evaluation, unloaded) : []),
    ...(enabled ? findAccessProblems(evaluation) : []),
    ...(isOpen
      ? [problem('address-open', { ...facts, address: peer.address, is_plain: actual.isPlain ?? false })]
      : []),
    ...(state.refused === null
      ? []
      : [problem('map-rolled-back', { ...facts, network: map.name, revision: state.refused })]),
    ...(state.drained ? [problem('drained', facts)] : []),
    ...(rotation === null ? [] : [rotation]),
    ...(keptFor.length === 0 ? [] : [problem('key-held', { ...facts, devices: keptFor })]),
  ];
}

/**
 * Packet rules that did not load. In a closed network also those that another program removed, or
 * for which there is no nft.
 *
 * @param unloaded why they did not load at the last attempt; null if they did
 */
function findUnloadedRules({ state, desired, actual }: Evaluation, unloaded: string | null): Problem[] {
  const { firewall, link, isConnector } = desired;
  const isClosed = state.membership.map.rules !== undefined;
  const isMissing = firewall === null ? isClosed && actual.isPlain !== true : !isLoaded(firewall, actual);
  if (!isMissing || (unloaded === null && (!isClosed || actual.link === null))) return [];
  const error = firewall === null ? withoutNft : unloaded;
  return [problem('rules-not-loaded', { interface: link, error, is_connector: isConnector, is_closed: isClosed })];
}

/** Rules of a closed network of which this host cannot enforce a part, or any. */
export function findAccessProblems({ state, actual }: Evaluation): Problem[] {
  const { interface: link, membership } = state;
  const { map } = membership;
  const { rules } = map;
  if (rules === undefined) return [];
  const self = findOwnPeer(map, state);
  return [
    ...(self && areExcessive({ ...map, rules }, self, assignedRoutes(map, self))
      ? [problem('access-rules-excessive', { interface: link })]
      : []),
    ...(rules.unread ? [problem('access-rules-unread', { interface: link, rules: rules.unread })] : []),
    ...(actual.isPlain ? [problem('access-rules-ignored', { interface: link })] : []),
  ];
}

function findOtherPort({ state, actual }: Evaluation): Problem[] {
  const endpoint = findOwnPeer(state.membership.map, state)?.endpoint ?? null;
  const mismatch = findPortMismatch(endpoint, actual.device?.listenPort ?? null, actual.underlay.addresses);
  if (mismatch === null) return [];
  const ports = { endpoint_port: mismatch.endpoint.port, listen_port: mismatch.bound };
  return [
    problem('port-mismatch', { interface: state.interface, endpoint: formatEndpoint(mismatch.endpoint), ...ports }),
  ];
}

/** Problems with reading from the control plane. */
export function findServiceProblems(state: Joined, { sync }: Pick<Notes, 'sync'>): Problem[] {
  const { interface: link } = state;
  const noAccess = findNoAccess(state);
  return [
    ...(noAccess === null ? [] : [noAccess]),
    ...(sync.refused === null ? [] : [problem('sync-refused', { interface: link, refused: sync.refused })]),
    ...(sync.repliesEarly ? [problem('replies-early', { interface: link })] : []),
    ...(sync.refusesDeltas ? [problem('deltas-refused', { interface: link })] : []),
  ];
}

export function findRotation({ rotation, interface: link }: Joined): Problem | null {
  return rotation && problem('key-changing', { interface: link, phase: rotation.phase });
}
