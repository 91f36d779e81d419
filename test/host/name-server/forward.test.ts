import { createSocket, type Socket } from 'node:dgram';
import { createServer, type Server } from 'node:net';
import { decode, encode, streamDecode, streamEncode } from 'dns-packet';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { Address } from '../../../src/core/net/cidr.ts';
import type { Forwarding } from '../../../src/host/host.ts';
import { createForwarder } from '../../../src/host/name-server/forward.ts';
import { serveNames } from '../../../src/host/name-server/serve-names.ts';
import { address } from '../../core/samples.ts';
import { askUdp, connectTcp, edns, framedQueryOf, queryOf, rcodeOf } from './clients.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

const name = 'db.corp.example';

/** The reply of a server that has one address for every name. */
function replyOf(query: Buffer, data: string, changes: { readonly id?: number } = {}): Buffer {
  const { id, questions = [] } = decode(query);
  const answers = questions.map((question) => ({ type: 'A' as const, name: question.name, ttl: 60, data }));
  return encode({ type: 'response', id: changes.id ?? id ?? 0, questions, answers });
}

const failures: [string, number][] = [
  ['FORMERR', 1],
  ['SERVFAIL', 2],
  ['NOTIMP', 4],
  ['REFUSED', 5],
  ['NOTAUTH', 9],
  ['a code without a name', 11],
];

/** The reply of a server that does not resolve the name. */
function failureOf(query: Buffer, rcode: number): Buffer {
  const reply = replyOf(query, '203.0.113.66').subarray(0, query.length);
  reply.writeUInt8(rcode, 3);
  reply.fill(0, 6, 12);
  return reply;
}

/** The reply of a server without the records that its header has. */
function unreadable(query: Buffer): Buffer {
  const reply = failureOf(query, 0);
  reply.writeUInt16BE(5, 6);
  return reply;
}

/** A UDP server at a loopback address, which answers by `respond`. @returns the port, and its queries */
async function startServer(host: string, respond: (query: Buffer) => readonly Buffer[], port = 0) {
  const queries: { readonly query: Buffer; readonly source: string; readonly reply: (message: Buffer) => void }[] = [];
  const socket: Socket = createSocket('udp4');
  await new Promise<void>((bound) => socket.bind(port, host, bound));
  closers.push(() => new Promise<void>((closed) => socket.close(() => closed())));
  socket.on('message', (query, { address: source, port: from }) => {
    const reply = (message: Buffer) => socket.send(message, from, source);
    queries.push({ query, source, reply });
    for (const message of respond(query)) reply(message);
  });
  return { port: socket.address().port, queries };
}
const addressesIn = (reply: Buffer | null) =>
  reply && (decode(reply).answers ?? []).map((record) => ('data' in record ? record.data : null));
const [one, two] = [address('127.0.0.21'), address('127.0.0.22')];
/** The source of the queries. */
const here = address('127.0.0.23');

