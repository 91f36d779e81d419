import { describe, expect, test } from 'vitest';
import { decodeMap } from '../../src/api/decode/map.ts';
import type { Wait } from '../../src/api/service.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import type { Unreachable } from '../../src/core/errors/index.ts';
import { connectPeerService } from './described-service.ts';
import { failureOf, networkBody, source, unhurried } from './samples.ts';
import { brokenOff, bytes, hungUp, json, type Reply, serve, silent } from './server.ts';

const token = new Secret('token-sample');
const known = decodeMap(networkBody(), source, { network: 7, etag: '"12"' });
const whole = json(200, { data: networkBody({ name: 'new' }) }, { etag: '"13"' });
const unchanged: Reply = (response) => response.writeHead(304).end();
const page = { 'content-type': 'text/html' };

/** Reads the map with a wait of 20 s, by a clock on which each of these replies takes so many seconds. */
async function read(replies: readonly [number, Reply][], wait: Partial<Wait> = { endsWithTimeout: true }) {
  let elapsed = 0;
  const { address, asked } = await serve(
    ...replies.map(([seconds, reply]): Reply => {
      return (...given) => {
        elapsed += seconds * 1000;
        reply(...given);
      };
    }),
  );
  const sleep = async (ms: number) => {
    elapsed += ms;
  };
  const clock = { monotonic: () => elapsed, wall: () => 0, sleep };
  const { options } = unhurried({ clock, attempts: 3 });
  const reading = connectPeerService(address, options).readMap(7, token, known, { seconds: 20, ...wait });
  const [{ value, reason }] = (await Promise.allSettled([reading])) as [{ value?: object; reason?: unknown }];
  return { reading: value, failure: reason as Unreachable, asked: asked.map(({ headers }) => headers) };
}

const endings: [string, Reply][] = [
  ['a 408', json(408, {})],
  ['a 502', bytes(502, '<html>', page)],
  ['a 503 without a reason', bytes(503, '', page)],
  ['a 504', json(504, {})],
  ['a closed connection', hungUp],
];

describe('a gateway that ends a wait', () => {
  test.each(endings)('with %s after 10 s ends the call: the control plane may be well', async (_, ending) => {
    const { failure, asked } = await read([[10, ending]]);
    expect([failure.name, failure.waitEnded, asked.length]).toEqual(['Unreachable', true, 1]);
  });

  test.each(endings)('with %s at once is tried again, and then a failure', async (_, ending) => {
    const { failure, asked } = await read([[0, ending]]);
    expect([failure.name, failure.waitEnded, asked.length]).toEqual(['Unreachable', false, 3]);
  });

  test.each([
    ['a 500', json(500, {})],
    ['a 503 with its reason', json(503, { message: 'the database cannot be reached' })],
  ])('is not what ends it with %s', async (_, ending) => {
    expect((await read([[10, ending]])).failure.waitEnded).toBe(false);
  });

  test('is repeated for a caller that does not go on by itself', async () => {
    const { reading } = await read(
      [
        [6, json(504, {})],
        [0, whole],
      ],
      {},
    );
    expect(reading).toMatchObject({ map: { name: 'new' } });
  });

  test('may be one that never answers', async () => {
    const { address } = await serve(silent);
    const service = connectPeerService(address, { deadlineMs: 50 });
    const failure = await failureOf(service.readMap(7, token, known, { seconds: 1, endsWithTimeout: true }));
    expect(failure).toMatchObject({ name: 'Unreachable', waitEnded: true });
  });

  test('with a 408 to a request without a wait is tried again', async () => {
    const { address, asked } = await serve(json(408, {}), whole);
    const { options } = unhurried();
    expect((await connectPeerService(address, options).readMap(7, token, null)).map?.name).toBe('new');
    expect(asked).toHaveLength(2);
  });
});

test('a reply that took 5 s has waited, whatever headers a proxy removed', async () => {
  for (const reply of [unchanged, whole]) {
    expect((await read([[5, reply]])).reading).toMatchObject({ waited: true });
    expect((await read([[4, reply]])).reading).toMatchObject({ waited: false });
  }
});

describe('a gateway that refuses changes alone', () => {
  const refusing: [string, Reply, number][] = [
    ['with a 502', bytes(502, '<html>', page), 2],
    ['by closing the connection', hungUp, 2],
    ['by breaking off the body', brokenOff, 2],
    ['with an unreadable body', bytes(226, '{"data":'), 1],
    ['with a page', bytes(226, '<html>', page), 1],
  ];

  test.each(refusing)('%s is asked for the whole map, and then once more', async (_, refuse, times) => {
    const reply: Reply = (response, asked) => (asked.headers['a-im'] ? refuse : whole)(response, asked);
    const { reading, asked } = await read([[0, reply]]);
    expect(reading).toMatchObject({ map: { name: 'new' }, refusesDeltas: true });
    const changes = 'cpn-delta';
    const manipulations = [...Array<string>(times).fill(changes), undefined, changes];
    expect(asked.map((headers) => headers['a-im'])).toEqual(manipulations);
    expect(asked.map((headers) => headers['if-none-match'])).toEqual(manipulations.map(() => '"12"'));
  });

  test('is not one that was down for two attempts', async () => {
    const down = bytes(502, '', page);
    const delta = json(226, { data: networkBody({ base: '"12"', peers: [], removed: [] }) }, { etag: '"13"' });
    for (const replies of [
      [down, down, whole, delta],
      [down, down, unchanged],
    ]) {
      const { reading, asked } = await read(replies.map((reply) => [0, reply]));
      expect(reading).not.toHaveProperty('refusesDeltas');
      expect(asked).toHaveLength(replies.length);
    }
  });

  test('that refuses all else too is a failure', async () => {
    const { failure, asked } = await read([[0, bytes(226, '{')]]);
    expect([failure.name, asked.length]).toEqual(['BadReply', 2]);
  });
});
