import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';
import {
  type Admin,
  type Clients,
  change,
  comeToWait,
  logIn,
  type Server,
  type Summary,
  summarise,
  untilAllWait,
} from './changing.ts';
import { type Database, type DatabaseKind, openDatabase } from './database.ts';
import { enrollAll, invite, makeNetworks } from './enrolling.ts';
import { Worker } from './process.ts';
import type { Member, Used } from './push-messages.ts';

/** A control plane with all its connectors. */
export interface SimulationCase {
  readonly networks: number;
  /** Of each network. */
  readonly peers: number;
  readonly database: DatabaseKind;
  /**
   * Processes of the control plane on the one database; changes are made at the first, and all of
   * them have their share of the rest.
   */
  readonly replicas: number;
  readonly changes: number;
  /** Seconds in which all wait and nothing changes. */
  readonly idleSeconds: number;
  /** Seconds between two reports of each peer; null for none. */
  readonly reportSeconds: number | null;
  /**
   * Of each process of the control plane, as far as the machine lets it have that many connections.
   */
  readonly waitingAtMost: number;
  /** A folder for profiles of the processor time of the control plane. */
  readonly profile: string | null;
}

/** What a phase cost: of all replicas together. */
export interface Cost {
  readonly seconds: number;
  readonly planeCpuMs: number;
  readonly databaseCpuMs: number;
  readonly statements: number;
  readonly commits: number;
  /** Written to the log of the database; null where it is not counted. */
  readonly loggedBytes: number | null;
}

export interface SimulationResult extends Omit<SimulationCase, 'waitingAtMost' | 'profile'>, Summary {
  readonly waiting: number;
  readonly enrollments: number;
  readonly enrollmentsPerSecond: number;
  readonly enrolling: Cost;
  readonly changing: Cost;
  readonly idle: Cost;
  /** As long again, with reports; null without. */
  readonly reporting: Cost | null;
  /** Of each replica, while all wait. */
  readonly replicasHold: readonly (Pick<Used, 'waiting' | 'rssMiB'> & { readonly files: number })[];
  readonly databaseBytes: number;
}

/** Hosts that enrol at the same time, within the control plane's limit of what it does at once. */
const enrollingAtOnce = 16;

/** Simulates one case on processes of its own. */
export async function simulate(asked: SimulationCase): Promise<SimulationResult> {
  const folder = mkdtempSync(join(tmpdir(), 'cpn-simulation-'));
  const database = await openDatabase(asked.database, folder);
  const profiling = asked.profile === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${asked.profile}`];
  const replicas = Array.from({ length: asked.replicas }, () => ({
    server: new Worker('push-server.ts', profiling) as Server,
    clients: new Worker('push-clients.ts') as Clients,
  }));
  try {
    return await run(asked, folder, database, replicas);
  } finally {
    for (const { server, clients } of replicas) {
      await clients.end();
      await server.end({ kind: 'end' });
    }
    await database.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Replica {
  readonly server: Server;
  readonly clients: Clients;
}

/** Those who wait at one of them. */
interface Crowd {
  readonly clients: Clients;
  readonly url: string;
  readonly waiting: readonly Member[];
}

async function run(asked: SimulationCase, folder: string, database: Database, replicas: readonly Replica[]) {
  const urls: string[] = [];
  let owner = { email: '', password: '' };
  for (const { server } of replicas) {
    const order = { kind: 'serve', folder, database: database.url, networks: 0, peers: 0 } as const;
    const serving = await server.request(order, 'serving');
    owner = serving.owner;
    urls.push(serving.url);
  }
  const client = new Pool(urls[0] ?? '', { connections: 8 });
  const admin: Admin = { admin: client, token: await logIn(client, owner) };
  const meter = createMeter(database, replicas);
  const invitations = await invite(admin, await makeNetworks(admin, asked.networks), asked.peers);
  const enrolling = await meter(() => enrollAll(urls, invitations, enrollingAtOnce));
  const members = enrolling.result;
  const crowds = replicas.map(({ server, clients }, index) => {
    const mine = members.filter((_, number) => number % replicas.length === index);
    return { server, clients, url: urls[index] ?? '', waiting: mine.slice(0, asked.waitingAtMost) };
  });
  for (const { server, clients, url, waiting: members } of crowds) {
    await comeToWait(server, clients, { url, members, deltas: true, reconnect: false });
  }
  const wait = () => meter(() => delay(asked.idleSeconds * 1000));
  const idle = await wait();
  const settled = () => Promise.all(crowds.map(({ server, waiting }) => untilAllWait(server, waiting.length)));
  const hold = (await settled()).map(({ waiting, rssMiB }, at) => {
    return { waiting, rssMiB, files: replicas[at]?.server.countFiles() ?? 0 };
  });
  const changing = await meter(async () => {
    const rounds = [];
    for (let number = 0; number < asked.changes; number += 1) {
      const member = changedAt(members, number);
      const expected = crowds.map(({ clients, waiting }) => {
        return { clients, replies: waiting.filter(({ network }) => network === member.network).length };
      });
      rounds.push(await change(admin, member, number, expected));
      await settled();
    }
    return rounds;
  });
  if (asked.reportSeconds !== null) await startReports(crowds, asked.reportSeconds);
  const reporting = asked.reportSeconds === null ? null : await wait();
  await client.close();
  const { waitingAtMost: _, profile: __, ...facts } = asked;
  return {
    ...{ ...facts, waiting: crowds.reduce((sum, { waiting }) => sum + waiting.length, 0) },
    ...{ enrollments: members.length, enrollmentsPerSecond: members.length / enrolling.cost.seconds },
    ...{ enrolling: enrolling.cost, changing: changing.cost, ...summarise(changing.result) },
    ...{ idle: idle.cost, reporting: reporting?.cost ?? null },
    replicasHold: hold,
    databaseBytes: await database.bytes(),
  };
}

/** Returns once each has sent its first report, which is all that it observes. */
async function startReports(crowds: readonly Crowd[], seconds: number): Promise<void> {
  for (const { clients, url, waiting: members } of crowds) clients.send({ kind: 'report', url, members, seconds });
  await delay(seconds * 1000);
}

/** Peers far from each other, one after another, so that networks take turns. */
function changedAt(members: readonly Member[], number: number): Member {
  return members[(number * 7919) % members.length] as Member;
}

/** Does a piece of work, and returns what the control plane and its database spent meanwhile. */
function createMeter(database: Database, replicas: readonly Replica[]) {
  const read = async () => {
    const used = await Promise.all(replicas.map(({ server }) => server.request({ kind: 'look' }, 'looked')));
    const total = (of: (used: Used) => number) => used.reduce((sum, each) => sum + of(each), 0);
    return {
      ...{
        seconds: performance.now() / 1000,
        planeCpuMs: total(({ cpuMs }) => cpuMs),
        databaseCpuMs: database.cpuMs(),
      },
      ...{ statements: total(({ statements }) => statements), commits: total(({ commits }) => commits) },
      loggedBytes: await database.logged(),
    };
  };
  return async <Result>(work: () => Promise<Result>): Promise<{ result: Result; cost: Cost }> => {
    const before = await read();
    const result = await work();
    const after = await read();
    const cost = {
      ...{ seconds: after.seconds - before.seconds, planeCpuMs: after.planeCpuMs - before.planeCpuMs },
      ...{ databaseCpuMs: after.databaseCpuMs - before.databaseCpuMs, commits: after.commits - before.commits },
      statements: after.statements - before.statements,
      loggedBytes: after.loggedBytes === null ? null : after.loggedBytes - (before.loggedBytes ?? 0),
    };
    return { result, cost };
  };
}
