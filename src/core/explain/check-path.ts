import { describeAge, describeDuration } from '../health/peer-health.ts';
import type { Peer } from '../map/model.ts';
import type { PathEnd } from '../paths/direct-paths.ts';
import { allowsPaths, describeNat, type NatLook } from '../paths/nat-look.ts';
import { type AttemptRecord, recordOf, type TriedRecord } from '../paths/path-record.ts';
import { isHidden } from '../routing/topology/via-connectors.ts';
import { type Check, passes } from './check.ts';
import { findWantedOwner, type NetworkOnHost } from './view.ts';

/**
 * Describes the path to a peer to which a direct path may exist, and the latest attempt at one.
 * Empty for other peers. Packets pass over either path.
 */
export function checkPath(peer: Peer, view: NetworkOnHost, now: number): Check[] {
  const { desired, directPaths, paths } = view;
  const owner = findWantedOwner(peer.address, view);
  if (owner === null) return [];
  const path = owner.publicKey === peer.publicKey ? 'direct' : 'relayed';
  if (!directPaths) return isHidden(peer) && path === 'relayed' ? [passes('path', turnedOff)] : [];
  if (!desired.triable.has(peer.publicKey)) return [];
  const { switched = null, attempt = null } = recordOf(paths, peer.id) ?? {};
  const since = switched?.to === path ? ` for ${describeDuration(secondsSince(switched.at, now))}` : '';
  const end = switched?.why == null ? `as ${peer.name} left the direct path` : ends[switched.why];
  const why = path === 'relayed' && switched?.to === path ? `, ${end}` : '';
  const latest = attempt === null ? 'no attempt at a direct path yet' : describeAttempt(peer.name, attempt, now);
  return [passes('path', `${path}${since}${why}; ${latest}`)];
}

const turnedOff = 'relayed: direct paths are off on this host; turn them on by: cpn set --direct-paths';
const handshakeAlone =
  'UDP passes: large packets may not, or a firewall of a host drops echoes from the tunnel, ICMPv6 in fe80::/64 or ICMP';
const unexplained =
  'these NATs allow a path: look for a firewall that drops UDP, and for a router that accepts new packets from outside';

function describeAttempt(name: string, { at, outcome, tried, nats }: AttemptRecord, now: number): string {
  const age = `attempt ${describeAge(secondsSince(at, now))}`;
  if (outcome === 'no-endpoints')
    return `${age}: no connector with a public endpoint observes both hosts, or not for long enough yet (minutes, behind a proxy)`;
  if (outcome === 'declined') return `${age}: direct paths are off on ${name}`;
  const candidates = tried.length === 0 ? 'no candidate' : tried.map(describeTried).join(', ');
  const result =
    outcome === 'blocked'
      ? 'no direct path is possible between these NATs'
      : `${age}, ${outcome === 'proven' ? 'a path was found' : 'no path was found'}: ${candidates}`;
  const both = `this host: ${describeNat(nats.own)}; ${name}: ${describeNat(nats.peer)}`;
  return [result, both, ...(outcome === 'failed' ? findReasons(tried, [nats.own, nats.peer]) : [])].join('; ');
}

/** Reasons of a failure other than the NATs. */
function findReasons(tried: readonly TriedRecord[], looks: readonly NatLook[]): string[] {
  if (tried.some((each) => each.outcome === 'handshake')) return [handshakeAlone];
  return looks.every(allowsPaths) ? [unexplained] : [];
}

const ends: Readonly<Record<PathEnd, string>> = {
  idle: 'as the direct path was not used for 5 min',
  lost: 'as the direct path stopped answering',
  moved: 'as this host moved',
  removed: 'as a command or another program removed the direct path',
};

const outcomes: Readonly<Record<TriedRecord['outcome'], string>> = {
  reached: 'reached',
  'no-answer': 'no answer',
  handshake: 'a handshake, but no answer to probes',
  refused: 'not tried',
};

function describeTried({ endpoint, outcome }: TriedRecord): string {
  return `${endpoint} ${outcomes[outcome]}`;
}

function secondsSince(at: string, now: number): number {
  return now - Date.parse(at) / 1000;
}
