import type { PeerMessage, PeerMessageKind } from '../../contract/network.ts';
import type { EndpointKind, NatKind } from '../../contract/paths.ts';
import { formatEndpoint, tryParseSocket, unusableAddress } from '../../core/net/endpoint.ts';
import { aliases } from '../aliases.ts';
import type { Reply } from '../http/attempt.ts';
import type { MessageBatch } from '../service.ts';
import { Field } from './field.ts';

/** True for a 226 without changes, which comes for its messages alone. */
export function isUnchanged({ body, reading }: Reply): boolean {
  const network = Field.ofReply(body, reading).as('network');
  return [aliases.network.peers, aliases.network.removed].every((field) => {
    const value = network.find(field)?.value;
    return Array.isArray(value) && value.length === 0;
  });
}

/** The messages in a 226. Null for none. */
export function decodeMessages({ body, reading }: Reply): MessageBatch | null {
  const network = Field.ofReply(body, reading).as('network');
  const messages = readMessages(network.find(aliases.network.messages)?.value);
  const given = network.find(aliases.network.receipt)?.value;
  const receipt = typeof given === 'string' && /^[\w.-]{1,128}$/.test(given) ? given : null;
  return messages.length > 0 || receipt !== null ? { messages, receipt } : null;
}

/** The kinds of messages about direct paths. */
const pathKinds = ['observe', 'candidates', 'try', 'switch', 'return'] as const;

/** The kinds that a host takes, with those about direct paths or without. */
export function messageKinds(withPaths: boolean): readonly PeerMessageKind[] {
  return ['probe', ...(withPaths ? pathKinds : [])];
}

/** Copies of the contract's limits, whose schemas are slow to load. */
const mostMessages = 8;
const mostNamed = 32;
const mostCandidates = 8;
const longestDelayMs = 10_000;
const endpointKinds = ['lan', 'ipv6', 'observed'] as const satisfies readonly EndpointKind[];
const natKinds = ['steady', 'symmetric', 'unknown'] as const satisfies readonly NatKind[];

/** Leaves out messages of another kind or form: they are for a later version. */
export function readMessages(given: unknown): readonly PeerMessage[] {
  if (!Array.isArray(given)) return [];
  return given.slice(0, mostMessages).flatMap((each) => readMessage(each) ?? []);
}

function readMessage(given: unknown): PeerMessage | null {
  const { kind, data } = asRecord(given);
  const fields = asRecord(data);
  if (kind === 'probe' || kind === 'observe' || kind === 'candidates') {
    const named = Array.isArray(fields.peers) ? fields.peers.slice(0, mostNamed).filter(isPositive) : [];
    return named.length === 0 ? null : { kind, data: { peers: [...new Set(named)] } };
  }
  const { peer, attempt } = fields;
  if (!isPositive(peer)) return null;
  if (kind === 'return') return { kind, data: { peer } };
  if (!isPositive(attempt)) return null;
  if (kind === 'switch') {
    const { switch_in_ms } = fields;
    return isDelay(switch_in_ms) ? { kind, data: { peer, attempt, switch_in_ms } } : null;
  }
  if (kind !== 'try') return null;
  const { start_in_ms, first } = fields;
  const endpoints = readEndpoints(fields.endpoints);
  const isBlocked = Array.isArray(fields.endpoints) && fields.endpoints.length === 0;
  if (!isDelay(start_in_ms) || typeof first !== 'boolean' || (endpoints.length === 0 && !isBlocked)) return null;
  const observed = readEndpoints(fields.observed);
  const nats = readNats(fields.nats);
  const kinds = readKinds(fields.kinds);
  const facts = { ...(observed.length > 0 && { observed }), ...(nats && { nats }), ...(kinds && { kinds }) };
  return { kind, data: { peer, attempt, endpoints, ...facts, start_in_ms, first } };
}

/** Kinds of a later contract are left out: hosts have no time for these. */
function readKinds(given: unknown): EndpointKind[] | null {
  return Array.isArray(given) ? endpointKinds.filter((kind) => given.includes(kind)) : null;
}

function readNats(given: unknown): { own: NatKind; peer: NatKind } | null {
  const [own, peer] = [asRecord(given).own, asRecord(given).peer].map((each) => natKinds.find((kind) => kind === each));
  return own && peer ? { own, peer } : null;
}

/** Only sockets at which another host can listen: a name would need a resolver. */
function readEndpoints(given: unknown): string[] {
  if (!Array.isArray(given)) return [];
  const sockets = given.slice(0, mostCandidates).flatMap((each) => {
    const endpoint = typeof each === 'string' ? tryParseSocket(each) : null;
    return endpoint === null || unusableAddress(endpoint.host) !== null ? [] : [formatEndpoint(endpoint)];
  });
  return [...new Set(sockets)];
}

function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function isPositive(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

function isDelay(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= longestDelayMs;
}
