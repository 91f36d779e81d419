import type { Change } from '../core/change.ts';
import type { SecretMatch } from '../core/compare-secrets.ts';
import { CpnError } from '../core/errors.ts';
import type { PeerState } from '../core/health.ts';
import type { Id, PeerId } from '../core/model.ts';
import type { Joined } from '../store/state.ts';
import type { Notes, Sync } from '../store/store.ts';
import { accessOf, explainLocal } from './access.ts';
import { describeLan } from './describe-lan.ts';
import { describeSurvey } from './describe-survey.ts';
import { findDrops } from './forward-drops.ts';
import { selectJoined } from './select.ts';
import { type Survey, survey } from './survey.ts';
import { secondsNow, type Tools } from './tools.ts';

/** What `cpn status` tells of one network; its JSON follows these names closely. */
export interface NetworkStatus {
  /** Null, like `address`, `publicKey` and `keySince`, where the network's state cannot be read. */
  readonly network: { readonly id: Id | null; readonly name: string } | null;
  readonly interface: string;
  readonly state: 'up' | 'degraded' | 'down';
  readonly address: string | null;
  readonly publicKey: string | null;
  /** ISO 8601; when that key was made. */
  readonly keySince: string | null;
  readonly listenPort: number | null;
  readonly mtu: number | null;
  /** Where the MTU follows from a measurement: the peer to which no larger packet passes, and when that was, in ISO 8601. */
  readonly pathMtu: { readonly peer: string; readonly measuredAt: string } | null;
  readonly peers: readonly PeerStatus[];
  readonly routes: readonly RouteStatus[];
  readonly drift: readonly Change[];
  readonly sync: Omit<Sync, 'mode'> & { readonly mode: Sync['mode'] | 'local' };
  /** What a person should know, and look into. */
  readonly warnings: readonly string[];
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
  /** Why its endpoint is not used; null where it is, or there is none. */
  readonly endpointRefused: string | null;
  readonly allowedIps: readonly string[];
  readonly state: PeerState;
  /** Seconds since the epoch. */
  readonly latestHandshake: number | null;
  readonly rxBytes: number;
  readonly txBytes: number;
  /** Whether it is the peer that this host knows; `changed` and `held` until somebody accepts what is claimed. */
  readonly pin: 'ok' | 'changed' | 'held';
  /** What the service says of it otherwise, in words, and the key in it; null where it says nothing else. */
  readonly claim: string | null;
  readonly claimedPublicKey: string | null;
  /** How its network secret compares with this host's; null where neither has one. */
  readonly secret: SecretMatch | null;
}

export interface RouteStatus {
  readonly prefix: string;
  readonly via: string | null;
  readonly state: 'active' | 'standby' | 'refused' | 'missing';
  readonly reason: string | null;
  /** What to do where it is refused; null where nothing on this host helps. */
  readonly remedy: string | null;
}

/** Looks at the networks of this host; asks no control plane and changes nothing. One that cannot be read hides no other. */
export async function readStatus(tools: Tools, network?: string): Promise<NetworkStatus[]> {
  const { states, unreadable } = await selectJoined(tools, network);
  const read = await Promise.all(states.map((state) => readNetwork(tools, state)));
  return [...read, ...unreadable.map(describeUnreadable)].toSorted((a, b) => (a.interface < b.interface ? -1 : 1));
}

async function readNetwork(tools: Tools, state: Joined): Promise<NetworkStatus> {
  const notes = await tools.store.readNotes(state.interface);
  const known = describeState(state, notes);
  try {
    const seen = await survey(tools, state);
    const described = describeSurvey(seen, notes, secondsNow(tools));
    const local = explainLocal(state);
    const told = local === null ? described : { ...described, warnings: [...described.warnings, local] };
    const drops = told.state === 'down' ? [] : await describeDrops(tools, seen);
    if (drops.length === 0) return { ...known, ...told };
    return { ...known, ...told, state: 'degraded', warnings: [...told.warnings, ...drops] };
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    return { ...known, state: 'degraded', warnings: [...describeLan(state, notes), ...notes.troubles], failure: error };
  }
}

/** Also says where nobody can tell, which is no reason to tell nothing else. */
async function describeDrops(tools: Tools, seen: Survey): Promise<readonly string[]> {
  try {
    return await findDrops(tools, seen);
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    return [`whether packets to be forwarded are dropped cannot be told: ${error.message}`];
  }
}

function describeState(state: Joined, { sync }: Notes): NetworkStatus {
  const { membership, interface: link, keyPair, keySince } = state;
  const { map, peer } = membership;
  return {
    ...unknown,
    network: { id: map.id, name: map.name },
    interface: link,
    address: peer.address,
    publicKey: keyPair.publicKey,
    keySince,
    sync: accessOf(state) === null ? { ...sync, mode: 'local' } : sync,
  };
}

function describeUnreadable({ interface: link, error }: { interface: string; error: CpnError }): NetworkStatus {
  return { ...unknown, interface: link, failure: error };
}

/** A network of which nothing is known. */
const unknown = {
  network: null,
  state: 'degraded',
  address: null,
  publicKey: null,
  keySince: null,
  listenPort: null,
  mtu: null,
  pathMtu: null,
  peers: [],
  routes: [],
  drift: [],
  sync: { mode: 'local', lastSuccess: null, error: null, refused: null },
  warnings: [],
  failure: null,
} as const satisfies Omit<NetworkStatus, 'interface'>;
