import type { Event, EventType } from '../../contract/event.ts';
import type { PathEnd } from '../../contract/paths.ts';

export const eventTypes: Readonly<Record<EventType, string>> = {
  'peer.enrolled': 'peer enrolled',
  'peer.awaiting_approval': 'peer awaits approval',
  'peer.removed': 'peer removed',
  'peer.online': 'peer online',
  'peer.offline': 'peer offline',
  'peer.cloned': 'peer cloned',
  'route.failed_over': 'failover',
  'route.dead': 'route dead',
  'route.restored': 'route restored',
  'relay.changed': 'relay changed',
  'key.rotated': 'key rotated',
  'pin.mismatch': 'key or address refused',
  'reconcile.failing': 'reconcile failing',
  'reconcile.recovered': 'reconcile recovered',
  'network.updated': 'network changed',
  'network.deleted': 'network deleted',
  'rules.changed': 'rules changed',
  'rules.restored': 'earlier rules restored',
  'access.refused': 'connection refused',
  'path.changed': 'path changed',
};

export function describeEvent({
  type,
  peer,
  route,
  details,
}: Pick<Event, 'type' | 'peer' | 'route' | 'details'>): string {
  const who = peer?.name ?? 'a peer';
  const why = textOf(details.why);
  const because = why === null ? '' : `: ${why}`;
  const [from, to] = [nameOf(details.from), nameOf(details.to)];
  switch (type) {
    case 'peer.enrolled':
      return `${who} joined`;
    case 'peer.awaiting_approval':
      return `${who} waits for approval${detail(details, 'fingerprint')}`;
    case 'peer.removed':
      return `${who} left${detail(details, 'reason')}`;
    case 'peer.online':
      return `${who} is online${because}`;
    case 'peer.offline':
      return `${who} is offline${because}${listDialling(details)}`;
    case 'peer.cloned':
      return `${who} is on two hosts${detail({ addresses: [details.addresses].flat().join(' and ') }, 'addresses')}`;
    case 'route.failed_over':
      return `${route} moved from ${from ?? 'no connector'} to ${to ?? 'no connector'}${because}`;
    case 'route.dead':
      return `${route} is dead${because}${from === null ? '' : `; ${from} served it`}`;
    case 'route.restored':
      return `${route} is served again${to === null ? '' : ` by ${to}`}`;
    case 'relay.changed':
      return to === null ? `the network has no relay${because}` : `${to} relays${because}`;
    case 'key.rotated':
      return `${who} has a new key`;
    case 'pin.mismatch':
      return `${nameOf(details.reported_by) ?? 'a host'} refuses the changed key or address of ${who}`;
    case 'reconcile.failing':
      return `${who} fails to reconcile${detail(details, 'problem')}`;
    case 'reconcile.recovered':
      return `${who} reconciles again`;
    case 'network.updated':
      return `the network changed${listFields(details)}`;
    case 'network.deleted':
      return 'the network was deleted';
    case 'rules.changed':
      return `the rules of the network changed${listRules(details)}`;
    case 'rules.restored':
      return `the earlier rules of the network returned, without a confirmation${listRules(details)}`;
    case 'access.refused':
      return `${who} refused a connection${describeConnection(details)}`;
    case 'path.changed':
      return `${who} and ${nameOf(details.with) ?? 'another peer'} ${describePath(details)}`;
    // A later version may have more types.
    default:
      return [type, peer?.name, route].filter(Boolean).join(' ');
  }
}

/** Lists the peers that have no connector other than the offline one. */
function listDialling({ only_connector_of: peers }: Event['details']): string {
  const names = Array.isArray(peers) ? peers.flatMap((peer) => nameOf(peer) ?? []) : [];
  return names.length === 0 ? '' : `; it is the only connector of ${names.join(', ')}`;
}

/** The mode of a network, and how much a change of its rules gives and takes. */
function listRules({ mode, rules, gained, lost }: Event['details']): string {
  const counts = Object.entries({ rules, gained, lost }).filter(([, count]) => typeof count === 'number');
  const parts = [...(textOf(mode) === null ? [] : [`it is ${mode}`]), ...counts.map((pair) => pair.join(': '))];
  return parts.length === 0 ? '' : `; ${parts.join(', ')}`;
}

/** The ends of a refused connection: peers, and addresses of other hosts. */
function describeConnection({ from, to, protocol, port }: Event['details']): string {
  const [sender, receiver] = [from, to].map((end) => nameOf(end) ?? textOf(end));
  const service = [textOf(protocol), typeof port === 'number' ? `${port}` : null].filter((part) => part !== null);
  return sender && receiver ? `: ${sender} → ${[receiver, ...service].join(' ')}` : '';
}

/** How the two peers of a pair reach each other from now on. */
function describePath({ path, via, why }: Event['details']): string {
  if (path === 'direct') return 'have a direct path';
  const reason = Object.entries(pathEnds).find(([end]) => end === why)?.[1];
  return `are relayed${nameOf(via) === null ? '' : ` by ${nameOf(via)}`}${reason === undefined ? '' : `: ${reason}`}`;
}

/** Why a direct path ended. */
export const pathEnds: Readonly<Record<PathEnd, string>> = {
  idle: 'they exchanged no packets',
  lost: 'one got no answer from the other',
  moved: 'the addresses of one changed, or it ended the path',
};

const textOf = (value: unknown) => (typeof value === 'string' && value !== '' ? value : null);

/** The name of a peer in the details of an event, or its number without a name. */
export function nameOf(value: unknown): string | null {
  if (typeof value !== 'object' || value === null) return null;
  const { id, name } = value as { id?: unknown; name?: unknown };
  return textOf(name) ?? (typeof id === 'number' ? `peer ${id}` : null);
}

function detail(details: Event['details'], field: string): string {
  const text = textOf(details[field]);
  return text === null ? '' : `: ${text}`;
}

function listFields(details: Event['details']): string {
  const fields = Object.keys(details);
  return fields.length === 0 ? '' : `: ${fields.map((field) => field.replaceAll('_', ' ')).join(', ')}`;
}

/** The details of an event or an audit entry, such as `network: 1; routes: 10.1.0.0/16`. */
export function describeDetails(details: Readonly<Record<string, unknown>>): string {
  return Object.entries(details)
    .map(([field, value]) => `${field.replaceAll('_', ' ')}: ${describeValue(value)}`)
    .join('; ');
}

function describeValue(value: unknown): string {
  if (value === null || value === '') return 'none';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  // Quotes a text that could be mistaken for another field.
  if (typeof value === 'string') return /[;"]/.test(value) ? JSON.stringify(value) : value;
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.map(describeValue).join(', ');
  return typeof value === 'object' ? describeThing(value) : String(value);
}

/** A peer by its name and id, and any other object by its fields. */
function describeThing({ id, name, ...fields }: { readonly id?: unknown; readonly name?: unknown }): string {
  const others = Object.entries(fields).map(
    ([field, value]) => `${field.replaceAll('_', ' ')} ${describeValue(value)}`,
  );
  return [name, id == null ? null : `(${id})`, ...others].filter((part) => part != null).join(' ');
}
