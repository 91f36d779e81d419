/**
 * Measures the name server over loopback, with a network of 10,000 peers: queries per second and
 * latency with many clients at once, and latency at a fixed rate. Run it by hand:
 * `node scripts/measure-names.ts`. Client and server are processes of their own.
 */
import { fork } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { encode } from 'dns-packet';
import { answer, buildZones, indexZones } from '../src/core/names/zone.ts';
import { addressAt, parseAddress, parsePrefix, rangeOf } from '../src/core/net/cidr.ts';
import { serveNames } from '../src/host/name-server/serve-names.ts';

const peers = 10_000;
/** Sources, because the server limits each one. More at once exceed its socket's receive buffer. */
const clients = 128;
const secondsEach = 3;
const rates = [1_000, 5_000];

if (process.send === undefined) await measure();
else await serve(process.send.bind(process));

async function serve(send: (message: unknown) => void): Promise<void> {
  const range = parsePrefix('10.77.0.0/16');
  const hosts = Array.from({ length: peers }, (_, at) => ({
    address: addressAt(rangeOf(range).first + BigInt(at + 1)),
    labels: [`peer-${at}`],
  }));
  const startedAt = performance.now();
  const zones = indexZones(buildZones({ label: 'office', range, hosts }));
  const buildMs = performance.now() - startedAt;
  const { port } = await serveNames({
    address: parseAddress('127.0.0.1'),
    port: 0,
    isAllowed: () => true,
    answer: (question) => answer(zones, question),
  });
  process.on('message', () => {
    send({ cpu: process.cpuUsage(), rss: process.memoryUsage.rss() });
  });
  process.on('disconnect', () => process.exit());
  send({ port, buildMs });
}

interface Usage {
  readonly cpu: NodeJS.CpuUsage;
  readonly rss: number;
}

async function measure(): Promise<void> {
  const server = fork(import.meta.filename);
  const [{ port, buildMs }] = (await once(server, 'message')) as [{ port: number; buildMs: number }];
  const usage = async (): Promise<Usage> => {
    const reply = once(server, 'message');
    server.send('usage');
    return (await reply)[0];
  };
  print(`zones of ${peers} peers: built in ${buildMs.toFixed(0)} ms`);
  const sockets = await openSockets();
  const run = async (title: string, load: (ask: () => void) => Promise<void>) => {
    const before = await usage();
    const startedAt = performance.now();
    const { sent, times } = await ask(sockets, port, load);
    const seconds = (performance.now() - startedAt) / 1000;
    const after = await usage();
    const cpu = (after.cpu.user + after.cpu.system - before.cpu.user - before.cpu.system) / 1000;
    const perQuery = (cpu / times.length) * 1000;
    print(
      `${title}: ${Math.round(times.length / seconds)} replies/s, ${sent - times.length} lost; p50 ${percentile(times, 0.5)}, p99 ${percentile(times, 0.99)}, most ${percentile(times, 1)} ms; server ${perQuery.toFixed(0)} µs CPU a query, ${Math.round(after.rss / 1e6)} MB`,
    );
  };
  await run('warm-up', () => sleep(1_000));
  await run(`${clients} clients, one query each at a time`, () => sleep(secondsEach * 1000));
  for (const rate of rates) await run(`${rate} queries/s`, (send) => sendAtRate(rate, send));
  for (const socket of sockets) socket.close();
  server.disconnect();
}

async function openSockets(): Promise<Socket[]> {
  return Promise.all(
    Array.from({ length: clients }, async (_, at) => {
      const socket = createSocket('udp4');
      socket.bind(0, `127.1.${at >> 8}.${at & 255}`);
      await once(socket, 'listening');
      return socket;
    }),
  );
}

/**
 * The milliseconds of each reply. If `load` sends nothing itself, each socket sends its next query
 * after each reply.
 */
async function ask(
  sockets: readonly Socket[],
  port: number,
  load: (send: () => void) => Promise<void>,
): Promise<{ sent: number; times: number[] }> {
  const times: number[] = [];
  const sentAt = new Map<number, number>();
  let sent = 0;
  let isLoaded = true;
  const send = (socket: Socket) => {
    const id = sent & 65_535;
    sent += 1;
    sentAt.set(id, performance.now());
    socket.send(queryOf(id), port, '127.0.0.1');
  };
  let isPaced = false;
  for (const socket of sockets) {
    socket.removeAllListeners('message').on('message', (reply) => {
      times.push(performance.now() - (sentAt.get(reply.readUInt16BE(0)) ?? 0));
      if (isLoaded && !isPaced) send(socket);
    });
  }
  const paced = load(() => {
    isPaced = true;
    const socket = sockets[sent % sockets.length];
    if (socket !== undefined) send(socket);
  });
  if (!isPaced) for (const socket of sockets) send(socket);
  await paced;
  isLoaded = false;
  await sleep(200);
  return { sent, times };
}

async function sendAtRate(rate: number, send: () => void): Promise<void> {
  const startedAt = performance.now();
  for (let sent = 0; sent < rate * secondsEach; ) {
    const due = ((performance.now() - startedAt) / 1000) * rate;
    for (; sent <= due; sent += 1) send();
    await sleep(1);
  }
}

/** Names, addresses, other types and missing names in turn. */
function queryOf(id: number): Buffer {
  const peer = (id * 7919) % peers;
  const number = 10 * 2 ** 24 + 77 * 2 ** 16 + peer + 1;
  const reversed = `${addressAt(BigInt(number)).split('.').reverse().join('.')}.in-addr.arpa`;
  const questions = [
    { name: `peer-${peer}.office.cpn.internal`, type: 'A' as const },
    { name: `peer-${peer}.office.cpn.internal`, type: 'AAAA' as const },
    { name: reversed, type: 'PTR' as const },
    { name: `none-${peer}.office.cpn.internal`, type: 'A' as const },
  ];
  return encode({ type: 'query', id, flags: 0x100, questions: questions.slice(id % 4, (id % 4) + 1) });
}

function percentile(times: readonly number[], part: number): string {
  const sorted = times.toSorted((a, b) => a - b);
  return (sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? Number.NaN).toFixed(2);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
