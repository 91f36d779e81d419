import { type Identity, proveKey } from '../../core/crypto/identity.ts';
import { WrongUsage } from '../../core/errors/index.ts';
import type { Feature } from '../../core/map/features.ts';
import type { Id } from '../../core/map/model.ts';
import { resolvesNames } from '../../core/map/options.ts';
import { isDefaultRoute } from '../../core/net/cidr.ts';
import { applyPins } from '../../core/pins/pins.ts';
import type { FormerMembership } from '../../store/former-networks.ts';
import type { Joined, State } from '../../store/state/state.ts';
import { listFormer } from '../networks/former-networks.ts';
import { findOwnEndpoint } from '../networks/own-endpoint.ts';
import { holderOf } from '../pins.ts';
import { deleteState } from '../reconcile/cleanup.ts';
import type { StateTools, Tools } from '../tools.ts';
import type { JoinRequest } from './join-request.ts';
import { keepOptions } from './kept-options.ts';

/** Returns the networks that the host left, and that it can rejoin as the same peer. */
export async function findRejoinable(
  tools: StateTools,
  pending: State,
  joined: readonly Id[],
): Promise<readonly FormerMembership[]> {
  const needed: readonly Feature[] = ['enroll-identity-proof', 'enroll-current-networks'];
  if (!needed.every((feature) => pending.features?.includes(feature))) return [];
  const former = await listFormer(tools);
  return former.filter(
    ({ service, identity, network }) =>
      service.url === pending.service.url && identity !== null && !joined.includes(network.id),
  );
}

/** Prepares a join as the same peer as in a left network, under its name by default; saves it. */
export async function rejoinLeft(
  tools: Pick<Tools, 'store' | 'now' | 'progress'>,
  pending: State,
  former: FormerMembership,
  { named }: JoinRequest,
): Promise<State> {
  const { identity, keySerial, network, peer } = former;
  tools.progress(`joining network ${network.name} again, which this host left as ${peer.name}`);
  const name = named.has('name') ? pending.enrollment.name : peer.name;
  const state = {
    ...pending,
    ...(identity && reuseIdentity(tools, pending, identity, keySerial)),
    enrollment: { ...pending.enrollment, name },
  };
  await tools.store.write(state);
  return state;
}

/** Prepares a join as the peer that was removed from a network. Checks the host before it saves. */
export async function rejoinRemoved(
  tools: Tools,
  pending: State,
  former: Joined,
  request: JoinRequest,
): Promise<State> {
  const { membership, interface: link } = former;
  const { name } = membership.map;
  if (request.interface !== null && request.interface !== link) {
    await deleteState(tools, pending);
    throw new WrongUsage(
      `this host was in network ${name} as ${link}; leave out --interface, or "cpn leave ${link}" first`,
    );
  }
  tools.progress(`joining network ${name} again, from which ${link} was removed`);
  const state = await withFormerMembership(tools, pending, former, request);
  const forwarding = state.enrollment.type === 'connector';
  const fullTunnel = state.options.allowRoutes.some(isDefaultRoute);
  const maps = state.options.maps.length > 0;
  await tools.host.check({ firewall: forwarding, forwarding, fullTunnel, maps });
  await tools.store.write(state);
  return state;
}

/** Takes over options that are not given now, and the identity if the service requires a proof. */
async function withFormerMembership(
  tools: Pick<Tools, 'host' | 'now'>,
  pending: State,
  former: Joined,
  { named, ...request }: JoinRequest,
): Promise<State> {
  const { enrollment } = pending;
  const before = former.enrollment;
  const endpoint = named.has('endpoint') ? await findOwnEndpoint(tools, request) : before.endpoint;
  return {
    ...pending,
    ...keepOptions(former, { named, ...request }, endpoint),
    ...(former.identity && reuseIdentity(tools, pending, former.identity, former.keySerial)),
    drained: former.drained,
    enrollment: {
      ...enrollment,
      name: named.has('name') ? request.name : before.name,
      type: named.has('type') ? request.type : before.type,
      endpoint,
    },
  };
}

/** The identity of a former membership, with a proof's serial after the last one used. */
function reuseIdentity(tools: Pick<Tools, 'now'>, pending: State, identity: Identity, serial: number) {
  if (!pending.features?.includes('enroll-identity-proof')) return {};
  const { publicKey } = pending.keyPair;
  return { identity, keySerial: proveKey(identity, publicKey, tools.now(), serial).serial };
}

/** Replaces a membership that ended on its interface; pins, labels and receipt stay. */
export async function replaceMembership(
  tools: Pick<Tools, 'store'>,
  joined: Joined,
  former: Joined,
  request: JoinRequest,
): Promise<Joined> {
  const { membership, receipt, enrollment, ownsDns: _, ...rest } = joined;
  // A service without `Current-Networks` enrolled the host before the former options were found.
  const kept = keepOptions(former, request, enrollment.endpoint);
  const made = new Set(former.receipt.map((entry) => JSON.stringify(entry)));
  const next: Joined = {
    ...{ ...rest, membership, receipt, enrollment },
    ...(former.ownsDns && { ownsDns: true }),
    ...kept,
    drained: former.drained,
    interface: former.interface,
    createdAt: former.createdAt,
    labels: resolvesNames(kept.options) ? former.labels : [],
    openPorts: former.openPorts,
    receipt: [...former.receipt, ...receipt.filter((entry) => !made.has(JSON.stringify(entry)))],
  };
  const { map, pins } = applyPins(membership.map, former.pins, holderOf(next));
  const replaced: Joined = { ...next, membership: { ...membership, map }, pins };
  await tools.store.write(replaced);
  await tools.store.forget(joined.interface, []);
  return replaced;
}