describe('a query', () => {
  test('goes to the first server, with another id each time, and its reply comes back with its own', async () => {
    const { port, queries } = await startServer(one, (query) => [replyOf(query, '192.168.50.9')]);
    const forward = createForwarder(here);
    const query = queryOf(name);
    for (let times = 0; times < 4; times += 1) {
      const reply = await forward(query, [one, two], 'udp', port);
      expect(reply?.readUInt16BE(0)).toBe(query.readUInt16BE(0));
      expect(addressesIn(reply)).toEqual(['192.168.50.9']);
    }
    expect(queries.map((each) => each.query.subarray(2))).toEqual(Array.from({ length: 4 }, () => query.subarray(2)));
    expect(new Set(queries.map((each) => each.query.readUInt16BE(0))).size).toBeGreaterThan(1);
  });

  test('goes to the next server if the first refuses the port, and to that one from then on', async () => {
    const { port, queries } = await startServer(two, (query) => [replyOf(query, '192.168.50.9')]);
    const forward = createForwarder(here);
    expect(addressesIn(await forward(queryOf(name), [one, two], 'udp', port))).toEqual(['192.168.50.9']);
    const first = await startServer(one, () => [], port);
    expect(addressesIn(await forward(queryOf(name), [one, two], 'udp', port))).toEqual(['192.168.50.9']);
    expect(queries).toHaveLength(2);
    expect(first.queries).toHaveLength(0);
  });

  test.each(failures)('goes to the next server if the first replies %s', async (_, rcode) => {
    const { port } = await startServer(two, (query) => [replyOf(query, '192.168.50.9')]);
    const { queries } = await startServer(one, (query) => [failureOf(query, rcode)], port);
    const forward = createForwarder(here);
    for (let times = 0; times < 2; times += 1) {
      expect(addressesIn(await forward(queryOf(name), [one, two], 'udp', port))).toEqual(['192.168.50.9']);
    }
    expect(queries).toHaveLength(1);
    expect(rcodeOf((await forward(queryOf(name), [one], 'udp', port)) ?? Buffer.alloc(12))).toBe(rcode);
  });

  test('goes to the next server if the reply of the first cannot be read', async () => {
    const { port } = await startServer(two, (query) => [replyOf(query, '192.168.50.9')]);
    const { queries } = await startServer(one, (query) => [unreadable(query)], port);
    const forward = createForwarder(here);
    for (let times = 0; times < 2; times += 1) {
      expect(addressesIn(await forward(queryOf(name), [one, two], 'udp', port))).toEqual(['192.168.50.9']);
    }
    expect(queries).toHaveLength(1);
  });

  test('is repeated if a server is silent', async () => {
    let times = 0;
    const { port } = await startServer(one, (query) => {
      times += 1;
      return times < 2 ? [] : [replyOf(query, '192.168.50.9')];
    });
    expect(addressesIn(await createForwarder(here)(queryOf(name), [one], 'udp', port))).toEqual(['192.168.50.9']);
  });

  test('is answered by a server that takes longer than until the query is repeated', async () => {
    const { port, queries } = await startServer(one, () => []);
    const late = createForwarder(here)(queryOf(name), [one], 'udp', port);
    await vi.waitUntil(() => queries.length > 1, { timeout: 3000 });
    const [first] = queries;
    if (first === undefined) throw new Error('no query');
    first.reply(replyOf(first.query, '192.168.50.9'));
    expect(addressesIn(await late)).toEqual(['192.168.50.9']);
  });

  test('ends without a reply if the kernel refuses to send it', async () => {
    for (const server of ['255.255.255.255', '0.0.0.0'].map((text) => address(text))) {
      expect(await createForwarder(here)(queryOf(name), [server], 'udp', 9)).toBeNull();
    }
  });

  test('ends the oldest of too many, whose server is silent', async () => {
    const { port } = await startServer(one, () => []);
    const other = await startServer(two, (query) => [replyOf(query, '192.168.50.9')], port);
    const forward = createForwarder(here);
    const silent = Array.from({ length: 140 }, () => forward(queryOf(name), [one], 'udp', port));
    expect(addressesIn(await forward(queryOf(name), [two], 'udp', port))).toEqual(['192.168.50.9']);
    expect(other.queries).toHaveLength(1);
    expect(await Promise.all(silent)).toEqual(silent.map(() => null));
  });

  test('has no reply if every server refuses the port', async () => {
    const { port } = await startServer(two, () => []);
    expect(await createForwarder(here)(queryOf(name), [one], 'udp', port)).toBeNull();
    expect(await createForwarder(here)(queryOf(name), [], 'udp', port)).toBeNull();
  });

  test.each<[string, (query: Buffer) => Buffer]>([
    ['another id', (query) => replyOf(query, '203.0.113.66', { id: (query.readUInt16BE(0) + 1) % 65_536 })],
    [
      'another question',
      (query) => replyOf(Buffer.concat([query.subarray(0, 2), queryOf('evil.example').subarray(2)]), '203.0.113.66'),
    ],
    ['no reply but a query', (query) => query],
    ['too few bytes', (query) => query.subarray(0, 5)],
    ['no bytes', () => Buffer.alloc(0)],
  ])('ignores %s', async (_, forge) => {
    const { port } = await startServer(one, (query) => [forge(query), replyOf(query, '192.168.50.9')]);
    expect(addressesIn(await createForwarder(here)(queryOf(name), [one], 'udp', port))).toEqual(['192.168.50.9']);
  });

  test('keeps its letters in any case', async () => {
    const lower = (query: Buffer) => Buffer.from(query.toString('latin1').toLowerCase(), 'latin1');
    const { port } = await startServer(one, (query) => {
      const reply = replyOf(lower(query), '192.168.50.9', { id: query.readUInt16BE(0) });
      return [reply];
    });
    expect(addressesIn(await createForwarder(here)(queryOf('DB.Corp.Example'), [one], 'udp', port))).toEqual([
      '192.168.50.9',
    ]);
  });

  test('has the source of the forwarder', async () => {
    const { port, queries } = await startServer(one, (query) => [replyOf(query, '192.168.50.9')]);
    await createForwarder(here)(queryOf(name), [one], 'udp', port);
    expect(queries.map(({ source }) => source)).toEqual([here]);
    const overTcp = await startTcp(one, replyOf);
    expect(addressesIn(await createForwarder(here)(queryOf(name), [one], 'tcp', overTcp))).toEqual([here]);
  });

  test.each(['udp', 'tcp'] as const)('has no reply over %s without the source', async (transport) => {
    const { port, queries } = await startServer(one, (query) => [replyOf(query, '192.168.50.9')]);
    expect(await createForwarder(address('192.0.2.1'))(queryOf(name), [one], transport, port)).toBeNull();
    expect(queries).toEqual([]);
  });

  test('over TCP goes over TCP', async () => {
    const port = await startTcp(one, (query) => replyOf(query, '192.168.50.9'));
    expect(addressesIn(await createForwarder(here)(queryOf(name), [two, one], 'tcp', port))).toEqual(['192.168.50.9']);
  });
});

