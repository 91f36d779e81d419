import { aliases } from '../aliases.ts';
import type { Event } from '../service.ts';
import { Field, type Source } from './field.ts';
import { decodeId } from './id.ts';

const maxListed = 10_000;
const maxName = 1000;

/** Events in the order of the reply; of one, only id, instant and type must be there. */
export function decodeEvents(body: unknown, source: Source): Event[] {
  return Field.ofReply(body, source).as('events').items(maxListed).map(toEvent);
}

function toEvent(event: Field): Event {
  const peer = event.find(aliases.event.peer);
  return {
    id: decodeId(event.need(aliases.event.id)),
    at: event.need(aliases.event.at).instant(),
    type: event.need(aliases.event.type).text(64),
    network: decodeId(event.need(aliases.event.network)),
    peer: peer && toPeer(peer),
    route: event.find(aliases.event.route)?.text(64) ?? null,
    details: event.find(aliases.event.details)?.record() ?? {},
  };
}

function toPeer(peer: Field): NonNullable<Event['peer']> {
  const id = peer.find(aliases.event.peerId);
  return { id: id && decodeId(id), name: peer.need(aliases.event.peerName).text(maxName) };
}
