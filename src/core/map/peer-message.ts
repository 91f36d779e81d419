import type { PeerMessage, PeerMessageKind } from '../../contract/message.ts';

/** The kinds of messages that a host accepts. */
export const messageKinds: readonly PeerMessageKind[] = ['probe'];

/** The contract's limits. Its own constants are in the schemas, which are slow to load. */
const mostMessages = 8;
const mostProbed = 32;

/**
 * Returns the messages in a reply. Messages of another kind or form are left out: they are for a
 * later version.
 */
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
