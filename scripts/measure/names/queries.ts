import { type ChildProcess, fork, spawn } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { encode } from 'dns-packet';
import { eventually } from '../../../test/lab/eventually.ts';
import type { Comparison } from '../comparison.ts';
import { quantileOf } from '../spread.ts';
import { namedPeers, peers } from './named-peers.ts';

/** Sockets, with one query each at a time. */
const clients = 64;
const queriesEach = 10_000;
const rounds = 5;
/** Queries a second, and how many of them, where their times are measured. */
const [rate, paced] = [1_000, 3_000];

/**
 * The daemon's server of names against dnsmasq with the same names in a hosts file: the time of
 * 10,000 queries by many clients, and the times of queries at a fixed rate.
 */
export async function compareQueries(): Promise<Comparison[]> {
  const folder = await mkdtemp(join(tmpdir(), 'cpn-names-'));
  const children: ChildProcess[] = [];
  try {
    const worker = fork(join(import.meta.dirname, 'name-worker.ts'));
    children.push(worker);
    const [own] = (await once(worker, 'message')) as [number];
    const other = await startDnsmasq(folder, children);
    const ports = { ours: own, theirs: other };
    const flood = { ours: [] as number[], theirs: [] as number[] };
    const times = { ours: [] as number[], theirs: [] as number[] };
    // The first round warms up.
    for (let round = 0; round <= rounds; round += 1) {
      for (const who of ['ours', 'theirs'] as const) {
        const took = await floodPort(ports[who]);
        if (round > 0) flood[who].push(took);
      }
    }
    for (const who of ['ours', 'theirs'] as const) times[who].push(...(await pacePort(ports[who])));
    const what = `${peers} peers:`;
    const baseline = 'dnsmasq with a hosts file';
    return [
      { what: `${what} ${queriesEach} queries, ${clients} at once`, baseline, unit: 'ms', ...flood, target: null },
      {
        ...{ what: `${what} p99 at ${rate} queries a second`, baseline, unit: 'ms', target: null },
        ...{ ours: [quantileOf(times.ours, 0.99)], theirs: [quantileOf(times.theirs, 0.99)] },
      },
    ];
  } finally {
    for (const child of children) child.kill();
    await rm(folder, { recursive: true });
  }
}

async function startDnsmasq(folder: string, children: ChildProcess[]): Promise<number> {
  const hosts = join(folder, 'hosts');
  const lines = namedPeers().map(({ address, labels }) => `${address} ${labels[0]}.office.cpn.internal\n`);
  await writeFile(hosts, lines.join(''));
  const port = 20_053;
  const settings = [
    '--no-resolv',
    '--no-hosts',
    `--addn-hosts=${hosts}`,
    '--listen-address=127.0.0.1',
    '--bind-interfaces',
  ];
  const flags = ['--keep-in-foreground', '--conf-file=/dev/null', `--port=${port}`, '--user=root', '--pid-file='];
  children.push(spawn('dnsmasq', [...flags, ...settings], { stdio: 'ignore' }));
  await eventually('dnsmasq answers', async () => (await askOnce(port)) !== null, { timeoutMs: 20_000 });
  return port;
}

async function askOnce(port: number): Promise<Buffer | null> {
  const [socket] = await openSockets(1);
  if (socket === undefined) return null;
  socket.on('error', () => {});
  socket.send(queryOf(0), port, '127.0.0.1');
  const replied = once(socket, 'message').then(([reply]) => reply as Buffer);
  const reply = await Promise.race([replied, delay(300, null)]);
  socket.close();
  return reply;
}

/** Milliseconds for all queries. */
async function floodPort(port: number): Promise<number> {
  const sockets = await openSockets(clients);
  const started = performance.now();
  let sent = 0;
  await Promise.all(
    sockets.map(async (socket) => {
      while (sent < queriesEach) {
        const replied = once(socket, 'message');
        socket.send(queryOf(sent), port, '127.0.0.1');
        sent += 1;
        await replied;
      }
      socket.close();
    }),
  );
  return performance.now() - started;
}

/** The milliseconds of each query. */
async function pacePort(port: number): Promise<number[]> {
  const [socket] = await openSockets(1);
  if (socket === undefined) throw new Error('no socket');
  const sentAt = new Map<number, number>();
  const times: number[] = [];
  socket.on('message', (reply) => void times.push(performance.now() - (sentAt.get(reply.readUInt16BE(0)) ?? 0)));
  const started = performance.now();
  for (let sent = 0; sent < paced; ) {
    const due = Math.min(paced, ((performance.now() - started) / 1000) * rate);
    for (; sent < due; sent += 1) {
      sentAt.set(sent, performance.now());
      socket.send(queryOf(sent), port, '127.0.0.1');
    }
    await delay(1);
  }
  await delay(500);
  socket.close();
  if (times.length < paced) throw new Error(`${paced - times.length} of ${paced} queries had no reply`);
  return times;
}

async function openSockets(count: number): Promise<Socket[]> {
  return Promise.all(
    Array.from({ length: count }, async () => {
      const socket = createSocket('udp4');
      socket.bind(0, '127.0.0.1');
      await once(socket, 'listening');
      return socket;
    }),
  );
}

/** Addresses and names in turn. */
function queryOf(number: number): Buffer {
  const peer = (number * 7919) % peers;
  const name = `${number % 4 === 0 ? 'none' : 'peer'}-${peer}.office.cpn.internal`;
  return encode({ type: 'query', id: number & 65_535, flags: 0x100, questions: [{ name, type: 'A' }] });
}
