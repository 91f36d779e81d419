import { describe, expect, test } from 'vitest';
import { decodeMap } from '../../src/api/decode/map.ts';
import type { Call, Reply } from '../../src/api/http/attempt.ts';
import type { HttpClient } from '../../src/api/http/client.ts';
import { readMap } from '../../src/api/read-map.ts';
import type { MapReading } from '../../src/api/service.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { BadReply, Intercepted, Refused, Unreachable } from '../../src/core/errors/index.ts';
import { networkBody, source } from './samples.ts';

const request = {
  ...{ network: 7, token: new Secret('t'), known: '"12"', changes: true, listsRemoved: true, hasOwnTag: true },
  ...{ messageKinds: ['probe'] as const, remedies: {}, onRefused: () => {} },
};

/** A reply with these facts, as the client of a connection gives it. */
function replyOf(fields: Partial<Reply>): Reply {
  return {
    ...{ status: 200, headers: {}, body: { data: networkBody() }, etag: '"13"', waited: false, from: null },
    ...{ listener: null, reading: { ...source, maxBytes: 1 } },
    ...fields,
  };
}

function read(fields: Partial<Reply>): Promise<MapReading> {
  return readMap({ call: async (_: Call) => replyOf(fields) } as unknown as HttpClient, request);
}

describe('a reading of a map', () => {
  test.each([
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['2001:db8::7', '2001:db8::7'],
    ['fe80::7%eth0', 'fe80::7'],
    ['/run/cpn.sock', undefined],
    ['', undefined],
    [null, undefined],
  ])('from %j has the address %j', async (from, address) => {
    for (const status of [200, 304]) expect((await read({ from, status })).from).toBe(address);
  });

  test.each([
    [0, 0],
    [1000, 1000],
    [null, undefined],
  ])('of the program of user %j has the user %j', async (listener, user) => {
    for (const status of [200, 304]) expect((await read({ listener, status })).listener).toBe(user);
  });

  test.each([
    ['Tue, 14 Nov 2023 22:13:20 GMT', 1_700_000_000_000],
    [['Tue, 14 Nov 2023 22:13:20 GMT'], 1_700_000_000_000],
    ['now', undefined],
    [undefined, undefined],
  ])('with the date %j is of %j', async (date, servedAt) => {
    for (const status of [200, 304])
      expect((await read({ status, headers: date === undefined ? {} : { date } })).servedAt).toBe(servedAt);
  });

  test.each([
    ['2026-03-01T12:00:00Z', '2026-03-01T12:00:00.000Z'],
    [['2026-03-01T12:00:00.5Z', 'x'], '2026-03-01T12:00:00.500Z'],
    ['yes', undefined],
    ['', undefined],
    [undefined, undefined],
  ])('with Peer-Cloned-Since: %j says that the host has a copy since %j', async (header, since) => {
    const headers = header === undefined ? {} : { 'peer-cloned-since': header };
    for (const status of [200, 304]) expect((await read({ status, headers })).clonedSince).toBe(since);
  });
});

describe('changes that are refused', () => {
  const map = decodeMap(networkBody(), source, { network: 7, etag: '"12"' });
  const unreachable = (delivered: boolean) => {
    return new Unreachable('https://cp.example.net', 'gone', { delivered, heard: false, retryAfterMs: null });
  };
  const unreadable = new BadReply('https://cp.example.net', 'is no JSON', 'none');
  const whole = { ...replyOf({}), isReduced: true } as const;

  /** Reads the map with a client to whose calls come these replies and errors. */
  async function readFrom(...outcomes: readonly (Reply | Error)[]) {
    const calls: Call[] = [];
    const refusals: unknown[] = [];
    const http = {
      call: async (call: Call) => {
        const outcome = outcomes[calls.push(call) - 1] ?? expect.unreachable();
        if (outcome instanceof Error) throw outcome;
        return outcome;
      },
    } as unknown as HttpClient;
    const wait = { seconds: 20 };
    const given = {
      ...request,
      known: map,
      wait,
      attempts: 5,
      onRefused: (refusal: unknown) => refusals.push(refusal),
    };
    const [{ value, reason }] = (await Promise.allSettled([readMap(http, given)])) as [
      { value?: MapReading; reason?: Error },
    ];
    return { reading: value, failure: reason, calls, refusals };
  }

  test.each<[string, Reply | Error, true | undefined]>([
    ['a body that cannot be read', unreadable, true],
    ['a connection that ends after it was sent', unreachable(true), true],
    ['no connection', unreachable(false), undefined],
    ['a reply', replyOf({ status: 304 }), undefined],
  ])('are found by one more request, which ends in %s', async (_, outcome, refusesDeltas) => {
    const { reading, calls } = await readFrom(whole, outcome);
    expect(reading?.refusesDeltas).toBe(refusesDeltas);
    expect(calls.map(({ attempts, wait, headers }) => [attempts, wait, headers?.['a-im']])).toEqual([
      [5, { seconds: 20 }, 'cpn-delta'],
      [1, undefined, 'cpn-delta'],
    ]);
  });

  test('end in a failure that is none of theirs', async () => {
    const refused = new Refused(401, 'reading', 'no', null, {
      repeated: false,
      reasoned: true,
      fields: [],
      deleted: null,
    });
    expect((await readFrom(whole, refused)).failure).toBe(refused);
    expect((await readFrom(refused)).failure).toBe(refused);
    expect((await readFrom(unreachable(true))).calls).toHaveLength(1);
  });

  test.each<[string, Error]>([
    ['a body that cannot be read', unreadable],
    ['a page of something in front', new Intercepted('https://cp.example.net', 'it answered with HTML', true)],
  ])('with %s are reported before the whole map is read, without a wait', async (_, refusal) => {
    const { reading, calls, refusals } = await readFrom(refusal, replyOf({}), replyOf({ status: 304 }));
    expect([reading?.map?.id, refusals]).toEqual([7, [refusal]]);
    expect(calls.map(({ wait, headers }) => [wait, headers?.['a-im'], headers?.['if-none-match']])).toEqual([
      [{ seconds: 20 }, 'cpn-delta', '"12"'],
      [undefined, undefined, '"12"'],
      [undefined, 'cpn-delta', '"12"'],
    ]);
  });

  test('need no further request where the map is the one that is here', async () => {
    const { reading, calls } = await readFrom({ ...replyOf({ status: 304 }), isReduced: true });
    expect([reading?.map, calls.length]).toEqual([null, 1]);
  });
});
