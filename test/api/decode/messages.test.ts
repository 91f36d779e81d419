import { describe, expect, it } from 'vitest';
import { messageKinds, readMessages } from '../../../src/api/decode/messages.ts';
import { mostMessages, mostProbed, PeerMessage } from '../../../src/contract/network.ts';

const probe = (...peers: unknown[]) => ({ kind: 'probe', data: { peers } });

describe('readMessages', () => {
  it('reads what the contract describes', () => {
    const message = PeerMessage.parse(probe(3, 5));
    expect(readMessages([message])).toEqual([message]);
    expect(messageKinds).toEqual([message.kind]);
  });

  it('leaves out what is of another kind or form', () => {
    const others = [
      null,
      'probe',
      {},
      { kind: 'probe' },
      { kind: 'later', data: { peers: [1] } },
      probe(),
      probe('1', -1, 1.5),
    ];
    expect(readMessages(others)).toEqual([]);
    expect(readMessages({ kind: 'probe' })).toEqual([]);
    expect(readMessages([probe(1, '2', 1)])).toEqual([probe(1)]);
  });

  it('takes no more than the contract allows', () => {
    const many = Array.from({ length: 2 * mostProbed }, (_, index) => index + 1);
    const read = readMessages(Array.from({ length: 2 * mostMessages }, () => probe(...many)));
    expect(read).toHaveLength(mostMessages);
    expect(read[0]?.data.peers).toHaveLength(mostProbed);
  });
});
