import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'undici';
import {
  type Clients,
  change,
  comeToWait,
  logIn,
  type Round,
  type Server,
  type Summary,
  summarise,
  untilAllWait,
} from './changing.ts';
import { Worker } from './process.ts';
import type { Member } from './push-messages.ts';

/**
 * One measurement: networks whose peers all wait, and changes one after another.
 */
export interface PushCase {
  readonly networks: number;
  /** Of each network. */
  readonly peers: number;
  readonly changes: number;
  /** Those who wait take the changes alone, where the control plane gives them. */
  readonly deltas: boolean;
  /** Those who wait make a new connection each time, as a connector does. */
  readonly reconnect: boolean;
  /** A folder for a profile of the control plane's processor time. */
  readonly profile: string | null;
}

export interface PushResult extends Omit<PushCase, 'profile'>, Summary {
  /**
   * Milliseconds of processor time for a change, all that follows included: replies, and that all
   * wait again.
   */
  readonly serverCpuMsPerChange: number;
}

const warmUp = 5;

/** Measures one case on processes of its own. */
export async function measurePush(asked: PushCase): Promise<PushResult> {
  const folder = mkdtempSync(join(tmpdir(), 'cpn-bench-'));
  const profiling = asked.profile === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${asked.profile}`];
  const server: Server = new Worker('push-server.ts', profiling);
  const clients: Clients = new Worker('push-clients.ts');
  try {
    return await run(asked, folder, server, clients);
  } finally {
    await clients.end();
    await server.end({ kind: 'end' });
    rmSync(folder, { recursive: true, force: true });
  }
}

async function run(asked: PushCase, folder: string, server: Server, clients: Clients): Promise<PushResult> {
  const { networks, peers, changes, deltas, reconnect } = asked;
  const { url, owner, members } = await server.request(
    { kind: 'serve', folder, database: null, networks, peers },
    'serving',
  );
  const admin = new Client(url);
  const token = await logIn(admin, owner);
  await comeToWait(server, clients, { url, members, deltas, reconnect });
  const rounds: Round[] = [];
  let cpuMs = 0;
  for (let number = 0; number < warmUp + changes; number++) {
    const before = await untilAllWait(server, members.length);
    if (number === warmUp) cpuMs = before.cpuMs;
    // Networks take turns, and in each of them its peers.
    const member = members[((number % networks) * peers + (Math.floor(number / networks) % peers)) % members.length];
    const round = await change({ admin, token }, member as Member, number, [{ clients, replies: peers }]);
    if (number >= warmUp) rounds.push(round);
  }
  cpuMs = (await untilAllWait(server, members.length)).cpuMs - cpuMs;
  await admin.close();
  return { networks, peers, changes, deltas, reconnect, ...summarise(rounds), serverCpuMsPerChange: cpuMs / changes };
}
