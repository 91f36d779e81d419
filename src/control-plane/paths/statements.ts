import type { ObservedEndpoint } from '../../contract/paths.ts';
import { formatEndpoint, tryParseSocket } from '../../core/net/endpoint.ts';
import type { StatedEndpoints } from '../../core/paths/candidates.ts';
import {
  findSocketsOfOthers,
  listEndpointsOf,
  type StoredEndpoints,
  saveEndpoints,
} from '../store/peers/peer-endpoints.ts';
import type { Db } from '../store/tables.ts';
import { attemptMs } from './pair.ts';

/** How long it holds what connectors observed. */
const observedMs = 10 * 60_000;

const ago = (now: number, ms: number) => new Date(now - ms).toISOString();

interface Place {
  readonly network: number;
  readonly now: number;
}

/** Stores a host's own endpoints. True if they, or its source address, changed. */
export async function saveOwn(
  db: Db,
  peer: number,
  candidates: readonly string[],
  address: string,
  { network, now }: Place,
): Promise<boolean> {
  // In the order of the host, which has those of its uplinks first.
  const own = JSON.stringify(candidates.flatMap(toSocket));
  const [before] = (await listEndpointsOf(db, [peer], '')).filter(({ source }) => source === peer);
  const fields = { network_id: network, endpoint: null, stood: 0, own, address, at: ago(now, 0) };
  await saveEndpoints(db, { peer_id: peer, source: peer, ...fields });
  return before !== undefined && (before.own !== own || before.address !== address);
}

/** Stores what a connector observes of other peers. Returns the peers whose endpoint changed. */
export async function saveObserved(
  db: Db,
  source: number,
  observed: readonly ObservedEndpoint[],
  { network, now }: Place,
): Promise<readonly number[]> {
  const usable = observed.flatMap(({ peer, endpoint, stood }) =>
    toSocket(endpoint).map((socket) => ({ peer, endpoint: socket, stood: stood ? 1 : 0 })),
  );
  if (usable.length === 0) return [];
  const rows = await listEndpointsOf(
    db,
    usable.map(({ peer }) => peer),
    '',
  );
  const before = new Map(rows.filter((row) => row.source === source).map((row) => [row.peer_id, row.endpoint]));
  const fields = { source, network_id: network, own: null, address: null, at: ago(now, 0) };
  for (const { peer, endpoint, stood } of usable)
    await saveEndpoints(db, { ...fields, peer_id: peer, endpoint, stood });
  return usable.filter(({ peer, endpoint }) => (before.get(peer) ?? endpoint) !== endpoint).map(({ peer }) => peer);
}

/** What is stated about the endpoints of a peer, and when. */
export interface Stated extends StatedEndpoints {
  readonly ownAt: number;
  /** When each connector observed the peer. */
  readonly observedAt: readonly number[];
}

/**
 * Reads what is stated about a peer for an attempt. Null if it stated no endpoints for it, nor for
 * one shortly before: then it takes no attempts.
 *
 * @param since when the attempt began. Observations since then make earlier ones void
 */
export async function readStated(
  db: Db,
  peer: number,
  { network, now, since }: Place & { readonly since: number },
): Promise<Stated | null> {
  const rows = await listEndpointsOf(db, [peer], ago(now, observedMs));
  const self = rows.find(({ source }) => source === peer);
  // The reply of a slow host comes too late for one attempt, and counts for the next.
  if (self === undefined || Date.parse(self.at) < since - attemptMs) return null;
  const own: string[] = JSON.parse(self.own ?? '[]');
  const all = rows.filter(isObservation);
  const fresh = all.filter(({ at }) => Date.parse(at) >= since);
  const seen = fresh.length > 0 ? fresh : all;
  return {
    ...{ source: self.address ?? '', own, ownAt: Date.parse(self.at) },
    observed: seen.map(({ endpoint, stood }) => ({ endpoint, stood: stood === 1 })),
    observedAt: seen.map(({ at }) => Date.parse(at)),
    claimed: new Set(await findSocketsOfOthers(db, network, peer, own)),
  };
}

function isObservation(row: StoredEndpoints): row is StoredEndpoints & { readonly endpoint: string } {
  return row.endpoint !== null;
}

/** In the canonical form; empty for a text that is no socket. */
function toSocket(text: string): string[] {
  const socket = tryParseSocket(text);
  return socket === null ? [] : [formatEndpoint(socket)];
}