async function startTcp(host: Address, respond: (query: Buffer, source: string) => Buffer): Promise<number> {
  const server: Server = createServer((socket) => {
    const { remoteAddress = '' } = socket;
    socket.on('error', () => {});
    socket.on('data', (data) => {
      const { id: _, ...rest } = streamDecode(data);
      const query = encode({ ...rest, id: data.readUInt16BE(2) } as Parameters<typeof encode>[0]);
      const reply = respond(query, remoteAddress);
      const framed = streamEncode(decode(reply) as Parameters<typeof streamEncode>[0]);
      // In two parts, as a network may deliver it.
      socket.write(framed.subarray(0, 5));
      setImmediate(() => socket.write(framed.subarray(5)));
    });
  });
  await new Promise<void>((listening) => server.listen(0, host, listening));
  closers.push(() => new Promise<void>((closed) => server.close(() => closed())));
  const bound = server.address();
  return typeof bound === 'object' && bound !== null ? bound.port : 0;
}

describe('a server of names', () => {
  async function serve(
    servers: readonly Address[],
    forwardPort: number,
    { source, onReply }: { readonly source?: Address } & Pick<Forwarding, 'onReply'> = {},
  ) {
    const start = () =>
      serveNames({
        ...{ address: address('127.0.0.1'), port: 0, isAllowed: () => true, forwardPort },
        ...(source !== undefined && { source }),
        answer: ({ name: asked }) =>
          asked === 'local.example'
            ? { rcode: 'NOERROR', answers: [{ type: 'A', name: asked, ttl: 5, data: '10.77.0.1' }], authorities: [] }
            : { servers: asked.endsWith('.other.example') ? [two, one] : servers, ...(onReply && { onReply }) },
      });
    // Another program may listen at the TCP port with the number of the UDP port.
    const server = await start().catch(start).catch(start);
    closers.push(() => server.close());
    return server.port;
  }

  test('forwards what it has no answer for, over UDP and TCP', async () => {
    const { port } = await startServer(one, (query) => [replyOf(query, '192.168.50.9')]);
    const served = await serve([one], port);
    const [reply = Buffer.alloc(12)] = await askUdp(served, [queryOf(name)]);
    expect(addressesIn(reply)).toEqual(['192.168.50.9']);
    const [local = Buffer.alloc(12)] = await askUdp(served, [queryOf('local.example')]);
    expect(addressesIn(local)).toEqual(['10.77.0.1']);
    const overTcp = await serve([two], await startTcp(two, (query) => replyOf(query, '192.168.50.10')));
    const client = await connectTcp(overTcp);
    closers.push(() => client.socket.destroy());
    client.socket.write(framedQueryOf(name));
    const [answered = Buffer.alloc(12)] = await vi.waitUntil(() => client.replies().length > 0 && client.replies());
    expect(addressesIn(answered)).toEqual(['192.168.50.10']);
  });

  test('forwards from its address, or from the source that it has', async () => {
    const { port, queries } = await startServer(one, (query) => [replyOf(query, '192.168.50.9')]);
    await askUdp(await serve([one], port), [queryOf(name)]);
    await askUdp(await serve([one], port, { source: here }), [queryOf(name)]);
    expect(queries.map(({ source }) => source)).toEqual(['127.0.0.1', here]);
  });

  test.each([
    ['of another server', 'db.other.example', [{ type: 'A', name, ttl: 60, data: '203.0.113.66' }]],
    ['of its own', 'local.example', [{ type: 'A', name, ttl: 5, data: '10.77.0.1' }]],
  ])('does not believe a server about names %s', async (_, target, expected) => {
    const { port } = await startServer(one, (query) => {
      const { id = 0, questions = [] } = decode(query);
      const record = { type: 'A' as const, name: target, ttl: 60, data: '203.0.113.66' };
      const answers = [{ type: 'CNAME' as const, name, ttl: 60, data: target }, record];
      return [encode({ type: 'response', id, questions, answers, additionals: [record] })];
    });
    const [reply = Buffer.alloc(12)] = await askUdp(await serve([one], port), [queryOf(name)]);
    const { answers, additionals } = decode(reply);
    expect(answers).toMatchObject(expected);
    expect(additionals).toEqual([]);
  });

  test('truncates a reply that is too long for the client', async () => {
    const { port } = await startServer(one, (query) => {
      const { id = 0, questions = [] } = decode(query);
      const answers = Array.from({ length: 60 }, () => ({ type: 'A' as const, name, ttl: 60, data: '192.168.50.9' }));
      return [encode({ type: 'response', id, questions, answers })];
    });
    const served = await serve([one], port);
    const [plain = Buffer.alloc(12)] = await askUdp(served, [queryOf(name)]);
    expect(decode(plain)).toMatchObject({ flag_tc: true, answers: [] });
    const [large = Buffer.alloc(12)] = await askUdp(served, [queryOf(name, 'A', { additionals: [edns(4096)] })]);
    expect(addressesIn(large)).toHaveLength(60);
  });

  test.each([
    ['a pointer to itself', 'c02100010001000000000004c0000201'],
    ['data beyond its end', 'c00c00010001000000000fff'],
    ['a record that is cut', 'c00c0001'],
  ])('fails if a server replies with %s', async (_, record) => {
    const { port } = await startServer(one, (query) => {
      const reply = Buffer.concat([query, Buffer.from(record, 'hex')]);
      reply.writeUInt16BE(0x8180, 2);
      reply.writeUInt16BE(1, 6);
      return [reply];
    });
    const [reply = Buffer.alloc(12)] = await askUdp(await serve([one], port), [queryOf(name)]);
    expect(rcodeOf(reply)).toBe(2);
  });

  test('goes to the next server if a reply has a loop, and follows failures', async () => {
    const { port } = await startServer(one, (query) => {
      const { id = 0, questions = [] } = decode(query);
      return [
        encode({ type: 'response', id, questions, answers: [{ type: 'CNAME' as const, name, ttl: 60, data: name }] }),
      ];
    });
    const followed: unknown[] = [];
    const alone = await serve([one], port, { onReply: (failure) => followed.push(failure) });
    expect((await askUdp(alone, [queryOf(name)])).map(rcodeOf)).toEqual([2]);
    await startServer(two, (query) => [replyOf(query, '192.168.50.9')], port);
    const both = await serve([one, two], port, { onReply: (failure) => followed.push(failure) });
    const [reply = Buffer.alloc(12)] = await askUdp(both, [queryOf(name)]);
    expect(addressesIn(reply)).toEqual(['192.168.50.9']);
    expect(followed).toEqual(['unreadable', null]);
  });

  test('replies that it failed if no server replies', async () => {
    const { port } = await startServer(two, () => []);
    const served = await serve([one], port);
    const [reply = Buffer.alloc(12)] = await askUdp(served, [queryOf(name)]);
    expect(rcodeOf(reply)).toBe(2);
    expect(reply.readUInt16BE(0)).toBe(77);
  });
});
