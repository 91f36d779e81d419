import { describe, expect, test } from 'vitest';
import { isBase, isPerhapsDelta } from '../../../src/api/decode/delta.ts';
import { decodeMap } from '../../../src/api/decode/map.ts';
import { decodeMessages, isUnchanged } from '../../../src/api/decode/messages.ts';
import type { Reply } from '../../../src/api/http/attempt.ts';
import type { NetworkMap, Peer } from '../../../src/core/map/model.ts';
import { peer } from '../../core/samples.ts';
import { networkBody, peerBody, source } from '../samples.ts';

const map = decodeMap(networkBody(), source, { network: 7, etag: '"12"' });
const given: Peer['given'] = { allowedIps: [], presharedKey: null, keepalive: null };

describe('changes apply to a map', () => {
  test.each<[string, Partial<NetworkMap>, boolean]>([
    ['that is as the service sent it', {}, true],
    ['with an empty ETag', { revision: '""' }, true],
    ['without peers', { peers: [] }, true],
    ['without an ETag', { revision: null }, false],
    ['under a weak ETag', { revision: 'W/"12"' }, false],
    [
      'of which a peer was skipped',
      { skipped: [{ id: 9, name: null, publicKey: null, address: null, reason: 'x' }] },
      false,
    ],
    ['with a host that the service does not list', { peers: [peer(1), peer(2, { unlisted: true })] }, false],
    ['with a peer of a ready text', { peers: [peer(1), peer(2, { given })] }, false],
  ])('%s: %#', (_, fields, is) => {
    expect(isBase({ ...map, ...fields })).toBe(is);
  });
});

describe('a whole map that says what is removed', () => {
  const reply = (body: object) => ({ body: networkBody(body), reading: source }) as unknown as Reply;

  test.each<[string, object, boolean]>([
    ['lists all others', { removed: [3], peers: [peerBody(1), peerBody(2)] }, false],
    [
      'lists all others, one of which cannot be used',
      { removed: [3], peers: [peerBody(1), peerBody(2, { endpoint: 'x' })] },
      false,
    ],
    ['has new peers alone', { removed: [1, 2, 3], peers: [peerBody(4)] }, false],
    ['leaves one out', { removed: [3], peers: [peerBody(1)] }, true],
    ['leaves the last one out', { removed: [1], peers: [peerBody(2)] }, true],
    ['lists nothing', { removed: [], peers: [] }, true],
    ['means something else by the word', { removed: 'none', peers: [] }, false],
  ])('may be changes alone where it leaves out a peer: it %s', (_, body, is) => {
    const read = decodeMap(networkBody(body), source, { network: 7, etag: null });
    expect(isPerhapsDelta(reply(body), read, map)).toBe(is);
  });
});

describe('messages for a host', () => {
  const probe = (...peers: unknown[]) => ({ kind: 'probe', data: { peers } });
  const messagesOf = (fields: object) =>
    decodeMessages({ body: { data: { peers: [], removed: [], ...fields } }, reading: source } as unknown as Reply);

  test('come in changes without any change', () => {
    expect(messagesOf({ messages: [probe(2)] })).toEqual({ messages: [probe(2)], receipt: null });
    expect(messagesOf({ messages: [probe(2)], receipt: '7.8' })).toEqual({ messages: [probe(2)], receipt: '7.8' });
  });

  test('have a receipt also where this version reads none of them', () => {
    expect(messagesOf({ messages: [{ kind: 'other', data: {} }], receipt: '7' })).toEqual({
      messages: [],
      receipt: '7',
    });
  });

  test.each([7, '', 'a b', 'a\r\nb: c', 'x'.repeat(129)])('have no receipt %j, which no header can have', (receipt) => {
    expect(messagesOf({ messages: [probe(2)], receipt })).toEqual({ messages: [probe(2)], receipt: null });
  });

  test.each<[string, object]>([
    ['a peer changed', { peers: [peerBody(1)] }],
    ['a peer is removed', { removed: [3] }],
    ['it is not said what is removed', { removed: null }],
    ['the peers are no list', { peers: {} }],
  ])('come with changes where %s', (_, fields) => {
    const reply = { body: { data: { peers: [], removed: [], ...fields } }, reading: source } as unknown as Reply;
    expect(isUnchanged(reply)).toBe(false);
    expect(messagesOf({ messages: [probe(2)], receipt: '7', ...fields })).toEqual({
      ...{ messages: [probe(2)], receipt: '7' },
    });
  });

  test.each<[unknown]>([
    [undefined],
    [null],
    ['probe'],
    [[]],
    [[null, 7, { kind: 'other', data: {} }, { kind: 'probe' }]],
  ])('are none in %j', (messages) => expect(messagesOf({ messages })).toBeNull());
});
