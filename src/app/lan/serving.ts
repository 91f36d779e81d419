import { findExpiry } from '../../core/map/expiry.ts';
import { findMapEnd } from '../../core/map/map-age.ts';
import { withoutRemoved } from '../../core/map/map-validation.ts';
import { findOwnPeer } from '../../core/map/own-peer.ts';
import type { Prefix } from '../../core/net/cidr.ts';
import { judgeService, type Service } from '../../core/routing/topology/in-service.ts';
import { assignedRoutes } from '../../core/routing/topology/route-owner.ts';
import type { Notes } from '../../store/store.ts';
import type { Evaluation } from '../reconcile/evaluate-network.ts';
import { withdrawnBy } from './withdraw.ts';

export interface JudgedRoute {
  readonly route: Prefix;
  readonly service: Service;
}

/** Judges each route that this host is assigned to serve, by the map and by what it observed. */
export function judgeRoutes({ state, expired }: Pick<Evaluation, 'state' | 'expired'>): JudgedRoute[] {
  const map = withoutRemoved(state.membership.map, expired);
  const self = findOwnPeer(map, state);
  if (self?.type !== 'connector') return [];
  const judge = judgeService({ map, self, failed: state.failed });
  return assignedRoutes(map, self).map((route) => ({ route, service: judge(route) }));
}

/** Whether this host is in service for one of its routes. */
export interface Serving {
  readonly route: Prefix;
  /** Null if it is in service. */
  readonly standby: string | null;
}

/** Judges each route of this host by everything that stops it from serving. Empty for others. */
export function findServing(evaluation: Evaluation, notes: Pick<Notes, 'dead' | 'ways' | 'unloaded'>): Serving[] {
  const stopped = findStop(evaluation, notes);
  const withdrawn = withdrawnBy(evaluation.state, notes);
  const { report } = evaluation.desired;
  const isRecovering = evaluation.state.failed.some(({ peer }) => peer === evaluation.state.membership.peer.id);
  return judgeRoutes(evaluation).map(({ route, service }) => {
    if (stopped !== null) return { route, standby: stopped };
    if (withdrawn.includes(route)) return { route, standby: 'the LAN behind it does not answer' };
    const refused = report.find(({ prefix, state }) => prefix === route && state === 'refused');
    if (refused !== undefined) return { route, standby: `this host refuses it: it ${refused.reason}` };
    return { route, standby: explain(service, isRecovering) };
  });
}

/** Why the host serves no route at all; null if nothing stops it. */
function findStop({ state, actual, serviceTime }: Evaluation, { unloaded }: Pick<Notes, 'unloaded'>): string | null {
  const { interface: link } = state;
  const mapEnd = findMapEnd(state);
  const expiresAt = findExpiry(state);
  if (!state.enabled || actual.device === null || actual.link?.up === false) return `the tunnel ${link} is down`;
  if (mapEnd !== null && mapEnd <= serviceTime) return 'the control plane has not confirmed the map for too long';
  if (expiresAt !== undefined && expiresAt <= serviceTime) return 'this host has expired';
  if (state.drained) return 'this host is drained';
  return unloaded === null ? null : 'the packet rules of this host do not load';
}

function explain(service: Service, isRecovering: boolean): string | null {
  if (service.is === 'in service') return null;
  if (service.is === 'unassigned') return 'this host does not serve it';
  if (service.is === 'withdrawn') return 'it is out of service at this host';
  if (service.is === 'cut off') return 'no packet of any peer arrives';
  const reason = isRecovering ? '; this host answers again, but is not trusted yet' : '';
  return `standby: ${service.others[0]?.name} is in service${reason}`;
}
