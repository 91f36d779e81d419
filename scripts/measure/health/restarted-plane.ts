import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startPostgres, urlOf } from '../../../test/control-plane/postgres-server.ts';
import { type ControlPlane, serveControlPlane, startControlPlane } from '../../../test/lab/control-plane.ts';
import type { Host } from '../../../test/lab/host.ts';
import type { Lab } from '../../../test/lab/lab.ts';
import type { Process } from '../../../test/lab/process.ts';

/** A control plane whose processes end and start. */
export interface RestartedPlane {
  readonly what: string;
  readonly start: (lab: Lab) => Promise<ControlPlane>;
  /** Ends a process, and starts it again after so many seconds. */
  readonly restart: (signal: NodeJS.Signals, seconds: number) => Promise<void>;
  readonly remove: () => Promise<void>;
}

/** One process on SQLite: there is no control plane meanwhile. */
export function createSinglePlane(): RestartedPlane {
  let host: Host;
  let running: Process;
  return {
    what: 'one process on SQLite',
    start: async (lab) => {
      const plane = await startControlPlane(lab);
      ({ host, process: running } = plane);
      return plane;
    },
    restart: async (signal, seconds) => {
      await end(running, signal);
      await delay(seconds * 1000);
      running = await serveControlPlane(host, host.address, join(host.homeDir, 'password'), []);
    },
    remove: async () => {},
  };
}

const [first, second] = [8788, 8789] as const;
/** What a balancer takes to notice that a process is dead. */
const noticeMs = 2000;

/** Two processes on one PostgreSQL behind a balancer: one of them in turn ends. */
export async function createReplicatedPlane(): Promise<RestartedPlane> {
  const database = await startPostgres();
  const replicas = new Map<number, Process>();
  let host: Host;
  let next: number = first;
  const serve = async (port: number) => {
    const owner = ['--owner-email', 'owner@example.net', '--owner-password-file', join(host.homeDir, 'password')];
    const listen = ['--listen', `0.0.0.0:${port}`, '--database', urlOf(database, 'postgres')];
    const replica = await host.spawnCpn(['control-plane', 'serve', ...listen, ...owner]);
    await replica.waitForLine(/listening on/, 30_000);
    replicas.set(port, replica);
  };
  return {
    what: 'two processes on PostgreSQL',
    start: async (lab) => {
      host = await lab.addHost('control-plane', { address: '203.0.113.1/24' });
      const password = join(host.homeDir, 'password');
      await writeFile(password, randomBytes(18).toString('base64url'), { mode: 0o600 });
      await serve(first);
      await serve(second);
      await balance(host, first, second);
      const url = 'http://203.0.113.1:8787';
      const named = ['--email', 'owner@example.net', '--password-file', password];
      await host.cpn(['login', '--api', url, '--insecure-http', ...named]);
      return { host, url, process: replicas.get(first) as Process, cpn: (args) => host.cpn(args) };
    },
    restart: async (signal, seconds) => {
      const port = next;
      const other = port === first ? second : first;
      next = other;
      if (signal === 'SIGTERM') await balance(host, other, other);
      await end(replicas.get(port) as Process, signal);
      if (signal === 'SIGKILL') await delay(noticeMs);
      await balance(host, other, other);
      await delay(seconds * 1000);
      await serve(port);
      await balance(host, first, second);
    },
    remove: () => database.remove(),
  };
}

/** New connections go to these ports in turn. */
async function balance(host: Host, ...ports: readonly [number, number]): Promise<void> {
  const rule = `tcp dport 8787 redirect to :numgen inc mod 2 map { 0 : ${ports[0]}, 1 : ${ports[1]} }`;
  const chain = (hook: string) => `chain ${hook} {\ntype nat hook ${hook} priority -100\n${rule}\n}`;
  const table = `table ip balance {\n${chain('prerouting')}\n${chain('output')}\n}\n`;
  await host.exec(['nft', '-f', '-'], { input: `table ip balance\ndelete table ip balance\n${table}` });
}

async function end(process: Process, signal: NodeJS.Signals): Promise<void> {
  process.signal(signal);
  await process.exited;
}
