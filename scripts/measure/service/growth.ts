import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'undici';
import type { Comparison } from '../comparison.ts';
import { logIn, type Server } from './changing.ts';
import { enrollAll, invite } from './enrolling.ts';
import { Worker } from './process.ts';
import { measurePush, type PushResult } from './push.ts';

/** Peers of a network, from few to many, and how many changes of it are measured. */
const sizes = [
  { peers: 10, changes: 200 },
  { peers: 100, changes: 100 },
  { peers: 1000, changes: 30 },
  { peers: 10_000, changes: 5 },
];
const rounds = 3;
/** Enrolments of a round. */
const hosts = 40;

interface Figures {
  readonly peers: number;
  readonly pushes: readonly PushResult[];
  readonly enrollments: readonly Enrollments[];
}

/**
 * What a change costs those who wait, and what an enrolment does, as a network grows from ten peers
 * to ten thousand. Leaves out the sizes above `peersAtMost`.
 */
export async function compareGrowth(peersAtMost = Number.POSITIVE_INFINITY): Promise<Comparison[]> {
  const figures: Figures[] = [];
  for (const { peers, changes } of sizes.filter((size) => size.peers <= peersAtMost)) {
    const pushes: PushResult[] = [];
    const common = { deltas: true, reconnect: false, profile: null };
    for (let round = 0; round < rounds; round += 1)
      pushes.push(await measurePush({ networks: 1, peers, changes, ...common }));
    figures.push({ peers, pushes, enrollments: await measureEnrollments(peers) });
  }
  const [few, ...more] = figures;
  return few === undefined ? [] : more.flatMap((many) => compareWithFew(many, few));
}

function compareWithFew(many: Figures, few: Figures): Comparison[] {
  const baseline = `${few.peers} peers`;
  const name = (what: string) => `${what}, ${many.peers} peers`;
  const push = (of: (result: PushResult) => number) => ({ ours: many.pushes.map(of), theirs: few.pushes.map(of) });
  const enrollment = (of: (result: Enrollments) => number) => {
    return { ours: many.enrollments.map(of), theirs: few.enrollments.map(of) };
  };
  return [
    {
      ...{ what: name('a change, for each who waits'), baseline, unit: 'bytes' },
      ...{ ...push(({ bytesPerReply }) => bytesPerReply), target: { ratioAtMost: 1.1, text: '≤ 1.1' } },
    },
    {
      ...{ what: name('a change, control plane, for each who waits'), baseline, unit: 'ms of CPU' },
      ...push((result) => result.serverCpuMsPerChange / result.peers),
      target: { ratioAtMost: 1, text: '≤ 1' },
    },
    {
      ...{ what: name('a change, until it is at 99 of 100'), baseline, unit: 'ms' },
      ...{ ...push(({ delay }) => delay.p99), target: null },
    },
    {
      ...{ what: name('an enrolment'), baseline, unit: 'statements' },
      ...{ ...enrollment(({ statements }) => statements), target: { ratioAtMost: 1.1, text: '≤ 1.1' } },
    },
    {
      // The reply is the map: its bytes are what grows.
      ...{ what: name('an enrolment, its map included'), baseline, unit: 'ms' },
      ...{ ...enrollment(({ ms }) => ms), target: null },
    },
  ];
}

/** Of a round, for each enrolment. */
interface Enrollments {
  readonly ms: number;
  readonly statements: number;
}

/** Enrols hosts in networks of about so many peers, some at once, each over HTTP with a key. */
async function measureEnrollments(peers: number): Promise<Enrollments[]> {
  const folder = mkdtempSync(join(tmpdir(), 'cpn-bench-'));
  const server: Server = new Worker('push-server.ts');
  const each = Math.max(2, Math.min(hosts, peers / 50));
  try {
    // The same networks again where they do not grow much by it, so that their maps are cached as
    // in a running control plane.
    const networks = (hosts / each) * (peers >= 100 ? 1 : 1 + rounds);
    const serving = await server.request({ kind: 'serve', folder, database: null, networks, peers }, 'serving');
    const client = new Client(serving.url);
    const admin = { admin: client, token: await logIn(client, serving.owner) };
    const ids = [...new Set(serving.members.map(({ network }) => network))];
    const figures: Enrollments[] = [];
    // The first round is there to warm up.
    for (let round = 0; round <= rounds; round += 1) {
      const from = ((round * hosts) / each) % ids.length;
      const mine = ids.slice(from, from + hosts / each);
      const invitations = await invite(admin, mine, each);
      const before = await server.request({ kind: 'look' }, 'looked');
      const begun = performance.now();
      const { length } = await enrollAll([serving.url], invitations, 4);
      const ms = (performance.now() - begun) / length;
      const after = await server.request({ kind: 'look' }, 'looked');
      if (round > 0) figures.push({ ms, statements: (after.statements - before.statements) / length });
    }
    await client.close();
    return figures;
  } finally {
    await server.end({ kind: 'end' });
    rmSync(folder, { recursive: true, force: true });
  }
}
