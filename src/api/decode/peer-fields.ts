import { type KeyProof, parseIdentityKey } from '../../core/crypto/identity.ts';
import type { PeerFields, PeerId } from '../../core/map/model.ts';
import { listedPeerFields, type PeerField } from '../../core/map/peer-fields.ts';
import { isTag, mostTags } from '../../core/rules/selector.ts';
import { aliases } from '../aliases.ts';
import { decodeId, type Field, readInstant } from './field.ts';

/** Reads the optional fields of a peer. */
export function decodePeerFields(peer: Field): PeerFields {
  const fields: Record<string, unknown> = {};
  for (const [name, field] of listedPeerFields) {
    const found = peer.find([field.name]);
    const value = found && decodeValue(field, found, peer);
    if (value !== null) fields[name] = value;
  }
  return fields;
}

/** Null for a value with another meaning at another service. */
function decodeValue(field: PeerField, found: Field, peer: Field): unknown {
  const { value } = found;
  switch (field.kind) {
    case 'text':
      return decodeText(field, found);
    case 'number':
      return Number.isSafeInteger(value) && value !== 0 ? value : null;
    case 'instant':
      return decodeMoment(value);
    case 'identityKey':
      return found.parse((text) => parseIdentityKey(text));
    case 'keyProof':
      return decodeProof(found);
    case 'flag':
      return value === true ? true : null;
    case 'tags':
      return found.attempt<readonly string[] | null>(readTags, () => null);
    case 'via':
      return value === 'connectors' ? { connector: findConnector(peer) } : null;
  }
}

/** Leaves out what is no tag: a rule that selects it selects less. */
function readTags(found: Field): readonly string[] | null {
  const tags = found.items(mostTags).flatMap(({ value }) => (isTag(value) ? value : []));
  return tags.length === 0 ? null : [...new Set(tags)];
}

function decodeText({ max, pattern, rule }: Extract<PeerField, { kind: 'text' }>, found: Field): string | null {
  const read = (field: Field) => {
    const text = field.text(max);
    if (pattern?.test(text) === false) throw field.wrong(rule ?? 'has another form');
    return text;
  };
  return rule === undefined ? found.attempt<string | null>(read, () => null) : read(found);
}

/** Milliseconds since 1970. Null for earlier instants: Go writes the year 1 for a time not set. */
function decodeMoment(value: unknown): number | null {
  const at = typeof value === 'string' ? Date.parse(readInstant(value) ?? '') : Number.NaN;
  return at > 0 ? at : null;
}

/** Reads it unverified: its users verify it. */
function decodeProof(field: Field): KeyProof {
  const signature = field.need(aliases.peer.signature);
  if (!/^[A-Za-z0-9+/]{86}==$/.test(signature.text(88))) throw signature.wrong('is not 64 bytes in base64');
  return { serial: field.need(aliases.peer.serial).integer(), signature: signature.text(88) };
}

/** The connector in a peer's profile; null if unreadable. */
function findConnector(peer: Field): PeerId | null {
  return peer.find(aliases.peer.profile)?.tryFind(aliases.peer.connector, decodeId) ?? null;
}
