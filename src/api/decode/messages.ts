import type { PeerMessage } from '../../contract/message.ts';
import { readMessages } from '../../core/map/peer-message.ts';
import { aliases } from '../aliases.ts';
import type { Reply } from '../http/attempt.ts';
import { Field } from './field.ts';

/**
 * The messages for this host in a 226 without changes; none in one that has changes, which count
 * first.
 */
export function decodeMessages({ body, reading }: Reply): readonly PeerMessage[] {
  const network = Field.ofReply(body, reading).as('network');
  const isEmpty = [aliases.network.peers, aliases.network.removed].every((field) => {
    const value = network.find(field)?.value;
    return Array.isArray(value) && value.length === 0;
  });
  return isEmpty ? readMessages(network.find(aliases.network.messages)?.value) : [];
}
