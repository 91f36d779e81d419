import type { Change } from '../core/change.ts';
import type { RouteReport } from '../core/desired.ts';
import { formatEndpoint } from '../core/endpoint.ts';
import { CpnError } from '../core/errors.ts';
import { judgePeer, type PeerState } from '../core/health.ts';
import type { PeerId } from '../core/model.ts';
import type { Joined } from '../store/state.ts';
import type { Sync } from '../store/store.ts';
import { selectJoined } from './select.ts';
import { type Survey, survey } from './survey.ts';
import { secondsNow, type Tools } from './tools.ts';

/** What `cpn status` tells of one network; its JSON follows these names closely. */
export interface NetworkStatus {
  readonly network: { readonly id: number; readonly name: string };
  readonly interface: string;
  readonly state: 'up' | 'degraded' | 'down';
  readonly address: string;
  readonly publicKey: string;
  readonly listenPort: number | null;
  readonly mtu: number | null;
  readonly peers: readonly PeerStatus[];
  readonly routes: readonly RouteStatus[];
  readonly drift: readonly Change[];
  readonly sync: { readonly mode: 'poll' | 'local' } & Sync;
  /** What kept the network from being looked at. */
  readonly failure: CpnError | null;
}

export interface PeerStatus {
  readonly id: PeerId;
  readonly name: string;
  readonly type: string;
  readonly publicKey: string;
  readonly address: string;
  readonly endpoint: string | null;
  readonly allowedIps: readonly string[];
  readonly state: PeerState;
  /** Seconds since the epoch. */
  readonly latestHandshake: number | null;
  readonly rxBytes: number;
  readonly txBytes: number;
}

export interface RouteStatus {
  readonly prefix: string;
  readonly via: string | null;
  readonly state: 'active' | 'standby' | 'refused' | 'missing';
  readonly reason: string | null;
}

/** Looks at the networks of this host; asks no control plane and changes nothing. */
export async function readStatus(tools: Tools, network?: string): Promise<NetworkStatus[]> {
  const states = await selectJoined(tools, network);
  return Promise.all(states.map((state) => readNetwork(tools, state)));
}

async function readNetwork(tools: Tools, state: Joined): Promise<NetworkStatus> {
  const sync = await tools.store.readSync(state.interface);
  try {
    return describeSurvey(await survey(tools, state), sync, secondsNow(tools));
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    return { ...describeState(state, sync), state: 'degraded', failure: error };
  }
}

function describeState(state: Joined, sync: Sync): NetworkStatus {
  const { map, peer, accessToken } = state.membership;
  return {
    network: { id: map.id, name: map.name },
    interface: state.interface,
    state: 'down',
    address: peer.address,
    publicKey: state.keyPair.publicKey,
    listenPort: null,
    mtu: null,
    peers: [],
    routes: [],
    drift: [],
    sync: { mode: accessToken === null ? 'local' : 'poll', ...sync },
    failure: null,
  };
}

function describeSurvey({ state, desired, actual, changes }: Survey, sync: Sync, now: number): NetworkStatus {
  const peers = describePeers({ state, desired, actual }, now);
  // A network that was taken down is as it should be.
  const drift = state.enabled ? changes : [];
  const routes = desired.report.map((route) => describeRoute(route, actual));
  const troubled =
    drift.length > 0 ||
    peers.some((peer) => peer.state === 'stale') ||
    routes.some((route) => route.state === 'missing');
  return {
    ...describeState(state, sync),
    state: actual.link === null ? 'down' : troubled ? 'degraded' : 'up',
    listenPort: actual.device?.listenPort ?? null,
    mtu: actual.link?.mtu ?? null,
    peers,
    routes,
    drift,
  };
}

function describePeers(
  { state, desired, actual }: Pick<Survey, 'state' | 'desired' | 'actual'>,
  now: number,
): PeerStatus[] {
  const wanted = new Map(desired.config.peers.map((peer) => [peer.publicKey, peer]));
  const present = new Map(actual.device?.peers.map((peer) => [peer.publicKey, peer]));
  return state.membership.map.peers
    .filter((peer) => peer.publicKey !== state.keyPair.publicKey)
    .map((peer) => {
      const seen = present.get(peer.publicKey);
      const endpoint = seen?.endpoint ?? peer.endpoint;
      return {
        id: peer.id,
        name: peer.name,
        type: peer.type,
        publicKey: peer.publicKey,
        address: peer.address,
        endpoint: endpoint && formatEndpoint(endpoint),
        allowedIps: wanted.get(peer.publicKey)?.allowedIps ?? [],
        state: seen === undefined ? 'never' : judgePeer(seen, now),
        latestHandshake: seen?.latestHandshake ?? null,
        rxBytes: seen?.rxBytes ?? 0,
        txBytes: seen?.txBytes ?? 0,
      };
    });
}

function describeRoute({ prefix, via, state, reason }: RouteReport, actual: Survey['actual']): RouteStatus {
  if (state === 'served') return { prefix, via: null, state: 'active', reason: 'served by this host' };
  if (state !== 'taken') return { prefix, via, state, reason };
  const present = actual.routes.some((route) => route.prefix === prefix);
  return present
    ? { prefix, via, state: 'active', reason: null }
    : { prefix, via, state: 'missing', reason: 'not on the host' };
}
