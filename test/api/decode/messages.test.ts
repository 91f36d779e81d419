import { describe, expect, it } from 'vitest';
import { messageKinds, readMessages } from '../../../src/api/decode/messages.ts';
import { mostMessages, mostProbed, PeerMessage } from '../../../src/contract/network.ts';
import { mostCandidates } from '../../../src/contract/paths.ts';

const named =
  (kind: string) =>
  (...peers: unknown[]) => ({ kind, data: { peers } });
const probe = named('probe');
const trial = {
  peer: 3,
  attempt: 17,
  endpoints: ['192.168.1.7:51820', '[2001:db8::1]:1'],
  start_in_ms: 0,
  first: true,
};
const tryOf = (changes: object) => ({ kind: 'try', data: { ...trial, ...changes } });
const switchOf = (changes: object) => ({
  kind: 'switch',
  data: { peer: 3, attempt: 17, switch_in_ms: 300, ...changes },
});
const messages = [
  probe(3, 5),
  named('observe')(3),
  named('candidates')(4),
  tryOf({ observed: ['203.0.113.7:4711'], nats: { own: 'steady', peer: 'symmetric' }, kinds: ['lan', 'observed'] }),
  switchOf({}),
  { kind: 'return', data: { peer: 3 } },
];

describe('readMessages', () => {
  it('reads what the contract describes', () => {
    for (const message of [...messages, tryOf({}), tryOf({ endpoints: [] })])
      expect(readMessages([PeerMessage.parse(message)])).toEqual([message]);
    const isInContract = (delay: number) => PeerMessage.safeParse(tryOf({ start_in_ms: delay })).success;
    expect([isInContract(10_000), isInContract(10_001)]).toEqual([true, false]);
    expect(messageKinds(true)).toEqual(messages.map(({ kind }) => kind));
    expect(messageKinds(false)).toEqual(['probe']);
  });

  it('leaves out what is of another kind or form', () => {
    const others = [
      ...[null, 'probe', {}, { kind: 'probe' }, { kind: 'later', data: { peers: [1] } }],
      ...['probe', 'observe', 'candidates'].flatMap((kind) => [named(kind)(), named(kind)('1', -1, 1.5)]),
      ...[{ peer: 0 }, { peer: '3' }, { attempt: 0 }, { attempt: 1.5 }, { attempt: undefined }].flatMap((changes) => [
        tryOf(changes),
        switchOf(changes),
      ]),
      ...[-1, 0.5, 10_001, '0', undefined].flatMap((delay) => [
        tryOf({ start_in_ms: delay }),
        switchOf({ switch_in_ms: delay }),
      ]),
      ...[{ first: 1 }, { first: undefined }, { endpoints: [7] }, { endpoints: '192.168.1.7:51820' }].map(tryOf),
      ...[{ peer: -3 }, { peer: null }, {}].map((data) => ({ kind: 'return', data })),
    ];
    for (const other of others) expect([other, readMessages([other])]).toEqual([other, []]);
    expect(readMessages({ kind: 'probe' })).toEqual([]);
    expect(readMessages([probe(1, '2', 1)])).toEqual([probe(1)]);
  });

  it('copies no field that it does not check', () => {
    expect(readMessages([tryOf({ command: 'x' })])).toEqual([tryOf({})]);
    expect(readMessages([{ kind: 'return', data: { peer: 3, peers: [4] } }])).toEqual([messages[5]]);
  });

  it.each([
    'host.example:51820',
    '127.0.0.1:51820',
    '[::1]:51820',
    '0.0.0.0:1',
    '169.254.1.1:51820',
    '[fe80::1]:51820',
    '224.0.0.1:51820',
    '255.255.255.255:51820',
    '[ff02::1]:51820',
    '[::ffff:192.0.2.1]:51820',
    '192.0.2.1',
    '192.0.2.1:0',
    '192.0.2.1:65536',
    '192.0.2.1:51820\n',
    `192.0.2.1:1${' '.repeat(99)}`,
    7,
    null,
  ])('leaves out the endpoint %j, at which no peer can listen', (endpoint) => {
    expect(readMessages([tryOf({ endpoints: [endpoint, '192.0.2.7:51820'] })])).toEqual([
      tryOf({ endpoints: ['192.0.2.7:51820'] }),
    ]);
    expect(readMessages([tryOf({ endpoints: [endpoint] })])).toEqual([]);
  });

  it('writes endpoints in one form, each once', () => {
    const endpoints = ['[2001:DB8:0::1]:51820', '[2001:db8::1]:51820', '192.0.2.7:51820'];
    const [read] = readMessages([tryOf({ endpoints })]);
    expect(read?.data).toMatchObject({ endpoints: ['[2001:db8::1]:51820', '192.0.2.7:51820'] });
  });

  it('takes no more than the contract allows', () => {
    const many = Array.from({ length: 2 * mostProbed }, (_, index) => index + 1);
    const read = readMessages(Array.from({ length: 2 * mostMessages }, () => probe(...many)));
    expect(read).toHaveLength(mostMessages);
    expect(read[0]).toEqual(probe(...many.slice(0, mostProbed)));
    const endpoints = many.map((port) => `192.0.2.7:${port}`);
    expect(readMessages([tryOf({ endpoints })])).toEqual([tryOf({ endpoints: endpoints.slice(0, mostCandidates) })]);
  });
});
