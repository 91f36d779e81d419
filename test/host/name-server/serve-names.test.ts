import { execFileSync } from 'node:child_process';
import { createSocket, Socket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { NamesNotServed } from '../../../src/core/errors/index.ts';
import { type Answer, answer, buildZones, indexZones, type Question } from '../../../src/core/names/zone.ts';
import { addressAt, rangeOf } from '../../../src/core/net/cidr.ts';
import { type ServingNames, serveNames } from '../../../src/host/name-server/serve-names.ts';
import { address, prefix } from '../../core/samples.ts';
import { askUdp, connectTcp, dataOf, edns, framedQueryOf, messageOf, queryOf, rcodeOf } from './clients.ts';

const range = prefix('10.77.0.0/16');
const hosts = Array.from({ length: 10_000 }, (_, at) => ({
  address: addressAt(rangeOf(range).first + BigInt(at + 1)),
  labels: [`peer-${at + 1}`, `old-${at + 1}`],
}));
const zones = indexZones(buildZones({ label: 'office', range, hosts }));
const loopback = address('127.0.0.1');
const db = 'peer-1.office.cpn.internal';
const large: (question: Question) => Answer = ({ name }) => ({
  rcode: 'NOERROR',
  answers: Array.from({ length: 1500 }, () => ({ type: 'A', name, ttl: 5, data: '10.77.0.1' })),
  authorities: [],
});

const servers: ServingNames[] = [];
async function serve(changes: Partial<Parameters<typeof serveNames>[0]> = {}): Promise<ServingNames> {
  const isAllowed = (source: string) => source !== '127.0.0.9';
  const ofZones = (question: Question) => answer(zones, question);
  for (let tries = 1; ; tries += 1) {
    try {
      const server = await serveNames({ address: loopback, port: 0, isAllowed, answer: ofZones, ...changes });
      servers.push(server);
      return server;
    } catch (error) {
      // Another program may have the port over TCP that is free over UDP.
      if (tries === 5 || changes.port !== undefined) throw error;
    }
  }
}

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

describe('a resolver', () => {
  it('resolves names and addresses', async () => {
    const { port } = await serve();
    const resolver = new Resolver({ timeout: 2_000, tries: 1 });
    resolver.setServers([`127.0.0.1:${port}`]);
    expect(await resolver.resolve4('Peer-10000.office.cpn.internal', { ttl: true })).toEqual([
      { address: '10.77.39.16', ttl: 5 },
    ]);
    expect(await resolver.resolve4('old-300.office.cpn.internal')).toEqual(['10.77.1.44']);
    expect(await resolver.reverse('10.77.1.44')).toEqual(['peer-300.office.cpn.internal']);
    expect(await resolver.resolveSoa('office.cpn.internal')).toMatchObject({
      nsname: 'office.cpn.internal',
      minttl: 5,
    });
    await expect(resolver.resolve6(db)).rejects.toMatchObject({ code: 'ENODATA' });
    await expect(resolver.resolveMx(db)).rejects.toMatchObject({ code: 'ENODATA' });
    await expect(resolver.resolve4('none.office.cpn.internal')).rejects.toMatchObject({ code: 'ENOTFOUND' });
    await expect(resolver.reverse('10.77.255.1')).rejects.toMatchObject({ code: 'ENOTFOUND' });
    await expect(resolver.resolve4('example.com')).rejects.toMatchObject({ code: 'EREFUSED' });
  });

  it('uses TCP for a reply that was truncated', async () => {
    const { port } = await serve({ answer: large });
    const resolver = new Resolver({ timeout: 2_000, tries: 1 });
    resolver.setServers([`127.0.0.1:${port}`]);
    expect(await resolver.resolve4('many.office.cpn.internal')).toHaveLength(1500);
  });
});

describe('over UDP', () => {
  const hostile: [string, Buffer][] = [
    ['no bytes', Buffer.alloc(0)],
    ['11 bytes', Buffer.alloc(11)],
    ['a loop of pointers', messageOf([1], Buffer.of(0xc0, 12, 0, 1, 0, 1))],
    ['a cut question', queryOf(db).subarray(0, 20)],
    ['a reply', queryOf(db, 'A', { type: 'response' })],
    ['the most bytes of a datagram', Buffer.concat([queryOf(db), Buffer.alloc(65_507 - queryOf(db).length)])],
    ['zeros', Buffer.alloc(65_507)],
  ];

  it.each(hostile)('drops %s', async (_, message) => {
    const { port } = await serve();
    const replies = await askUdp(port, [message, queryOf(db, 'A', { id: 1 })], { expected: 2, within: 300 });
    expect(replies.map((reply) => reply.readUInt16BE(0))).toEqual([1]);
  });

  it('replies with a header to two questions and another operation', async () => {
    const { port } = await serve();
    const questions = [1, 2].map(() => ({ name: db, type: 'A' as const }));
    const messages = [queryOf(db, 'A', { questions }), queryOf(db, 'A', { flags: 5 << 11 })];
    const replies = await askUdp(port, messages, { expected: 2 });
    expect(replies.map((reply) => [reply.length, rcodeOf(reply)]).toSorted()).toEqual([
      [12, 1],
      [12, 4],
    ]);
  });

  it('refuses another class', async () => {
    const { port } = await serve();
    const [reply] = await askUdp(port, [queryOf(db, 'A', { questions: [{ name: db, type: 'A', class: 'CH' }] })]);
    expect(rcodeOf(reply ?? Buffer.alloc(4))).toBe(5);
  });

  it('limits the size of a reply', async () => {
    const { port } = await serve({ answer: large });
    const [reply] = await askUdp(port, [queryOf(db, 'A', { additionals: [edns(65_535)] })]);
    expect(reply?.length).toBeLessThan(100);
    expect((reply?.readUInt16BE(2) ?? 0) & 0x200).toBe(0x200);
  });

  it('drops a query from port 0, to which Node refuses to send', async () => {
    const bind = vi.spyOn(Socket.prototype, 'bind');
    const { port } = await serve();
    const socket = bind.mock.contexts[0] as Socket | undefined;
    bind.mockRestore();
    expect(socket?.address().port).toBe(port);
    socket?.emit('message', queryOf(db), { address: '127.0.0.1', family: 'IPv4', port: 0, size: 44 });
    expect(await askUdp(port, [queryOf(db)])).toHaveLength(1);
  });

  it('drops the queries of a source that is not allowed', async () => {
    const { port } = await serve();
    expect(await askUdp(port, [queryOf(db)], { from: '127.0.0.9', within: 300 })).toEqual([]);
    expect(await askUdp(port, [queryOf(db)], { from: '127.0.0.8' })).toHaveLength(1);
  });
});

describe('over TCP', () => {
  it('replies to messages in turn, however they are cut', async () => {
    const { port } = await serve();
    const client = await connectTcp(port);
    const names = [db, 'none.office.cpn.internal', 'old-2.office.cpn.internal', 'peer-3.office.cpn.internal'];
    const bytes = Buffer.concat(names.map((name, id) => framedQueryOf(name, 'A', { id })));
    for (let at = 0; at < bytes.length; at += 17) {
      client.socket.write(bytes.subarray(at, at + 17));
      await sleep(2);
    }
    await expect.poll(() => client.replies().map((reply) => reply.readUInt16BE(0))).toEqual([0, 1, 2, 3]);
    expect(client.replies().map(dataOf)).toEqual(['10.77.0.1', null, '10.77.0.2', '10.77.0.3']);
    client.socket.destroy();
  });

  it('replies to all messages of a client that ended its side, and then closes', async () => {
    const { port } = await serve({ answer: large });
    const client = await connectTcp(port);
    client.socket.end(Buffer.concat(Array.from({ length: 300 }, (_, id) => framedQueryOf(db, 'A', { id }))));
    await client.closed;
    expect(client.replies().map((reply) => reply.readUInt16BE(0))).toEqual(Array.from({ length: 300 }, (_, id) => id));
  });

  it('closes a connection whose message is longer than a query', async () => {
    const { port } = await serve();
    const startedAt = performance.now();
    for (const length of [1233, 65_535]) {
      const client = await connectTcp(port);
      client.socket.write(Buffer.concat([framedQueryOf(db), Buffer.of(length >> 8, length & 255), Buffer.alloc(50)]));
      await client.closed;
      expect(client.replies().length).toBeLessThanOrEqual(1);
    }
    expect(performance.now() - startedAt).toBeLessThan(4_000);
  });

  it('has no reply to hostile messages, and replies to the next one', async () => {
    const { port } = await serve();
    const client = await connectTcp(port);
    const loop = messageOf([1], Buffer.of(0xc0, 12, 0, 1, 0, 1));
    client.socket.write(Buffer.concat([Buffer.of(0, 0, 0, 1, 9, 0, loop.length), loop, framedQueryOf(db)]));
    await expect.poll(() => client.replies().map(dataOf)).toEqual(['10.77.0.1']);
    client.socket.destroy();
  });

  it('closes a connection after 5 s without a reply, also while its bytes arrive slowly', async () => {
    const { port } = await serve();
    const [idle, slow, empty] = [await connectTcp(port), await connectTcp(port), await connectTcp(port)];
    const startedAt = performance.now();
    const bytes = framedQueryOf('x'.repeat(60));
    const drip = setInterval(() => slow.socket.write(bytes.subarray(0, 1)), 200);
    const zeros = setInterval(() => empty.socket.write(Buffer.alloc(2)), 200);
    try {
      await Promise.race([Promise.all([idle.closed, slow.closed, empty.closed]), sleep(15_000)]);
    } finally {
      clearInterval(drip);
      clearInterval(zeros);
    }
    expect(performance.now() - startedAt).toBeGreaterThan(4_500);
    expect(performance.now() - startedAt).toBeLessThan(14_000);
  });

  it('stops to reply to a client that does not read', async () => {
    let replied = 0;
    const { port } = await serve({
      answer: (question) => {
        replied += 1;
        return large(question);
      },
    });
    const client = await connectTcp(port);
    client.socket.pause();
    client.socket.write(Buffer.concat(Array.from({ length: 390 }, () => framedQueryOf(db))));
    await sleep(2_000);
    // 390 replies of 60 kB are 23 MB; the kernel keeps some of them.
    expect(replied).toBeGreaterThan(0);
    expect(replied).toBeLessThan(390);
    client.socket.destroy();
  });

  it('has no connection of a source that is not allowed', async () => {
    const { port } = await serve();
    const foreign = await connectTcp(port, '127.0.0.9');
    await foreign.closed;
  });

  it('has 32 connections, of which a further one ends the first without a query', async () => {
    const { port } = await serve();
    const clients = [];
    for (let count = 0; count < 33; count += 1) clients.push(await connectTcp(port));
    await clients[0]?.closed;
    expect(clients.map((client) => client.isClosed())).toEqual([true, ...Array.from({ length: 32 }, () => false)]);
    clients[32]?.socket.end(framedQueryOf(db));
    await clients[32]?.closed;
    expect(clients[32]?.replies()).toHaveLength(1);
    expect(await askUdp(port, [queryOf(db)])).toHaveLength(1);
    for (const { socket } of clients) socket.destroy();
  });
});

describe('a server', () => {
  it('closes with open connections, at once and more than once, and frees its port', async () => {
    const server = await serve();
    const client = await connectTcp(server.port);
    client.socket.write(Buffer.of(0));
    const startedAt = performance.now();
    await Promise.all([server.close(), server.close()]);
    await server.close();
    await client.closed;
    expect(performance.now() - startedAt).toBeLessThan(2_000);
    expect(await askUdp(server.port, [queryOf(db)], { within: 200 })).toEqual([]);
    expect((await serve({ port: server.port })).port).toBe(server.port);
  });

  it('leaves nothing that keeps the process running', () => {
    const script = `
      const { serveNames } = await import('./src/host/name-server/serve-names.ts');
      const { connect } = await import('node:net');
      const server = await serveNames({ address: '127.0.0.1', port: 0, isAllowed: () => true, answer: () => null });
      const socket = connect(server.port, '127.0.0.1');
      await new Promise((done) => socket.once('connect', done));
      await server.close();
    `;
    execFileSync(process.execPath, ['--input-type=module', '-e', script], { timeout: 4_500 });
  });

  it.each(['udp', 'tcp'])(
    'refuses a port that another program has over %s, and keeps none of its own',
    async (kind) => {
      const other = createServer();
      const datagrams = createSocket('udp4');
      await new Promise<void>((bound) => other.listen(0, '127.0.0.1', bound));
      const { port } = other.address() as { port: number };
      if (kind === 'udp') {
        await new Promise((closed) => other.close(closed));
        await new Promise<void>((bound) => datagrams.bind(port, '127.0.0.1', bound));
      }
      const failed = serveNames({ address: loopback, port, isAllowed: () => true, answer: large });
      await expect(failed).rejects.toThrow(NamesNotServed);
      await expect(failed).rejects.toThrow(
        `names cannot be served on 127.0.0.1 port ${port}: address already in use (EADDRINUSE); stop the program that listens there (find it with "ss -lntup")`,
      );
      if (kind === 'udp') await new Promise<void>((closed) => datagrams.close(closed));
      else await new Promise((closed) => other.close(closed));
      expect((await serve({ port })).port).toBe(port);
    },
  );

  it('refuses an address that the host does not have', async () => {
    const failed = serveNames({ address: address('192.0.2.1'), port: 0, isAllowed: () => true, answer: large });
    await expect(failed).rejects.toMatchObject({
      name: 'NamesNotServed',
      facts: { address: '192.0.2.1', port: 0, code: 'EADDRNOTAVAIL' },
      isRetryable: true,
    });
  });
});
