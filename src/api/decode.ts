import { covers } from '../core/cidr.ts';
import type { PublicKey } from '../core/keys.ts';
import type { NetworkMap } from '../core/model.ts';
import { Secret } from '../core/secret.ts';
import { aliases, type Names } from './aliases.ts';
import { decodeAddress, decodeNetwork, decodePeerId, decodePeers, maxName, outside } from './decode-network.ts';
import { Field, type Source } from './field.ts';
import type { Enrolled } from './service.ts';

const names = aliases.enrollment;

/** The map of the network asked for, under the revision that its ETag tells: whole or not at all. */
export function decodeMap(body: unknown, source: Source, asked: { network: number; etag: string | null }): NetworkMap {
  const network = Field.ofReply(body, source).as('network');
  const head = decodeNetwork(network);
  if (head.id !== asked.network) throw network.need(aliases.network.id).wrong('is not that of the network asked for');
  return {
    ...head,
    revision: strongTag(asked.etag),
    peers: decodePeers(network.need(aliases.network.peers), head.cidr),
  };
}

/**
 * The reply to an enrolment. The peer and the network may stand in it under their names or be the reply itself, the peers in
 * the network or beside it; what the reply leaves out of the peer is taken from the network's entry for its key. An address that
 * is another's or outside the range, or a key that is not the one sent, is a BadReply.
 */
export function decodeEnrollment(body: unknown, source: Source, asked: Asked): Enrolled {
  const reply = Field.ofReply(body, source);
  const network = nested(reply, names.network, aliases.network.cidr);
  const head = decodeNetwork(network);
  const list = network.find(aliases.network.peers) ?? reply.find(aliases.network.peers);
  const revision = network.find(aliases.network.revision)?.integer();
  const map = {
    ...head,
    // In the form that its ETag will have, so that the first read of the map can already ask for what changed since.
    revision: revision === undefined ? null : `"${revision}"`,
    peers: decodePeers(list ?? network.need(aliases.network.peers), head.cidr),
  };
  const peer = decodeOwnPeer(nested(reply, names.peer, aliases.peer.address), map, asked);
  const token = reply.find(names.accessToken);
  return { peer, map, accessToken: token && decodeToken(token) };
}

/** A bearer token: what an Authorization header can carry. */
export function decodeToken(field: Field): Secret {
  const token = field.text(4096);
  if (!/^[\x21-\x7e]+$/.test(token)) throw field.wrong('is not a token');
  return new Secret(token);
}

/** A strong entity tag (RFC 9110, 8.8.3) of a bearable length; a weak one also stands for maps that differ a little. */
function strongTag(etag: string | null): string | null {
  return etag !== null && /^"[\x21\x23-\x7e]{0,128}"$/.test(etag) ? etag : null;
}

/** What was sent, in whose light the reply is read. */
interface Asked {
  readonly publicKey: PublicKey;
  readonly name: string;
}

/** The part of a reply under one of `under`, or the reply itself if it has the part's `mark`. */
function nested(reply: Field, under: Names, mark: Names): Field {
  return reply.find(under) ?? (reply.find(mark) ? reply.as(under[0]) : reply.need(under));
}

function decodeOwnPeer(field: Field, { cidr, peers }: NetworkMap, asked: Asked): Enrolled['peer'] {
  const key = field.find(aliases.peer.publicKey);
  if (key && key.value !== asked.publicKey) throw key.wrong('is not the key that was sent');
  const listed = peers.find((one) => one.publicKey === asked.publicKey);
  const place = field.need(aliases.peer.address);
  const address = decodeAddress(place);
  if (!covers(cidr, address)) throw outside(place);
  const given = field.find(aliases.peer.id);
  const id = given || !listed ? decodePeerId(given ?? field.need(aliases.peer.id)) : listed.id;
  if (listed && (listed.address !== address || listed.id !== id)) {
    throw place.wrong('or the id beside it is not what the network lists for this key');
  }
  if (!listed && peers.some((one) => one.address === address || one.id === id)) {
    throw place.wrong("or the id beside it is another peer's");
  }
  return { id, name: field.find(aliases.peer.name)?.text(maxName) ?? asked.name, address };
}
