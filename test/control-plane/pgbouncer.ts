import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { eventually } from '../lab/eventually.ts';
import { type PostgresAddress, urlOf } from './postgres-server.ts';

export type PoolMode = 'session' | 'transaction';

/** Debian's PgBouncer in front of a PostgreSQL server, on a Unix socket of its own. */
export interface PgBouncer {
  /** The URL of a database, through it. */
  url(database: string): string;
  /** Changes the mode as a reload does: connections in use keep their server until they end. */
  change(mode: PoolMode): Promise<void>;
  /** Kills it with all its connections, and starts it again in this mode. */
  restart(mode: PoolMode): Promise<void>;
  /** Ends it and removes its files. */
  remove(): Promise<void>;
}

/** PgBouncer refuses to run as root. */
const unprivileged = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};
const port = 6432;

/** Starts a PgBouncer that the caller removes. */
export async function startPgBouncer(server: PostgresAddress, mode: PoolMode): Promise<PgBouncer> {
  const folder = mkdtempSync(join(tmpdir(), 'cpn-pgbouncer-'));
  chownSync(folder, unprivileged.uid ?? -1, unprivileged.gid ?? -1);
  const file = join(folder, 'pgbouncer.ini');
  const write = (next: PoolMode) =>
    writeFileSync(
      file,
      `[databases]
* = host=${server.socket} port=${server.port} user=${server.user}
[pgbouncer]
listen_addr =
listen_port = ${port}
unix_socket_dir = ${folder}
auth_type = any
pool_mode = ${next}
default_pool_size = 60
`,
    );
  const start = (next: PoolMode) => {
    write(next);
    return startProcess(file);
  };
  let running = await start(mode);
  return {
    url: (database) => urlOf({ ...server, socket: folder, port }, database),
    async change(next) {
      write(next);
      const before = running.log.length;
      running.child.kill('SIGHUP');
      await eventually('it has read its settings again', () =>
        running.log.slice(before).some((line) => /HUP/i.test(line)),
      );
    },
    async restart(next) {
      await end(running.child);
      running = await start(next);
    },
    async remove() {
      await end(running.child);
      rmSync(folder, { recursive: true });
    },
  };
}

async function startProcess(file: string): Promise<{ child: ChildProcess; log: readonly string[] }> {
  const child = spawn('/usr/sbin/pgbouncer', [file], {
    ...unprivileged,
    cwd: '/',
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const log: string[] = [];
  await new Promise<void>((resolve, reject) => {
    createInterface(child.stderr).on('line', (line) => {
      log.push(line);
      if (line.includes('process up')) resolve();
    });
    child.once('error', reject);
    child.once('exit', () => reject(new Error(`PgBouncer did not start:\n${log.join('\n')}`)));
  });
  return { child, log };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}
