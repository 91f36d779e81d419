import type { PeerMessage, PeerMessageKind } from '../../contract/network.ts';
import { aliases } from '../aliases.ts';
import type { Reply } from '../http/attempt.ts';
import { Field } from './field.ts';

/** The messages in a 226 without changes; changes take precedence. */
export function decodeMessages({ body, reading }: Reply): readonly PeerMessage[] {
  const network = Field.ofReply(body, reading).as('network');
  const isEmpty = [aliases.network.peers, aliases.network.removed].every((field) => {
    const value = network.find(field)?.value;
    return Array.isArray(value) && value.length === 0;
  });
  return isEmpty ? readMessages(network.find(aliases.network.messages)?.value) : [];
}

export const messageKinds: readonly PeerMessageKind[] = ['probe'];

/** Copies of the contract's limits, whose schemas are slow to load. */
const mostMessages = 8;
const mostProbed = 32;

/** Leaves out messages of another kind or form: they are for a later version. */
export function readMessages(given: unknown): readonly PeerMessage[] {
  if (!Array.isArray(given)) return [];
  return given.slice(0, mostMessages).flatMap((each): PeerMessage[] => {
    const { kind, data } = (each ?? {}) as { readonly kind?: unknown; readonly data?: { readonly peers?: unknown } };
    const peers = kind === 'probe' && Array.isArray(data?.peers) ? data.peers.slice(0, mostProbed).filter(isId) : [];
    return peers.length === 0 ? [] : [{ kind: 'probe', data: { peers: [...new Set(peers)] } }];
  });
}

function isId(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}
