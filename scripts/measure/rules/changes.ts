import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'undici';
import type { Comparison } from '../comparison.ts';
import {
  type Clients,
  change,
  comeToWait,
  logIn,
  type Round,
  receiveReplies,
  type Server,
  send,
  untilAllWait,
} from '../service/changing.ts';
import { type DatabaseKind, openDatabase } from '../service/database.ts';
import { Worker } from '../service/process.ts';
import type { Member } from '../service/push-messages.ts';
import { taggedRules } from './rule-sets.ts';

const peers = 10_000;
/** How many rules the network has, and how many changes of them are measured. */
const sizes = [
  { rules: 20, rounds: 5 },
  { rules: 1000, rounds: 3 },
];
const databases = { sqlite: 'SQLite', postgres: 'PostgreSQL' } as const satisfies Record<DatabaseKind, string>;

/** One change, with all that follows: replies, and that all wait again. */
interface Cost extends Round {
  /** Milliseconds of processor time, of the control plane and its database. */
  readonly cpuMs: number;
}

/** A change of rules in a network whose peers all wait, against a change of one peer. */
export async function compareChanges(): Promise<Comparison[]> {
  const comparisons: Comparison[] = [];
  for (const kind of Object.keys(databases) as DatabaseKind[]) comparisons.push(...(await measure(kind)));
  return comparisons;
}

async function measure(kind: DatabaseKind): Promise<Comparison[]> {
  const folder = mkdtempSync(join(tmpdir(), 'cpn-bench-'));
  const database = await openDatabase(kind, folder);
  const server: Server = new Worker('push-server.ts');
  const clients: Clients = new Worker('push-clients.ts');
  try {
    const order = { kind: 'serve', folder, database: database.url, networks: 1, peers, isTagged: true } as const;
    const { url, owner, members } = await server.request(order, 'serving');
    const [first] = members;
    if (first === undefined) throw new Error('there are no peers');
    const client = new Client(url);
    const admin = { admin: client, token: await logIn(client, owner) };
    await comeToWait(server, clients, { url, members, deltas: true, reconnect: false });
    const expected = [{ clients, replies: peers }];
    const path = `/api/networks/${first.network}/rules`;
    const measureCost = async (make: () => Promise<Round>): Promise<Cost> => {
      const before = (await untilAllWait(server, peers)).cpuMs + database.cpuMs();
      const made = await make();
      return { ...made, cpuMs: (await untilAllWait(server, peers)).cpuMs + database.cpuMs() - before };
    };
    const comparisons: Comparison[] = [];
    for (const { rules, rounds } of sizes) {
      const [ours, theirs]: [Cost[], Cost[]] = [[], []];
      // The first round warms up.
      for (let round = 0; round <= rounds; round += 1) {
        const member = members[round] as Member;
        const one = await measureCost(() => change(admin, member, rules + round, expected));
        const all = await measureCost(() =>
          receiveReplies(() => send(client, 'PUT', path, taggedRules(rules, round), admin.token), expected),
        );
        process.stderr.write(`${kind}, ${rules} rules: ${all.cpuMs.toFixed(0)} by ${one.cpuMs.toFixed(0)} ms of CPU\n`);
        if (round === 0) continue;
        ours.push(all);
        theirs.push(one);
      }
      comparisons.push(...toComparisons(`${rules} rules`, kind, ours, theirs));
    }
    await client.close();
    return comparisons;
  } finally {
    await clients.end();
    await server.end({ kind: 'end' });
    await database.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

function toComparisons(
  rules: string,
  kind: DatabaseKind,
  ours: readonly Cost[],
  theirs: readonly Cost[],
): Comparison[] {
  const what = `a change of ${rules}, ${peers} peers wait, ${databases[kind]}`;
  const row = (name: string, unit: Comparison['unit'], of: (cost: Cost) => number): Comparison => ({
    ...{ what: `${what}: ${name}`, baseline: 'a change of one peer', unit, target: null },
    ...{ ours: ours.map(of), theirs: theirs.map(of) },
  });
  return [
    row('processor time', 'ms of CPU', ({ cpuMs }) => cpuMs),
    row('until its answer', 'ms', ({ acknowledged }) => acknowledged),
    row('from there until the last peer has it', 'ms', ({ delays }) => Math.max(...delays)),
    row('a reply', 'bytes', ({ bytes }) => bytes.reduce((sum, each) => sum + each, 0) / bytes.length),
  ];
}
