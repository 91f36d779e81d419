import { CannotMove, Refused } from '../../core/errors/index.ts';
import type { Feature } from '../../core/map/features.ts';
import { emptiesTunnel, movesRange } from '../../core/map/map-validation.ts';
import type { NetworkMap } from '../../core/map/model.ts';
import { findOwnPeer, ownKeys } from '../../core/map/own-peer.ts';
import { proxyOf } from '../../core/net/proxy.ts';
import type { ServiceAddress } from '../../core/net/service-address.ts';
import { type Change, updated } from '../../core/reconcile/change.ts';
import { dropsMost } from '../../core/reconcile/mesh-loss.ts';
import { nameAuthorities, readAuthorities } from '../../core/tls/authority-file.ts';
import type { Joined } from '../../store/state/state.ts';
import { accessOf } from '../access.ts';
import { applyUpdate } from '../reconcile/state-update.ts';
import { readFeatures } from '../service-features.ts';
import type { Tools } from '../tools.ts';

interface FoundNetwork {
  readonly service: ServiceAddress;
  readonly features: readonly Feature[] | null;
  readonly map: NetworkMap;
}

/** Milliseconds for the map. */
const deadline = 15_000;

/**
 * Requests a network of this host from a control plane at another address. It is the same network
 * if its map lists this host with its public key and its address.
 *
 * The token goes only to an address that the user names: https with a trusted certificate,
 * loopback, or plain http if allowed; redirects are not followed. With the token, a service at the
 * new address can act as this peer at the former one.
 *
 * @throws CannotMove if it is not the same network
 * @throws Refused if the token is unknown there
 */
export async function findNetworkAt(tools: Tools, state: Joined, service: ServiceAddress): Promise<FoundNetwork> {
  const { interface: link, membership } = state;
  const access = accessOf(state);
  if (access === null) {
    throw new CannotMove(link, service.url, 'requires a token, and this host has none', joinAgain);
  }
  tools.progress(`reading from ${service.url} network ${membership.map.name}`);
  const features = await readFeatures(tools, { service, features: null });
  const sent = describeSent(state, service);
  const client = await tools.connect({ service, features }, { deadlineMs: deadline, attempts: 3 });
  const { map } = await client.readMap(access.network, access.token, null).catch((error: unknown) => {
    // A 403 comes from a control plane that recognizes this host, with its reason.
    if (!(error instanceof Refused) || error.status === 403) throw error;
    const what = `reading network ${membership.map.name} (${access.network}) at ${service.url}`;
    const since = `if this host joined after that data was copied, "cpn leave ${link}", and join there with a new key`;
    const remedy = `nothing was changed: ${checkUrl}; ${since}; ${sent}`;
    throw new Refused(error.status, what, 'it does not list this host', remedy);
  });
  if (map === null || map.id !== membership.map.id) {
    throw new CannotMove(link, service.url, `has no network ${access.network}`, `${checkUrl}; ${sent}`);
  }
  const own = findOwnPeer(map, state);
  if (own === undefined) {
    const problem = `lists no peer with the public key of this host in network ${map.name}`;
    throw new CannotMove(link, service.url, problem, `${checkUrl}; ${sent}; ${joinAgain}`);
  }
  const { address } = membership.peer;
  if (own.address !== address) {
    const problem = `lists this host with ${own.address} in network ${map.name}, and here it has ${address}`;
    throw new CannotMove(link, service.url, problem, `${checkUrl}; ${sent}; ${joinAgain}`);
  }
  return { service, features, map };
}

/** Describes how to revoke a token that went to a service that is not its control plane. */
function describeSent({ interface: link, membership }: Joined, { url }: ServiceAddress): string {
  const voids =
    membership.accessToken === null
      ? 'revoke it with "cpn token revoke"'
      : `to revoke it, "cpn leave ${link}" and join again, or ask an admin to remove the peer`;
  return `the token of this host was sent to ${url}: if you do not trust that URL, ${voids}`;
}

const checkUrl = 'check that the URL is that of the same control plane, with its data';
const joinAgain = 'to join the network there again, "cpn leave" it and join with a new key';

/**
 * Returns the state with its control plane at another address, and with the map from there. A map
 * without most of the peers, or with another range, is left to the next requests, which accept it
 * once it is sent twice. Revisions of the former address do not apply at the new one.
 */
export function withMove(state: Joined, { service, features, map: received }: FoundNetwork): Joined {
  const { membership } = state;
  const { map: known } = membership;
  const moved: Joined = {
    ...state,
    ...{ service, features, refused: null },
    membership: { ...membership, map: { ...known, revision: null } },
  };
  const own = ownKeys(state);
  if (emptiesTunnel(known, received, own) || dropsMost(known, received, own) || movesRange(known, received))
    return moved;
  return applyUpdate(moved, { map: received, resolved: null });
}

/** The changes of address, proxy, CAs and listening user, as a report lists them. */
export function describeMove(
  { interface: link, service: before }: Joined,
  { service: after }: Joined,
): readonly Change[] {
  const reason = 'its map lists this host with its key and address';
  const moved = before.url === after.url ? [] : [updated('api', link, before.url, after.url, reason)];
  const [from, to] = [describeProxy(before), describeProxy(after)];
  const proxied = from === to ? [] : [updated('api', link, { proxy: from }, { proxy: to }, reason)];
  return [...moved, ...proxied, ...describeAuthorities(link, before, after), ...describeListener(link, before, after)];
}

function describeAuthorities(link: string, before: ServiceAddress, after: ServiceAddress): readonly Change[] {
  const pem = ({ authorities }: ServiceAddress) => authorities?.join('') ?? '';
  if (pem(before) === pem(after)) return [];
  const [from, to] = [nameCas(before), nameCas(after)];
  return [updated('api', link, { CAs: from }, { CAs: to }, 'they issued the certificate of the control plane')];
}

function nameCas({ authorities }: ServiceAddress): string {
  return authorities === undefined ? 'those of this machine' : nameAuthorities(readAuthorities(authorities));
}

/** A new address implies a new user, so only the same address counts. */
function describeListener(link: string, before: ServiceAddress, after: ServiceAddress): readonly Change[] {
  if (before.url !== after.url || before.listener === after.listener) return [];
  const [from, to] = [before.listener ?? 'none', after.listener ?? 'none'];
  return [updated('api', link, { 'listening user': from }, { 'listening user': to }, 'this command confirms it')];
}

function describeProxy(service: ServiceAddress): string {
  return proxyOf(service)?.url ?? 'none';
}
